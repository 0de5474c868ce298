"""Each setting alone at every release that has a table, and what real servers report: as recorded.

A digest stands for all calls of a scenario, or its refusals, at all releases. Run as a program with
the name of a case, this file prints what it stands for; without one, it writes the record again.
"""

import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine_scenarios import VALUES, made
from tables import each

from perfgate.core.errors import PerfgateError
from perfgate.core.plain import to_plain
from perfgate.core.programs.locations import Locations
from perfgate.engines import sglang, tensorrt_llm, vllm  # noqa: F401  (registers them)
from perfgate.engines.base import EngineBuild, engine
from perfgate.plan import calls
from perfgate.scenarios.scenario import (
    AccuracyTask,
    EngineSettings,
    Model,
    Scenario,
    Smoke,
    Workload,
)

HERE = Path(__file__).parent
RECORDED = HERE.parent / "data" / "settings.json"
TABLES = Path(tensorrt_llm.__file__).parents[1]
RELEASES = {
    name: sorted(path.stem for path in (TABLES / folder / "releases").glob("*.yaml"))
    for name, folder in (("tensorrt-llm", "tensorrt_llm"), ("vllm", "vllm"), ("sglang", "sglang"))
}
DOCUMENTED = {"tensorrt-llm": "1.0.0", "vllm": "0.11.0", "sglang": "0.5.3"}
LOAD = Workload("benchmark_serving", "synthetic", 1024, 1024, (32,), requests=64)
BENCH = replace(LOAD, client="trtllm-bench", warmup_requests=2)
PROGRAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "trtllm-serve": ("tensorrt-llm", {"workload": LOAD}),
    "trtllm-bench": ("tensorrt-llm", {"workload": BENCH}),
    "quickstart": ("tensorrt-llm", {"smoke": Smoke("trtllm-quickstart", ("Who?",))}),
    "gpqa": ("tensorrt-llm", {"accuracy": (AccuracyTask("trtllm-gpqa", "gpqa_diamond", 0),)}),
    "trtllm-eval": ("tensorrt-llm", {"accuracy": (AccuracyTask("trtllm-eval", "gsm8k", 5),)}),
    "vllm": ("vllm", {"workload": replace(LOAD, client="vllm-bench")}),
    "sglang": ("sglang", {"workload": replace(LOAD, client="vllm-bench")}),
}
PINNED = ("tp", "mtp", "max_batch_size", "chunked_context", "kv_cache_dtype", "cuda_graphs")


def scenario(program: str, release: str | None, **settings: Any) -> Scenario:
    name, more = PROGRAMS[program]
    model = Model("deepseek-ai/DeepSeek-R1", "fp8")
    return made(name, EngineSettings(**{"tp": 8, **settings}), release, model=model, **more)


def each_setting(program: str, release: str | None) -> Iterator[tuple[str, Scenario]]:
    for field, values in VALUES.items():
        if release is None or field in PINNED:
            for value in values:
                yield f"{field}: {value}", scenario(program, release, **{field: value})


def rendered(case: Scenario) -> Iterator[str]:
    """The calls at each release, or why they are refused."""
    name = case.engine.name
    for release in RELEASES[name]:
        build = EngineBuild(name, release, release)
        try:
            steps = to_plain(calls.steps(case, build, Locations(on_paper=True)))
            notes = engine[name]().known_limitations(case, build)
            yield f"{release}: {json.dumps(steps, sort_keys=True)} {notes}"
        except PerfgateError as error:
            yield f"{release}: refused: {error}"


def reported(case: Scenario) -> Iterator[str]:
    """What servers of each kind report of what the scenario asks for."""
    if case.engine.name == "tensorrt-llm":
        return
    if case.engine.name == "vllm":
        log = (HERE / "vllm/recorded/serve_0.32.0_cpu.log").read_text().splitlines()
        info = json.loads((HERE / "vllm/recorded/server_info_0.32.0_cpu.json").read_text())
    else:
        log = ["max_total_num_tokens=170000, max_running_requests=500, context_len=163840"]
        info = json.loads((HERE / "sglang/recorded/server_info_0.5.23_cpu.json").read_text())
    on_gpus = {"attn_dp_size": 4, "dp_size": 2, "enable_dp_attention": True, "path": "/here"}
    for told, lines in ((info, []), ({}, log), (info, log), ({**info, **on_gpus}, log)):
        found = engine[case.engine.name]().effective_settings(case, told, lines)
        yield json.dumps(to_plain(found), sort_keys=True)


def text(program: str, release: str | None) -> dict[str, str]:
    return {
        name: "\n".join([*rendered(case), *(reported(case) if release is None else ())])
        for name, case in each_setting(program, release)
    }


def record(program: str) -> dict[str, str]:
    found = {}
    for release in (None, DOCUMENTED[PROGRAMS[program][0]]):
        for name, said in text(program, release).items():
            found[f"{program} of {release}: {name}"] = said
    return found


def digests(program: str) -> dict[str, str]:
    return {
        name: hashlib.sha256(said.encode()).hexdigest()[:16]
        for name, said in record(program).items()
    }


@each("program", PROGRAMS)
def test_every_setting_is_rendered_refused_and_reported_as_recorded(program: str) -> None:
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))[program]
    found = digests(program)
    assert {name: one for name, one in found.items() if recorded.get(name) != one} == {}
    assert set(recorded) == set(found)


if __name__ == "__main__":
    if sys.argv[1:]:
        print(record(sys.argv[1].partition(" of ")[0])[sys.argv[1]])
    else:
        whole = json.dumps({program: digests(program) for program in PROGRAMS}, indent=1)
        RECORDED.write_text(whole + "\n", encoding="utf-8")
