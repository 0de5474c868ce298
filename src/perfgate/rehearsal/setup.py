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
from perfgate.scenarios.probe import all_probes
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

_PYTHONS = (
    *(programs.TENSORRT_LLM_PYTHON, programs.VLLM_PYTHON),
    *(programs.SGLANG_SERVE, programs.SGLANG_PYTHON, programs.SGLANG_BENCH),
)
_LAUNCHERS = (programs.TRTLLM_LAUNCH, programs.MPIRUN, programs.SRUN, programs.SBATCH)
# Program → what plays it, as `programs.play` takes it, and the first words for that.
_PLAYED: Mapping[Program, str] = {
    programs.TRTLLM_BENCH: "offline:trtllm_bench",
    programs.TRTLLM_SERVE: "servers:trtllm",
    programs.TRTLLM_EVAL: "evaluations:trtllm_eval",
    **dict.fromkeys(_PYTHONS, "engine_python:python"),
    **dict.fromkeys((programs.VLLM, programs.VLLM_SERVE), "engine_python:vllm"),
    programs.VLLM_SCRIPT: "load_client:vllm benchmark_serving.py",
    programs.LM_EVAL: "evaluations:lm_eval",
    **{one: f"launch_programs:main {one.executable}" for one in (*_LAUNCHERS, programs.SCANCEL)},
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
        known = parse_fault(fault) if fault is not None else None
        self._built = folder
        with write_errors_named(folder):
            variables = set_up(
                folder, scenarios, engine_version=engine_version, fault=known, seed=SEED, real=real
            )
        played = json.decode((folder / PLAYBOOK).read_bytes(), type=PlaybookFile)
        self.pages = {
            f"{engine} {version}": {program: label(name) for program, name in pages.items()}
            for engine, versions in played.releases.items()
            for version, pages in versions.items()
        }
        self.enter(variables)

    def enter(self, variables: Mapping[str, str]) -> None:
        """Set the variables."""
        self.variables = variables
        self._before = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)

    def leave(self) -> None:
        """Give every variable its old value; remove what was built here, but for the playbook."""
        for name in self._before:
            os.environ.pop(name, None)
        os.environ.update({name: old for name, old in self._before.items() if old is not None})
        self._before = {}
        if self._built is not None:  # weights of hundreds of gigabytes are not to be copied around
            for name in ("bin", "cache", "datasets", "models", "source"):
                shutil.rmtree(self._built / name, ignore_errors=True)


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
        probes = [probe for scenario in rehearsed for probe in all_probes(scenario)]
        measured = [(one.scenario.id, one.label) for one in probes if not one.is_smoke]
        require_hits(fault, measured)
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / PLAYBOOK
    playbook = _playbook(rehearsed, engine_version, fault, seed)
    write_text(path, json.format(json.encode(playbook), indent=1).decode() + "\n")
    played = [program for program in _PLAYED if program not in real]
    for program in played:
        _put(program, folder / "bin", path)
    fake_files.models(folder / "models", rehearsed)
    fake_files.datasets(folder / "datasets", rehearsed)
    fake_files.sources(folder / "source")
    found = {
        program.variable: shlex.join([str(folder / "bin" / program.executable), *program.arguments])
        for program in (*played, programs.BENCHMARK_SERVING)
    }
    if not real:
        nodes = max((scenario.hardware.nodes for scenario in rehearsed), default=1)
        hosts = [f"rehearsal-node{number}" for number in range(1, nodes + 1)]
        found[HOSTS] = " ".join(hosts) if nodes > 1 else ""
    found |= {MODELS: str(folder / "models"), DATASETS: str(folder / "datasets")}
    found |= {TENSORRT_LLM_SOURCE: str(folder / "source"), REHEARSAL_VARIABLE: str(path)}
    return found


def _put(program: Program, folder: Path, playbook: Path) -> None:
    """An executable under the program's true name: job scripts call programs so.

    It names the playbook itself: on another node it may find none of the session's variables.
    """
    call = shlex.join([sys.executable, "-m", "perfgate.rehearsal", *_PLAYED[program].split()])
    folder.mkdir(exist_ok=True)
    path = folder / program.executable
    path.write_text(
        f"#!/bin/sh\n# A mock program of perfgate's rehearsal: what it measures is synthetic.\n"
        f'export {REHEARSAL_VARIABLE}={shlex.quote(str(playbook))}\nexec {call} "$@"\n'
    )
    make_executable(path)


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


def shortened(scenario: Scenario, fault: str | None = None) -> Scenario:
    """The scenario with time limits that fit mocks: one that is to hang is found in seconds.

    Those of other engines stay as they are: they have no mocks.
    """
    limits = HANG_LIMITS if fault == "hang" else LIMITS
    return replace(scenario, limits=limits) if scenario.engine.name in ENGINES else scenario
