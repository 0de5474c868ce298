"""`perfgate calibrate`: how noisy one scenario is on this machine, from fresh starts of one build.

Starts the engine anew several times, measures each point of the sweep on each start, and estimates
the noise between starts and within one. The gate then uses it instead of the prior of the metric's
family. A person commits the file. docs/how-to/calibrate.md
"""

import argparse
import dataclasses
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

from perfgate.baselines.calibrated_noise import Calibrated, noise_file, read, save
from perfgate.baselines.noise_spread import FEWEST_STARTS, Spread
from perfgate.campaign.calibration import chosen_probes, measure, noise_of
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
from perfgate.gate.verdict import counted
from perfgate.launchers.site import load_site
from perfgate.machine.hardware import detect
from perfgate.plan.toolchain import BuildOverride, Toolchain
from perfgate.runs.progress import ProgressView
from perfgate.runs.records import RunFolder, now, session_facts
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.selection import pick

FAILED = 1
INTERRUPTED = 130  # as shells call it when Ctrl-C ended a program


_HELP = {
    "scenario": "id of the scenario",
    "--starts": "fresh starts, at least 5 (default: 10)",
    "--repeats": "measurements of each point on each start (default: 2; 1 where the program that "
    "measures has the engine inside, as each measurement is a start then)",
    "--points": "only these points of the sweep",
    "--replace": "overwrite the noise that is already stored",
    "--launcher": "how programs are started",
    "--run-dir": "the run folder (default: runs/<time>-<pid>)",
    "--engine-version": "release of the engine, whose spelling is used (default: ask the program)",
    "--engine-commit": "commit of the engine (default: ask the program)",
}


def add_options(command: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    add = described(command, _HELP)
    add("scenario")
    add("--starts", type=int, default=10, metavar="N")
    add("--repeats", type=int, metavar="R")
    add("--points", metavar="c1,c4")
    add("--replace", action="store_true")
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
    file = noise_file(scenario)
    before, why_unreadable = _before(file, replace=arguments.replace)
    tools, session = _prepare(probes, arguments)
    repeats = _repeats(arguments, tools, probes)
    try:
        with _recorded(session), _sigterm_interrupts():
            calibrated, notes = _measure(probes, tools, session, arguments.starts, repeats)
            save(calibrated, file)
    except KeyboardInterrupt:
        print(
            f"\nperfgate: interrupted; no noise was stored; run folder: {session.run.path}",
            file=sys.stderr,
        )
        return INTERRUPTED
    except RunError as error:
        print(f"perfgate: {error}\nrun folder: {session.run.path}", file=sys.stderr)
        return FAILED
    notes = [*why_unreadable, *notes]
    if arguments.format == "json":
        print_json(_plain(calibrated, before, notes, file, session.run.path))
    else:
        _print(calibrated, before, notes, probes)
        _print_where(file, own=scenario.gate.reference == "self", run=session.run.path)
    return 0


def _refuse_stand_ins() -> None:
    """Noise that a rehearsal made up must never be stored."""
    if os.environ.get(REHEARSAL_VARIABLE):
        raise InputError(
            "the stand-ins of a rehearsal have no noise of their own",
            field=REHEARSAL_VARIABLE,
            found=os.environ[REHEARSAL_VARIABLE],
            hint=f"unset {REHEARSAL_VARIABLE}, and calibrate the real engine",
        )


def _before(file: Path, *, replace: bool) -> tuple[Calibrated | None, list[str]]:
    """What is stored now, and why it cannot be read if so.

    Raises:
        InputError: there is something, and nobody said that it may be replaced.
    """
    if not file.exists():
        return None, []
    if not replace:
        raise InputError(
            "the noise of this scenario is already stored",
            file=file,
            field="--replace",
            hint="use --replace to measure it again; the old and the new noise are then shown",
        )
    try:
        return read(file), []
    except InputError as error:
        return None, [f"what was stored could not be read: {error.problem}"]


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
            "too few fresh starts to know their noise",
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


def _measure(
    probes: tuple[Probe, ...], tools: Toolchain, session: Session, starts: int, repeats: int
) -> tuple[Calibrated, list[str]]:
    found = measure(probes, tools, session, starts, repeats)
    noise = noise_of(probes, found)
    calibrated = Calibrated(
        scenario=tools.scenario.id,
        hardware=tools.scenario.hardware.label,
        engine=tools.build,
        machine=session.machine.fingerprint(),
        run=session.run.id,
        at=now(),
        starts=starts,
        repeats=repeats,
        probes=noise,
    )
    return calibrated, found.notes


def _print(
    calibrated: Calibrated, before: Calibrated | None, notes: list[str], probes: tuple[Probe, ...]
) -> None:
    engine = calibrated.engine
    print(
        f"{calibrated.scenario} on {calibrated.hardware}, {engine.name} {engine.version}: "
        f"{counted(calibrated.starts, 'fresh start')}, each point measured "
        f"{counted(calibrated.repeats, 'time')} on each\n"
    )
    metrics = {probe.label: calibrated.probes[probe.label].metrics for probe in probes}
    columns = ("probe", "metric", "between starts", "within one", "one start", "dof", "before")
    print_table(
        columns,
        [
            _row(probe.label, name, metrics[probe.label][name], _sigma(before, probe.label, name))
            for probe in probes
            for name in probe.gating_metrics()
        ],
    )
    print()
    others = sum(len(metrics[probe.label].keys() - set(probe.gating_metrics())) for probe in probes)
    if others:
        print(f"and {counted(others, 'metric')} that do not gate, in the file")
    for label in before.probes if before else ():
        if label not in calibrated.probes:
            print(f"{label}: its stored noise is removed: it was not measured again")
    for line in notes:
        print(line)


def _row(label: str, metric: str, noise: Spread, before: float | None) -> tuple[str, ...]:
    return (
        label,
        metric,
        f"{noise.between:.2%}",
        "-" if noise.within is None else f"{noise.within:.2%}",
        f"{noise.sigma:.2%}",
        f"{noise.dof:.1f}",
        f"{lookup(metric).family.sigma:.2%} (prior)" if before is None else f"{before:.2%}",
    )


def _sigma(calibrated: Calibrated | None, label: str, metric: str) -> float | None:
    """The noise of one start that was stored; None: there is none."""
    probe = calibrated.probes.get(label) if calibrated else None
    found = probe.metrics.get(metric) if probe else None
    return found.sigma if found else None


def _print_where(file: Path, *, own: bool, run: Path) -> None:
    print(f"noise: {file}")
    print(
        "it is used on this machine" if own else "commit this file so that it is used elsewhere too"
    )
    print(f"run folder: {run}")


def _plain(
    calibrated: Calibrated, before: Calibrated | None, notes: list[str], file: Path, run: Path
) -> dict[str, Json]:
    probes: dict[str, Json] = {
        label: {
            name: {
                "between": one.between,
                "within": one.within,
                "sigma": one.sigma,
                "dof": one.dof,
                "before": _sigma(before, label, name),
            }
            for name, one in noise.metrics.items()
        }
        for label, noise in calibrated.probes.items()
    }
    return {
        "scenario": calibrated.scenario,
        "hardware": calibrated.hardware,
        "starts": calibrated.starts,
        "repeats": calibrated.repeats,
        "probes": probes,
        "notes": [*notes],
        "file": str(file),
        "run": str(run),
    }
