"""Setup: put the mock programs in place for a session, and take them away again.

The session's side of a rehearsal. Programs are called as always: by what ``PERFGATE_PROGRAM_…``,
``PERFGATE_MODELS`` and the like say, which is all that a rehearsal changes.
"""

import json
import shlex
import shutil
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from packaging.version import Version

from perfgate.core import programs
from perfgate.core.durable_files import make_executable, write_text
from perfgate.core.locations import DATASETS, HOSTS, MODELS, TENSORRT_LLM_SOURCE
from perfgate.core.programs import Program
from perfgate.rehearsal import fake_files
from perfgate.rehearsal.expected_results import scenario_part
from perfgate.rehearsal.faults import FAULTS, Fault, FaultKind, parse_fault, require_hits
from perfgate.rehearsal.playbook import FORMAT, REHEARSAL_VARIABLE, SYNTHETIC
from perfgate.rehearsal.recorded_pages import nearest
from perfgate.scenarios.scenario import Limits, Scenario

__all__ = ["FAULTS", "Fault", "FaultKind", "clear", "parse_fault", "set_up", "shortened"]

# Engine that has mock programs → release of scenarios whose document names none.
ENGINES = {"tensorrt-llm": "1.0.0", "vllm": "0.11.0", "sglang": "0.5.3"}
# Load client → the engine that it comes with.
_CLIENTS = {"vllm-bench": "vllm", "vllm-benchmark-serving": "vllm", "sglang-bench": "sglang"}
PLAYBOOK = "playbook.json"
# Mocks are ready in a second and never silent for longer; a crowded machine takes its time.
LIMITS = Limits(start_s=120.0, silence_s=60.0, total_s=240.0)
HANG_LIMITS = Limits(start_s=30.0, silence_s=5.0, total_s=60.0)

# Program → module that stands in for it, and the module's first arguments.
_LAUNCHERS = (
    programs.TRTLLM_LAUNCH,
    programs.MPIRUN,
    programs.SRUN,
    programs.SBATCH,
    programs.SCANCEL,
    programs.DOCKER,
)
_MODULES: Mapping[Program, tuple[str, ...]] = {
    programs.TRTLLM_BENCH: ("trtllm_bench",),
    programs.TRTLLM_SERVE: ("trtllm_serve",),
    programs.TRTLLM_EVAL: ("trtllm_eval",),
    programs.TENSORRT_LLM_PYTHON: ("engine_python",),
    programs.VLLM: ("vllm",),
    programs.VLLM_SERVE: ("vllm",),
    programs.VLLM_SCRIPT: ("vllm_script",),
    programs.VLLM_PYTHON: ("engine_python",),
    programs.SGLANG_SERVE: ("engine_python",),
    programs.SGLANG_PYTHON: ("engine_python",),
    programs.SGLANG_BENCH: ("engine_python",),
    programs.LM_EVAL: ("lm_eval",),
    **{program: ("launch_programs", program.executable) for program in _LAUNCHERS},
}


def set_up(
    folder: Path,
    scenarios: Iterable[Scenario],
    *,
    engine_version: str | None,
    fault: Fault | None,
    seed: int,
    real: Collection[Program] = (),
) -> Mapping[str, str]:
    """Write the playbook, the mock programs and their files into `folder`.

    Args:
        folder: a new one, or that of an earlier rehearsal; ``playbook.json`` stays in it for good.
        scenarios: what may be rehearsed; those of other engines are left out.
        engine_version: release that all programs imitate; None: that of each scenario's document.
        fault: what is to go wrong; None: nothing.
        seed: the same seed gives the same numbers.
        real: programs without a mock program: those that the session's launcher starts others with.

    Returns:
        Environment variables in which the session finds the mock programs.

    Raises:
        InputError: not a version, or a fault that would hit nothing.
        SeveralInputErrors: documented values are not as they should be.
    """
    rehearsed = [scenario for scenario in scenarios if scenario.engine.name in ENGINES]
    if fault is not None:
        require_hits(fault, [(one.id, label) for one in rehearsed for label in _labels(one)])
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / PLAYBOOK
    playbook = {
        "schema_version": FORMAT,
        SYNTHETIC: True,
        "fault": None if fault is None else asdict(fault),
        "seed": seed,
        **_scenarios_and_releases(rehearsed, engine_version),
    }
    write_text(path, json.dumps(playbook, indent=1) + "\n")
    modules = {program: module for program, module in _MODULES.items() if program not in real}
    _programs(folder / "bin", modules, path)
    fake_files.models(folder / "models", rehearsed)
    fake_files.datasets(folder / "datasets", rehearsed)
    fake_files.sources(folder / "source")
    nodes = max((scenario.hardware.nodes for scenario in rehearsed), default=1)
    hosts = " ".join(f"rehearsal-node{number}" for number in range(1, nodes + 1))
    named = {} if real else {HOSTS: hosts if nodes > 1 else ""}
    return {
        REHEARSAL_VARIABLE: str(path),
        **_variables(folder / "bin", modules),
        MODELS: str(folder / "models"),
        DATASETS: str(folder / "datasets"),
        TENSORRT_LLM_SOURCE: str(folder / "source"),
        **named,
    }


def _scenarios_and_releases(
    scenarios: Iterable[Scenario], engine_version: str | None
) -> dict[str, Any]:
    """What the mocks know of each scenario, and of the releases that they imitate for them."""
    chosen = tuple(scenarios)
    known = {one.id: scenario_part(one, ENGINES[one.engine.name]) for one in chosen}
    versions: dict[str, set[str]] = {}
    for scenario in chosen:
        name, load = scenario.engine.name, scenario.workload
        if said := _said_of(name, engine_version):
            known[scenario.id]["engine_version"] = said
        versions.setdefault(name, set()).add(str(known[scenario.id]["engine_version"]))
        if load is not None and load.client in _CLIENTS:
            own = _CLIENTS[load.client]
            versions.setdefault(own, set()).add(load.client_version or ENGINES[own])
    return {
        "releases": {
            engine: {one: nearest(engine, one) for one in sorted(found, key=Version)}
            for engine, found in sorted(versions.items())
        },
        "scenarios": known,
    }


def _said_of(engine: str, text: str | None) -> str | None:
    """What ``--engine-version`` says of one engine: a bare release is TensorRT-LLM's."""
    before, named, release = (text or "").rpartition("=")
    return release or None if (before if named else "tensorrt-llm") == engine else None


def _labels(scenario: Scenario) -> list[str]:
    tasks = [task.task for task in scenario.accuracy]
    return [point.label for point in scenario.points()] + tasks


def _programs(folder: Path, modules: Mapping[Program, tuple[str, ...]], playbook: Path) -> None:
    """An executable for each program, under its true name: job scripts call programs so.

    Each names the playbook itself: on another node it may find none of the session's variables.
    """
    folder.mkdir(exist_ok=True)
    for program, (module, *arguments) in modules.items():
        call = shlex.join([sys.executable, "-m", "perfgate.rehearsal", module, *arguments])
        path = folder / program.executable
        path.write_text(
            f"#!/bin/sh\n# A mock program of perfgate's rehearsal: what it measures is synthetic.\n"
            f'export {REHEARSAL_VARIABLE}={shlex.quote(str(playbook))}\nexec {call} "$@"\n'
        )
        make_executable(path)


def _variables(folder: Path, played: Iterable[Program]) -> dict[str, str]:
    return {
        program.variable: shlex.join([str(folder / program.executable), *program.arguments])
        for program in (*played, programs.BENCHMARK_SERVING)
    }


def shortened(scenario: Scenario, fault: str | None = None) -> Scenario:
    """The scenario with time limits that fit mocks: one that is to hang is found in seconds.

    Those of other engines stay as they are: they have no mocks.
    """
    limits = HANG_LIMITS if fault == "hang" else LIMITS
    return replace(scenario, limits=limits) if scenario.engine.name in ENGINES else scenario


def clear(folder: Path) -> None:
    """Remove all but the playbook: weights of hundreds of gigabytes are not to be copied around."""
    for name in ("bin", "cache", "datasets", "models", "source"):
        shutil.rmtree(folder / name, ignore_errors=True)
