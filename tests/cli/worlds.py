"""States that a transcript is given: a function each, its words as texts."""

import os
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from building import MACHINE, baseline, entry, machine, outcome, with_answers
from made_runs import SHARDS, facts, write_run
from made_runs import run as made_run
from plain_records import fields_of, record
from sides_made import measurement, throughputs
from sides_made import run as side

from perfgate.baselines import Baseline, BaselineRun, Entry, candidate_store, own_store, suite_store
from perfgate.baselines.baseline import BuildSource
from perfgate.baselines.noise_history import NoiseRun, NoiseSeries, save
from perfgate.clients.base import client
from perfgate.core.errors import MissingProgram
from perfgate.core.programs.environment_variables import variables_set
from perfgate.core.verdict import Verdict
from perfgate.engines.base import EngineBuild, engine
from perfgate.engines.llama_cpp import LlamaCpp
from perfgate.evaluators.base import evaluator
from perfgate.machine.preflight import Check, PreflightReport, PreflightTarget
from perfgate.machine.preflight.check import Finding, checked
from perfgate.runs.run_folder import RunFolder
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.probe import all_probes


@dataclass(frozen=True)
class World:
    """Where the states are made.

    Args:
        folder: the test's own; the checkout is in it.
        patch: what is undone after the test.
        text: the lines below the state.
    """

    folder: Path
    patch: pytest.MonkeyPatch
    text: str


GIVEN: dict[str, Callable[..., object]] = {}


def given(state: Callable[..., object]) -> Callable[..., object]:
    """The state of that name, with - for _."""
    GIVEN[state.__name__.replace("_", "-")] = state
    return state


@given
def file(world: World, name: str) -> None:
    """A file with the text."""
    path = world.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(world.text)


@given
def changed(world: World, name: str, old: str) -> None:
    """The text in a file of the test, for some that is there."""
    path = world.folder / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, world.text.rstrip("\n")))


@given
def moved(world: World, name: str, to: str) -> None:
    (world.folder / to).parent.mkdir(parents=True, exist_ok=True)
    (world.folder / name).rename(world.folder / to)


@given
def link(world: World, name: str, to: str) -> None:
    (world.folder / name).symlink_to(to)


@given
def open_to_all(world: World, name: str) -> None:
    (world.folder / name).chmod(0o777)


@given
def recorded(world: World, name: str, to: str) -> None:
    """A file of tests/data under another name, below the text."""
    recorded = (Path(__file__).parents[1] / "data" / name).read_text()
    file(replace(world, text=world.text + recorded), to)


@given
def odd_files(world: World) -> None:
    """A FIFO, a link to a device without end, and every byte."""
    os.mkfifo(world.folder / "fifo")
    (world.folder / "link").symlink_to("/dev/zero")
    (world.folder / "bytes").write_bytes(bytes(range(256)))


# Baselines


@given
def stored(world: World, store: str, commit: str, version: str = "1.2.0") -> None:
    """A baseline of a build in the suite's store, the machine's own or among its candidates.

    The text is YAML: its fields; values, answers and cpu of its probes; the image of its build.
    """
    plain: dict[str, Any] = yaml.safe_load(world.text) or {}
    values, cpu, image = plain.pop("values", {}), plain.pop("cpu", {}), plain.pop("image", "")
    entries = {name: entry(*one, cpu=cpu.get(name, "Grace")) for name, one in values.items()}
    entries |= {name: with_answers(one) for name, one in plain.pop("answers", {}).items()}
    plain |= {"entries": entries} if entries else {}
    plain |= {"source": BuildSource(image, "sha256:0123")} if image else {}
    stores = {"suite": suite_store, "own": own_store, "candidate": candidate_store}
    made = baseline(engine=EngineBuild("llama.cpp", version, commit), **plain)
    stores[store]().save(made)


@given
def session(world: World, name: str, day: str, verdict: str) -> None:
    """A run of two scenarios, of which the second came to no verdict."""
    folder = RunFolder.create(world.folder / name, {"synthetic": False})
    ends = (("small-serve", "c1", verdict), ("noisy-serve", "c4", Verdict.INCONCLUSIVE))
    for scenario, probe, end in ends:
        told = {"probe": probe, "scenario": scenario, "fingerprint": {"cpu": "Grace"}}
        told |= {"started": f"{day}T08:00:00+00:00", "disturbed": [], "seconds": 20.5}
        folder.record(record("measurement", measurement({"output_throughput": 110.0}, **told)))
        named = {"test": probe, "name": f"{scenario}-{probe}", "scenario": scenario, "probe": probe}
        made = outcome(verdict=Verdict(end), judgements=())
        folder.record(record("verdict", {**fields_of(made), **named}))
    folder.close()


@given
def night(world: World, name: str, speed: str = "1000", verdict: str = "NO_BASELINE") -> None:
    """A run of the H200 scenario as a session leaves it: one load, two starts.

    The text is YAML: version and commit of the engine; facts of the run; whether it ends; other
    fields of its measurements.
    """
    more: dict[str, Any] = yaml.safe_load(world.text) or {}
    suite = load_scenarios(world.folder / "checkout" / "scenarios")
    (scenario,) = (one for one in suite if one.id == "h200-serve")
    probe = next(one for one in all_probes(scenario) if one.is_load)
    plain = {**facts(name, "08:00"), "versions": {}, **more.pop("facts", {})}
    del plain["id"], plain["schema_version"]
    shutil.rmtree(world.folder / name, ignore_errors=True)
    folder = RunFolder.create(world.folder / name, plain)
    build = {"version": more.pop("version", "1.0.0"), "commit": more.pop("commit", "a" * 40)}
    ends = more.pop("ends", True)
    made = {
        "scenario": "h200-serve",
        "probe": probe.label,
        "hardware": "1xH200",
        "seconds": 300.0,
        "engine": {"name": "llama.cpp", **build},
        "fingerprint": {"content": probe.content_hash(), "cpu": "Grace", "gpus": "H200"},
        "disturbed": [],
        **more,
    }
    for start, value in enumerate((float(speed), float(speed) * 1.004), start=1):
        made["started"] = f"2026-11-20T{len(name):02d}:{start:02d}:00+00:00"
        line = measurement({"output_throughput": value}, start, **made)
        folder.record(record("measurement", line))
    of_test = {"test": probe.id, "scenario": "h200-serve", "probe": probe.label}
    synthetic = bool(more.get("synthetic"))
    folder.record(record("verdict", of_test, verdict=verdict, synthetic=synthetic))
    if ends:
        folder.record(record("ended", recording=True, failed=[], bugs=[]))
    folder.close()


# Plans

_ACCURACY = "accuracy:perfgate_arithmetic:exact_match:strict-match"
_SPEEDS = (100.0, 100.4, 99.7, 100.1, 99.9, 100.6, 99.5, 100.2, 100.3, 99.8)


def _nights(
    starts: int = 5,
    spread: float = 1.0,
    seconds: float | None = 40.0,
    answers: int = 200,
    version: str = "2026.10",
    commit: str = "2026.10",
    source: bool = False,
    **changes: Any,
) -> Baseline:
    """A baseline of all probes of the H200 scenario; each start is of another night."""
    right = {_ACCURACY: {f"q{n}": n % 2 == 0 for n in range(answers)}} if answers else {}
    runs = tuple(
        BaselineRun(
            f"run-{number}",
            f"2026-11-{number:02}T08:00:00+00:00",
            {
                "output_throughput": 100 + spread * (value - 100),
                "server_cpu_s_per_1k_tokens": 3.0 + value / 1000,
                _ACCURACY: 0.5,
            },
            right,
            seconds,
        )
        for number, value in enumerate(_SPEEDS[:starts], start=1)
    )
    entries = dict.fromkeys(("c1", "c4", "perfgate_arithmetic"), Entry({"content": "a"}, runs))
    made = {"scenario": "h200-serve", "hardware": "1xH200", "change": "first", "entries": entries}
    made |= {"engine": EngineBuild("llama.cpp", version, commit)}
    made |= {"source": BuildSource(image="engine:old") if source else None}
    return baseline(**{**made, **changes})


@given
def to_plan(world: World) -> None:
    """All that a plan depends on, given as YAML, on a machine without GPUs; nothing may start.

    gate: of the H200 scenario; stored: baselines; history: hardware with earlier nights' noise;
    installed: whether the engine is here.
    """

    def build(*_: object) -> EngineBuild:
        if not case.get("installed", True):
            raise MissingProgram("not here")
        return EngineBuild("llama.cpp", "2026.10", "2026.10")

    def nothing(*_: object, **__: object) -> None:
        raise AssertionError("a plan starts nothing")

    case = yaml.safe_load(world.text)
    world.patch.setattr("perfgate.cli.plan.detect", lambda: MACHINE)
    world.patch.setattr("perfgate.launchers.local.launcher.LocalLauncher.start", nothing)
    world.patch.setattr(LlamaCpp, "build", build)
    for before in ("checkout/baselines", "home"):
        shutil.rmtree(world.folder / before, ignore_errors=True)
    scenarios = world.folder / "checkout" / "scenarios"
    plain = yaml.safe_load((scenarios / "local.yaml").read_text())
    usual = plain["scenarios"][0]["gate"]
    gate = {"reference": "stored", "blocks": 0, **case.get("gate", {})}
    # five evaluations of 200 questions find a drop of 6 points
    bands = {**usual["bands"], _ACCURACY: 0.06, **gate.pop("bands", {})}
    plain = yaml.safe_load((scenarios / "h200.yaml").read_text())
    plain["scenarios"][0]["gate"] = {**usual, **gate, "bands": bands}
    (scenarios / "h200.yaml").write_text(yaml.safe_dump(plain))
    for made in (_nights(**one) for one in case.get("stored", [])):
        (own_store() if made.accepted_by == "self" else suite_store()).save(made)
    if hardware := case.get("history"):
        own, values = hardware == "cpu", {"output_throughput": (100.0, 101.0, 99.0, 100.5) * 6}
        series = NoiseSeries("s", "c1", "a", "abc", values, own=own)
        save(NoiseRun(hardware, "r", "2026-11-20T08:00:00+00:00", (series,)), own=own)


@given
def environment(world: World, name: str, value: str) -> None:
    world.patch.setenv(name, value)


# Runs


@given
def starts(world: World, name: str, values: str, *changes: str) -> None:
    """A run with these throughputs; changes: facts of its machine, its scenario, synthetic."""
    fingerprint = {"content": "0123456789abcdef", "cpu": "Grace", "driver": "570.1"}
    more: dict[str, Any] = {}
    for key, _, value in (change.partition("=") for change in changes):
        if key in fingerprint:
            fingerprint[key] = value
        else:
            more[key] = value or True
    speeds = map(float, values.split(","))
    throughputs(world.folder / name, *speeds, fingerprint=fingerprint, **more)


@given
def sides(world: World) -> None:
    """Two runs of which each has a metric of its own: a judged loss, and a reported one."""
    old = {"output_throughput": 100.0, "ttft_p99_ms": 50.0, "e2el_mean_ms": 5.0}
    new = {"output_throughput": 95.0, "ttft_p99_ms": 90.0, "duration_s": 7.0}
    side(world.folder / "one", [measurement(old)])
    side(world.folder / "two", [measurement(new, start) for start in (1, 2)])


@given
def failed_start(world: World, name: str) -> None:
    side(world.folder / name, [], failed=["c1"])


@given
def ended_run(world: World, name: str, shard: str, status: str, *tests: str) -> None:
    """A run folder: TEST=VERDICT for each test; of no shard if its number is 0."""
    made = made_run(
        name,
        "10:00",
        _results(tests),
        shard=SHARDS[int(shard) - 1] if int(shard) else None,
        end=None if status == "none" else int(status),
        faults=[world.text] if world.text else [],
    )
    write_run(world.folder / name, made)


@given
def run_of(world: World, days: str, name: str, *tests: str) -> None:
    """A run folder of so many days ago."""
    started = datetime.now(UTC) - timedelta(days=float(days))
    made = made_run(name, "10:00", _results(tests), changes={"started": started.isoformat()})
    shutil.rmtree(world.folder / name, ignore_errors=True)
    write_run(world.folder / name, made)


def _results(tests: Iterable[str]) -> dict[str, Verdict | str | None]:
    results = {test: verdict for test, _, verdict in (one.partition("=") for one in tests)}
    return {test: Verdict(one) if one in [*Verdict] else one for test, one in results.items()}


# Machines

_CHECKS = {
    "gpus": Check("gpus", "ok", "8×NVIDIA B200: 0, 1", "8×B200"),
    "persistence": Check(
        "gpu persistence", "warning", "GPU 1: off", "persistence mode on", "-pm 1 as root"
    ),
    "hosts": Check("hosts", "unknown", "checked only with --reach"),
    "sick": Check("gpu errors", "failed", "GPU 0: 1 uncorrected", "none", "reset the GPU"),
    "no-aiperf": Check("clients", "failed", "no aiperf", "", "install it"),
    "no-aiperf-nor-hint": Check("clients", "failed", "no aiperf", ""),
    "no-lm_eval": Check("evaluators", "failed", "no lm_eval", "", "pip install it"),
    "unasked": Check("model", "unknown", "from the hub"),
}


@given
def gpus(world: World, *names: str) -> None:
    """A machine with these GPUs, every program, and no variables of whoever runs the tests."""
    world.patch.setattr("perfgate.cli.doctor.detect", lambda: machine(*names))
    world.patch.setattr("perfgate.cli.doctor.variables_set", lambda environment: {})
    programs(world)


@given
def programs(world: World, *checks: str) -> None:
    """What a look at the programs finds."""
    found = tuple(_CHECKS[one] for one in checks)
    world.patch.setattr("perfgate.cli.doctor.judge_software", lambda tools: found)


@given
def preflight(world: World, *checks: str) -> None:
    """What the preflight finds, and what it was asked."""
    found = tuple(_CHECKS[one] for one in checks)
    usual = asdict(PreflightTarget())

    def look(scenario: Any, tools: Any, here: Any, where: Any) -> PreflightReport:
        assert (tools.scenario, here) == (scenario, MACHINE)
        told = {key: str(one) for key, one in asdict(where).items() if one != usual[key]}
        asked = Check("asked", "ok", str(told), "anything")
        return PreflightReport((*found, asked), {"driver": "580.65.06"})

    world.patch.setattr("perfgate.cli.doctor_selection.look", look)


@given
def variable(world: World, name: str, value: str) -> None:
    """One of perfgate's variables is set, and no other."""
    one = variables_set({name: value})
    world.patch.setattr("perfgate.cli.doctor.variables_set", lambda environment: one)


@given
def shared_python(world: World) -> None:
    own = checked("own environment", Finding("warning", "shared with vllm 1"))
    world.patch.setattr("perfgate.cli.doctor.own_environment", lambda: own)


@given
def standin_engine(world: World) -> None:
    """Its module can be imported, and is not yet."""
    world.patch.syspath_prepend(Path(__file__).parents[1] / "standins")
    for registry in (engine, client, evaluator):
        world.patch.setattr(registry, "_classes", dict(registry))  # all of them, loaded
    world.patch.delitem(sys.modules, "standin", raising=False)
