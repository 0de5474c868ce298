"""Run conclusion: verdict per test and exit status of a finished run, from its records alone."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from perfgate.baselines.waivers import Waiver, WaiverFault, faults, known_of
from perfgate.core.verdict import Verdict
from perfgate.judging.assembly.exit_status import ExitStatus, exit_status, worst
from perfgate.judging.assembly.sweeps import SweepProbe, sweep_probes
from perfgate.scenarios.probe import Probe, all_probes
from perfgate.scenarios.scenario import Scenario

Record = Mapping[str, Any]

_FAILING = frozenset({Verdict.REGRESSION, Verdict.INCONCLUSIVE, Verdict.ERROR})


@dataclass(frozen=True)
class RunConclusion:
    """How a run ended.

    Attributes:
        status: its exit status.
        faults: waivers that do not hold.
        failed: tests that failed though no verdict of theirs did it, sorted.
    """

    status: ExitStatus
    faults: tuple[WaiverFault, ...] = ()
    failed: tuple[str, ...] = ()


def conclude(
    records: Sequence[Record],
    failed: Collection[str],
    with_bug: Collection[str] = (),
    *,
    scenarios: Sequence[Scenario],
    waivers: Sequence[Waiver] = (),
    today: date,
    gate: bool,
    record: bool = False,
    rehearsed: bool,
) -> RunConclusion:
    """Sum a run up.

    Args:
        records: all of the run's records.
        failed: ids of the tests, or files, that pytest saw fail.
        with_bug: ids of those that ended in a bug of perfgate.
        scenarios: all of the suite, by which a waiver is known or unknown.
        waivers: the losses that people let through.
        today: the day that waivers are held against.
        gate: whether every selected test must have a verdict.
        record: whether the run is to record what later ones are compared with.
        rehearsed: whether stand-ins made the numbers; as a verdict that says so.
    """
    selected = {test for line in records if line["record"] == "selected" for test in line["tests"]}
    ends = [line for line in records if line["record"] == "verdict"]
    verdicts: dict[str, Verdict | None] = dict.fromkeys(selected)
    for line in ends:
        verdicts[line["test"]] = Verdict(line["verdict"])
    # Their verdicts did not make them fail: a crashed worker, a full disk, or a test of others.
    without = tuple(sorted(test for test in failed if verdicts.get(test) not in _FAILING))
    verdicts |= dict.fromkeys(without, Verdict.ERROR)
    subjects: list[Probe | SweepProbe] = []
    for scenario in scenarios:
        subjects += [*all_probes(scenario), *sweep_probes(scenario)]
    known = known_of(subjects)
    rehearsed = rehearsed or any(line["synthetic"] for line in ends)
    # What stand-ins played says nothing of a loss that was let through.
    found = () if rehearsed else faults(waivers, ends, known=known, today=today)
    status = exit_status(
        verdicts.values(), gate=gate, record=record, rehearsed=rehearsed, waivers_hold=not found
    )
    if with_bug:
        status = worst([status, ExitStatus.INTERNAL_ERROR])
    return RunConclusion(status, found, without)
