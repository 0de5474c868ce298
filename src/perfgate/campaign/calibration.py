"""Calibration: make the fresh starts of a calibration and measure on each, again and again.

Uses what a campaign uses (fresh starts, launchers, the run folder), so every program call, log and
number is in the run folder and nothing outlives it. Judges nothing.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace

from perfgate.baselines.noise_history import NoiseRun, is_learnt_from
from perfgate.campaign.disturbance_guard import measure_guarded
from perfgate.campaign.fresh_start import FreshStart, StartSetup, fresh_start
from perfgate.campaign.gpu_lease import leased, watch_start
from perfgate.campaign.session import Session
from perfgate.core.errors import InputError, MissingProgram, PerfgateError, RunError
from perfgate.gate.verdict import counted
from perfgate.machine.conditions.watch import Watch
from perfgate.plan.toolchain import Toolchain
from perfgate.runs.progress import Progress
from perfgate.runs.records import now
from perfgate.scenarios.probe import Probe, load_probes
from perfgate.scenarios.scenario import LoadPoint, Scenario
from perfgate.verdicts.references import measures_itself

FEWEST_STARTS = 2  # of one session: a single start shows nothing of how starts differ
SESSIONS = 3  # in which a calibration is best made, as sessions differ too (statistics §1)

# Seeds of a sweep's points lie as far apart as its concurrencies, a few thousand at most.
_SEEDS_APART = 1_000_000


@dataclass
class Collected:
    """What the starts gave.

    Attributes:
        starts: probe label → the numbers of the good starts that measured it, in order.
        notes: what a person should know of: failed starts, disturbed measurements.
    """

    starts: dict[str, list[int]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def chosen_probes(scenario: Scenario, labels: Sequence[str] | None) -> tuple[Probe, ...]:
    """The scenario's load probes, or those of them that are named.

    Raises:
        InputError: it has none, or none of a name.
    """
    probes = load_probes(scenario)
    if not probes:
        raise InputError(
            "nothing to calibrate: the scenario measures no load",
            file=scenario.file,
            found=scenario.id,
            expected="a scenario with a workload",
            hint="answers are compared question by question and need no noise",
        )
    known = {probe.label: probe for probe in probes}
    for label in labels or ():
        if label not in known:
            raise InputError(
                "no such point of the sweep",
                field="--points",
                found=label,
                expected="one of " + ", ".join(known),
            )
    return tuple(probe for probe in probes if not labels or probe.label in labels)


def measure(
    probes: Sequence[Probe], tools: Toolchain, session: Session, starts: int, repeats: int
) -> Collected:
    """Make `starts` fresh starts and measure every probe `repeats` times on each.

    A start that fails is told and not used. It ends early when the first two fail, or when too few
    good ones remain possible.

    Raises:
        InputError, MissingProgram: nothing can be measured at all.
        RunError: too many starts failed; the last failure.
    """
    scenario = tools.scenario
    progress = Progress(session.run.path / "progress.jsonl", scenario.id)
    found = Collected()
    steps = ["start", *([probe.label for probe in probes] * repeats)]
    failed = 0
    for number in range(1, starts + 1):
        progress.plan(steps * (starts + 1 - number))
        try:
            _start(number, probes, tools, session, repeats, progress, found)
        except (InputError, MissingProgram):
            raise
        except PerfgateError as error:
            failed += 1
            found.notes.append(f"start {number} failed: {str(error).splitlines()[0]}")
            if failed == number == 2 or starts - failed < FEWEST_STARTS:
                raise _too_few(error, failed, number) from error
    return found


def showing_noise(probes: Sequence[Probe], found: Collected, run: NoiseRun | None) -> NoiseRun:
    """The calibration, once it is known to show the noise of every metric of the gate.

    Raises:
        RunError: too few good starts of a probe, or a metric of the gate that they did not give.
    """
    given = {one.probe: one.values for one in run.series} if run else {}
    for probe in probes:
        starts = found.starts.get(probe.label, [])
        if len(starts) < FEWEST_STARTS:
            raise RunError(
                "incomplete",
                f"{counted(len(starts), 'good fresh start')} of {probe.label}, where "
                f"{FEWEST_STARTS} are needed to see any noise",
                evidence=tuple(found.notes),
                hint="fix what failed or disturbed the others, or ask for more with --starts",
            )
        gating = [name for name in probe.gating_metrics() if is_learnt_from(name)]
        missing = [name for name in gating if name not in given.get(probe.label, {})]
        if missing:
            raise RunError(
                "no_metrics",
                f"not every start of {probe.id} gave {', '.join(missing)}, which gates",
            )
    if run is None:
        raise RunError("no_metrics", "nothing was measured that has noise of its own")
    return run


def _start(
    number: int,
    probes: Sequence[Probe],
    tools: Toolchain,
    session: Session,
    repeats: int,
    progress: Progress,
    found: Collected,
) -> None:
    """One fresh start; its numbers count only when all of it went through."""
    scenario = tools.scenario
    folder = session.run.path / scenario.id / f"start-{number}-calibration"
    measured: dict[str, None] = {}
    notes = []
    with ExitStack() as stack:
        lease = stack.enter_context(leased(scenario, session, progress.note))
        setup = StartSetup(
            session.launcher, folder, session.cache, number, progress.note, lease, site=session.site
        )
        watch = stack.enter_context(watch_start(scenario, session, lease))
        with progress.step("start", f"start {number}"):
            start = stack.enter_context(fresh_start(scenario, tools, setup, probes))
        for repeat in range(1, repeats + 1):
            for probe in probes:
                what = f"start {number}: {probe.label}, {repeat} of {repeats}"
                with progress.step(probe.label, what):
                    disturbed = _once(start, probe, repeat, tools, session, watch)
                if disturbed:
                    notes.append(f"{what}: disturbed, so not used: {', '.join(disturbed)}")
                else:
                    measured[probe.label] = None
    found.notes += notes
    for label in measured:
        found.starts.setdefault(label, []).append(number)


def _once(
    start: FreshStart,
    probe: Probe,
    repeat: int,
    tools: Toolchain,
    session: Session,
    watch: Watch | None,
) -> tuple[str, ...]:
    """One measurement, written down; tells what disturbed it."""
    folder = start.setup.folder / f"repeat-{repeat}"
    here = replace(start, setup=replace(start.setup, folder=folder))
    started = now()
    measured = measure_guarded(here, _of_repeat(probe, repeat), watch)
    session.run.record(
        "calibration",
        {
            "scenario": probe.scenario.id,
            "hardware": probe.scenario.hardware.label,
            "probe": probe.label,
            "start": start.setup.number,
            "repeat": repeat,
            "machine_bound": measures_itself(probe),
            "started": started,
            "engine": asdict(tools.build),
            "fingerprint": tools.fingerprint(probe, session.machine.fingerprint()),
            "metrics": dict(measured.metrics),
            "facts": dict(measured.facts),
            "disturbed": list(measured.disturbed),
            "folder": str(folder / probe.label),
            "synthetic": session.synthetic or here.setup.lease.synthetic,
        },
    )
    return measured.disturbed


def _of_repeat(probe: Probe, repeat: int) -> Probe:
    """The probe with other requests at each repeat, so that none is served from the prefix cache.

    The first are those that the gate sends; every start gets the same ones.
    """
    if not isinstance(probe.what, LoadPoint):
        raise TypeError(f"{probe} is no point of a sweep")
    seed = probe.what.seed + _SEEDS_APART * (repeat - 1)
    return replace(probe, what=replace(probe.what, seed=seed))


def _too_few(error: PerfgateError, failed: int, made: int) -> RunError:
    return RunError(
        error.failure if isinstance(error, RunError) else "unknown",
        f"{failed} of {counted(made, 'fresh start')} failed, which leaves too few for a "
        f"calibration; the last: {str(error).splitlines()[0]}",
        evidence=error.evidence if isinstance(error, RunError) else (),
    )
