"""`perfgate calibrate`: one session of fresh starts of one build, to learn this hardware's noise.

Starts the engine anew, measures each point of the sweep on each start, and adds the session to the
noise history of the hardware, from which the gate learns. Three sessions of two starts, on nights
or nodes of their own, are a good calibration. A person commits the files. docs/how-to/calibrate.md
"""

import argparse
import dataclasses
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

from perfgate.baselines.hardware_noise import HardwareNoise
from perfgate.baselines.noise_history import is_learnt_from, read_all, save
from perfgate.baselines.noise_observation import observe
from perfgate.campaign.calibration import (
    FEWEST_STARTS,
    SESSIONS,
    chosen_probes,
    measure,
    showing_noise,
)
from perfgate.campaign.campaigns import Campaigns
from perfgate.campaign.session import Session, open_session, run_path
from perfgate.cli.input_warnings import warn_of_release
from perfgate.cli.output import add_format, described, print_json, print_table
from perfgate.cli.scenario_choice import add_folder, load
from perfgate.core.errors import InputError, RunError
from perfgate.core.measurement import Json
from perfgate.core.metrics import lookup
from perfgate.core.paths import repository
from perfgate.core.programs import REHEARSAL_VARIABLE
from perfgate.gate.noise import OWN_SIGMA
from perfgate.gate.noise_components import NoiseComponents
from perfgate.gate.verdict import counted
from perfgate.launchers.site import load_site
from perfgate.machine.hardware import Machine, detect
from perfgate.plan.toolchain import BuildOverride, Toolchain
from perfgate.runs.progress_view import ProgressView
from perfgate.runs.records import RunFolder, session_facts
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import Scenario
from perfgate.scenarios.selection import pick
from perfgate.verdicts.learnt_noise import read_noise

FAILED = 1
INTERRUPTED = 130  # as shells call it when Ctrl-C ended a program


_HELP = {
    "scenario": "id of the scenario",
    "--starts": "fresh starts of this session, at least 2 (default: 2)",
    "--repeats": "measurements of each point on each start (default: 2; 1 where the program that "
    "measures has the engine inside, as each measurement is a start then)",
    "--points": "only these points of the sweep",
    "--launcher": "how programs are started",
    "--run-dir": "the run folder (default: runs/<time>-<pid>)",
    "--engine-version": "release of the engine, whose spelling is used; of vLLM or SGLang as "
    "vllm=RELEASE (default: ask the program)",
    "--engine-commit": "commit of the engine (default: ask the program)",
}


def add_options(command: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    add = described(command, _HELP)
    add("scenario")
    add("--starts", type=int, default=2, metavar="N")
    add("--repeats", type=int, metavar="R")
    add("--points", metavar="c1,c4")
    add_folder(command)
    add("--launcher", default="local")
    add("--run-dir", type=Path)
    add("--engine-version", metavar="RELEASE")
    add("--engine-commit", metavar="COMMIT")
    add_format(command)
    command.set_defaults(execute=_run)


def _run(arguments: argparse.Namespace) -> int:
    _refuse_stand_ins()
    scenario = pick(load(arguments.scenarios).scenarios, arguments.scenario)
    probes = chosen_probes(scenario, arguments.points.split(",") if arguments.points else ())
    tools, session = _prepare(probes, arguments)
    repeats = _repeats(arguments, tools, probes)
    try:
        with _recorded(session), _sigterm_interrupts():
            found = measure(probes, tools, session, arguments.starts, repeats)
            shown = next(iter(observe(session.run)), None)
            file = save(showing_noise(probes, found, shown), own=_is_own(scenario))
    except KeyboardInterrupt:
        print(
            f"\nperfgate: interrupted; no noise was stored; run folder: {session.run.path}",
            file=sys.stderr,
        )
        return INTERRUPTED
    except RunError as error:
        print(f"perfgate: {error}\nrun folder: {session.run.path}", file=sys.stderr)
        return FAILED
    known = learnt(probes, session.machine)
    sessions = _sessions(scenario)
    if arguments.format == "json":
        print_json(_plain(tools, arguments.starts, repeats, sessions, known, found.notes, file))
        return 0
    engine = tools.build
    print(
        f"{scenario.id} on {scenario.hardware.label}, {engine.name} {engine.version}: "
        f"{counted(arguments.starts, 'fresh start')}, each point measured "
        f"{counted(repeats, 'time')} on each\n"
    )
    _print(known, found.notes)
    _print_where(file, sessions, own=_is_own(scenario), run=session.run.path)
    return 0


def _is_own(scenario: Scenario) -> bool:
    return scenario.gate.reference == "self"


def _sessions(scenario: Scenario) -> int:
    """How many calibrations of the scenario's hardware are stored."""
    runs, _ = read_all(scenario.hardware.label, own=_is_own(scenario))
    return sum(
        run.kind == "calibration" and any(one.scenario == scenario.id for one in run.series)
        for run in runs
    )


def _refuse_stand_ins() -> None:
    """Noise that a rehearsal made up must never be stored."""
    if os.environ.get(REHEARSAL_VARIABLE):
        raise InputError(
            "the stand-ins of a rehearsal have no noise of their own",
            field=REHEARSAL_VARIABLE,
            found=os.environ[REHEARSAL_VARIABLE],
            hint=f"unset {REHEARSAL_VARIABLE}, and calibrate the real engine",
        )


def _prepare(probes: tuple[Probe, ...], arguments: argparse.Namespace) -> tuple[Toolchain, Session]:
    """The programs, asked whether they can do it, and a session whose folder is not yet made."""
    load_site()
    warn_of_release([probes[0].scenario], arguments.engine_version)
    run = RunFolder(run_path(arguments.run_dir, repository()))
    override = BuildOverride(arguments.engine_version, arguments.engine_commit)
    session = dataclasses.replace(
        open_session(run, detect(), arguments.launcher), override=override
    )
    campaigns = Campaigns(session)
    reason = campaigns.why_not(probes[0])
    if reason is not None:
        raise InputError(
            "this machine cannot run the scenario",
            found=reason,
            hint="`perfgate doctor` names what it can run",
        )
    return campaigns.toolchain(probes[0].scenario), session


def _repeats(arguments: argparse.Namespace, tools: Toolchain, probes: tuple[Probe, ...]) -> int:
    """Measurements of each point on each start.

    Raises:
        InputError: too few starts or repeats, or repeats on a start that serves one measurement.
    """
    if arguments.starts < FEWEST_STARTS:
        raise InputError(
            "too few fresh starts to see any noise",
            field="--starts",
            found=arguments.starts,
            expected=f"{FEWEST_STARTS} or more",
        )
    offline = any(tools.is_offline(probe) for probe in probes)
    repeats: int = (1 if offline else 2) if arguments.repeats is None else arguments.repeats
    if repeats < 1 or (offline and repeats > 1):
        raise InputError(
            "the engine is inside the program that measures, so each measurement is a fresh start"
            if repeats > 1
            else "nothing would be measured",
            field="--repeats",
            found=repeats,
            expected="1" if offline else "1 or more",
        )
    return repeats


@contextmanager
def _recorded(session: Session) -> Iterator[None]:
    """Hold the run folder, and show the progress, while the block runs."""
    facts = session_facts(session.machine, sys.argv, repository())
    run = RunFolder.create(session.run.path, {**facts, "synthetic": False, "purpose": "calibrate"})
    view = ProgressView(run.path / "progress.jsonl")
    view.start()
    try:
        yield
    finally:
        view.stop()
        run.close()


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does: the server is stopped on the way out."""

    def interrupt(number: int, _frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt(f"signal {number}")

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@dataclass(frozen=True)
class FamilyNoise:
    """What is now known of the noise of one metric's family on the hardware."""

    metric: str
    components: NoiseComponents
    prior: float
    left_out: tuple[str, ...]


def learnt(probes: Sequence[Probe], machine: Machine) -> list[FamilyNoise]:
    """The noise of each family that gates, by its first metric, as the gate would now take it."""
    scenario = probes[0].scenario
    known, itself = read_noise(scenario, machine), scenario.gate.noise == "measured"
    first: dict[str, str] = {}
    for probe in probes:
        for metric in filter(is_learnt_from, probe.gating_metrics()):
            first.setdefault(lookup(metric).family.name, metric)
    found = []
    for metric in first.values():
        family = lookup(metric).family.on(scenario.hardware.nodes)
        prior = OWN_SIGMA if itself else family.sigma
        found.append(FamilyNoise(metric, *_components(known, metric, prior)))
    return found


def _components(
    known: HardwareNoise, metric: str, prior: float
) -> tuple[NoiseComponents, float, tuple[str, ...]]:
    components, left_out = known.components(metric, prior)
    return components, prior, left_out


def _print(known: Sequence[FamilyNoise], notes: Sequence[str]) -> None:
    columns = ("family", "within a session", "between", "one start", "share", "from", "prior")
    print_table(columns, [_row(one) for one in known])
    print()
    left_out = [line for one in known for line in one.left_out]
    for line in (*notes, *(f"left out: {one}" for one in dict.fromkeys(left_out))):
        print(line)


def _row(one: FamilyNoise) -> tuple[str, ...]:
    components = one.components
    return (
        lookup(one.metric).family.name,
        f"{components.start:.2%}",
        f"{components.session:.2%}",
        f"{components.sigma:.2%}",
        f"{components.between:.2f}",
        f"{components.n_within}+{components.n_between}",
        f"{one.prior:.2%}",
    )


def _print_where(file: Path, sessions: int, *, own: bool, run: Path) -> None:
    if sessions < SESSIONS:
        print(
            f"session {sessions} of {SESSIONS}: calibrate again on another night, or another node, "
            "as sessions differ too"
        )
    print(f"noise: {file}")
    print(
        "it is used on this machine" if own else "commit this file so that it is used elsewhere too"
    )
    print(f"run folder: {run}")


def _plain(
    tools: Toolchain,
    starts: int,
    repeats: int,
    sessions: int,
    known: Sequence[FamilyNoise],
    notes: Sequence[str],
    file: Path,
) -> dict[str, Json]:
    families: dict[str, Json] = {
        lookup(one.metric).family.name: {
            "metric": one.metric,
            "start": one.components.start,
            "session": one.components.session,
            "sigma": one.components.sigma,
            "between": one.components.between,
            "differences_within": one.components.n_within,
            "differences_between": one.components.n_between,
            "prior": one.prior,
            "left_out": [*one.left_out],
        }
        for one in known
    }
    return {
        "scenario": tools.scenario.id,
        "hardware": tools.scenario.hardware.label,
        "starts": starts,
        "repeats": repeats,
        "sessions": sessions,
        "families": families,
        "notes": [*notes],
        "file": str(file),
    }
