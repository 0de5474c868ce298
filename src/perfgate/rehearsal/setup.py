"""Setup: put the mock programs in place for a session, and take them away again.

The session's side of a rehearsal. Programs are called as always: by what ``PERFGATE_PROGRAM_…``,
``PERFGATE_MODELS`` and the like say, which is all that a rehearsal changes. The main process puts
the mocks in place and tells the variables to the workers of pytest-xdist.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from msgspec import json
from packaging.version import Version

from perfgate.core.files.durable_files import make_executable, write_errors_named, write_text
from perfgate.core.programs import programs
from perfgate.core.programs.locations import DATASETS, HOSTS, MODELS, TENSORRT_LLM_SOURCE
from perfgate.core.programs.programs import Program
from perfgate.rehearsal import fake_files
from perfgate.rehearsal.expected_results import scenario_part
from perfgate.rehearsal.faults import Fault, parse_fault, require_hits
from perfgate.rehearsal.playbook import REHEARSAL_VARIABLE, PlaybookFile, ScenarioPart
from perfgate.rehearsal.recorded_pages import label, nearest
from perfgate.scenarios.scenario import Limits, Scenario

# Engine that has mock programs → release of scenarios whose document names none.
ENGINES = {"tensorrt-llm": "1.0.0", "vllm": "0.11.0", "sglang": "0.5.3"}
# Load client → the engine that it comes with.
_CLIENTS = {"vllm-bench": "vllm", "vllm-benchmark-serving": "vllm", "sglang-bench": "sglang"}
PLAYBOOK = "playbook.json"
SEED = 20  # the same rehearsal twice gives the same numbers
# Mocks are ready in a second and never silent for longer; a crowded machine takes its time.
LIMITS = Limits(start_s=120.0, silence_s=60.0, total_s=240.0)
HANG_LIMITS = Limits(start_s=30.0, silence_s=5.0, total_s=60.0)

# Program → what plays it, as `programs.play` takes it, and the first words for that.
_PLAYED: Mapping[Program, str] = {
    programs.TRTLLM_BENCH: "trtllm_bench:main",
    programs.TRTLLM_SERVE: "servers:trtllm",
    programs.TRTLLM_EVAL: "evaluations:trtllm_eval",
    programs.TENSORRT_LLM_PYTHON: "engine_python:python",
    programs.VLLM: "engine_python:vllm",
    programs.VLLM_SERVE: "engine_python:vllm",
    programs.VLLM_SCRIPT: "load_client:vllm_script",
    programs.VLLM_PYTHON: "engine_python:python",
    programs.SGLANG_SERVE: "engine_python:python",
    programs.SGLANG_PYTHON: "engine_python:python",
    programs.SGLANG_BENCH: "engine_python:python",
    programs.LM_EVAL: "evaluations:lm_eval",
    programs.TRTLLM_LAUNCH: "launch_programs:main trtllm-llmapi-launch",
    programs.MPIRUN: "launch_programs:main mpirun",
    programs.SRUN: "launch_programs:main srun",
    programs.SBATCH: "launch_programs:main sbatch",
    programs.SCANCEL: "launch_programs:main scancel",
    programs.DOCKER: "launch_programs:main docker",
}


class RehearsalEnvironment:
    """The environment variables that put the mock programs in place; none until `enter`.

    Attributes:
        variables: the variables.
        pages: engine and release → program → of which release its recorded page is; empty until
            `build`.
    """

    def __init__(self) -> None:
        self.variables: Mapping[str, str] = {}
        self.pages: Mapping[str, Mapping[str, str]] = {}
        self._before: dict[str, str | None] = {}
        self._built: Path | None = None

    def build(
        self,
        folder: Path,
        scenarios: Sequence[Scenario],
        engine_version: str | None,
        fault: str | None,
        real: Collection[Program] = (),
    ) -> None:
        """Put the mock programs into `folder`, and enter; the `real` programs have none.

        Raises:
            InputError: no such fault.
            RunError: the folder cannot be written.
        """
        known = None if fault is None else parse_fault(fault)
        self._built = folder
        with write_errors_named(folder):
            variables = set_up(
                folder, scenarios, engine_version=engine_version, fault=known, seed=SEED, real=real
            )
        releases = json.decode((folder / PLAYBOOK).read_bytes())["releases"]
        self.pages = {
            f"{engine} {version}": {program: label(name) for program, name in pages.items()}
            for engine, versions in releases.items()
            for version, pages in versions.items()
        }
        self.enter(variables)

    def enter(self, variables: Mapping[str, str]) -> None:
        """Set the variables."""
        self.variables = variables
        self._before = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)

    def leave(self) -> None:
        """Give every variable the value it had before; remove what was built here.

        Its datasets and make-believe weights are large, and worth nothing.
        """
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self._before = {}
        if self._built is not None:
            clear(self._built)


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
    playbook = _playbook(rehearsed, engine_version, fault, seed)
    write_text(path, json.format(json.encode(playbook), indent=1).decode() + "\n")
    played = {program: words for program, words in _PLAYED.items() if program not in real}
    _programs(folder / "bin", played, path)
    fake_files.models(folder / "models", rehearsed)
    fake_files.datasets(folder / "datasets", rehearsed)
    fake_files.sources(folder / "source")
    nodes = max((scenario.hardware.nodes for scenario in rehearsed), default=1)
    hosts = " ".join(f"rehearsal-node{number}" for number in range(1, nodes + 1))
    named = {} if real else {HOSTS: hosts if nodes > 1 else ""}
    return {
        REHEARSAL_VARIABLE: str(path),
        **_variables(folder / "bin", played),
        MODELS: str(folder / "models"),
        DATASETS: str(folder / "datasets"),
        TENSORRT_LLM_SOURCE: str(folder / "source"),
        **named,
    }


def _playbook(
    scenarios: Iterable[Scenario], engine_version: str | None, fault: Fault | None, seed: int
) -> PlaybookFile:
    """What the mocks know of each scenario, and of the releases that they imitate for them."""
    known: dict[str, ScenarioPart] = {}
    versions: dict[str, set[str]] = {}
    for scenario in scenarios:
        name, load = scenario.engine.name, scenario.workload
        part = scenario_part(scenario, ENGINES[name], _said_of(name, engine_version))
        known[scenario.id] = part
        versions.setdefault(name, set()).add(part.engine_version)
        if load is not None and load.client in _CLIENTS:
            own = _CLIENTS[load.client]
            versions.setdefault(own, set()).add(load.client_version or ENGINES[own])
    releases = {
        engine: {release: nearest(engine, release) for release in sorted(named, key=Version)}
        for engine, named in sorted(versions.items())
    }
    return PlaybookFile(fault, seed, releases, known)


def _said_of(engine: str, text: str | None) -> str | None:
    """What ``--engine-version`` says of one engine: a bare release is TensorRT-LLM's."""
    before, named, release = (text or "").rpartition("=")
    return release or None if (before if named else "tensorrt-llm") == engine else None


def _labels(scenario: Scenario) -> list[str]:
    tasks = [task.task for task in scenario.accuracy]
    return [point.label for point in scenario.points()] + tasks


def _programs(folder: Path, played: Mapping[Program, str], playbook: Path) -> None:
    """An executable for each program, under its true name: job scripts call programs so.

    Each names the playbook itself: on another node it may find none of the session's variables.
    """
    folder.mkdir(exist_ok=True)
    for program, words in played.items():
        call = shlex.join([sys.executable, "-m", "perfgate.rehearsal", *words.split()])
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
