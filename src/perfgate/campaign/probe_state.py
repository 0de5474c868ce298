"""Probe state: how far one probe of a campaign is, and what the campaign tells of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perfgate.baselines import BaselineRun
from perfgate.campaign.schedule import CONTROL_ROLES, StartRole
from perfgate.clients.blocks import FACT
from perfgate.clients.client_facts import NOTED
from perfgate.core.errors import RunError
from perfgate.core.measurement import Measurement
from perfgate.core.metrics import is_accuracy
from perfgate.core.rule import Rule
from perfgate.core.verdict import Against, Judgement, Verdict, counted, percent, points
from perfgate.judging.assembly.judge_input import JudgeInput, ProbeJudgement
from perfgate.judging.assembly.judgement import Reference
from perfgate.scenarios.probe import Probe


@dataclass
class ProbeState:
    """How far one probe is.

    Attributes:
        tested: the role whose measurements are judged.
        starts: role → number of the fresh start → what it gave, nothing disturbed.
        own_reference: what the reference's starts gave, as a baseline has it.
        unused_controls: which control starts are not used, and why, each in words.
        disturbed: what disturbed a start so that its numbers are not used, each in words.
        judge_input: all that its verdict rests on, but for answers found to be broken since; None:
            it rests on no numbers.
        is_dropped: it is not measured, as other answers of the build were found to be broken.
    """

    tested: StartRole = "new"
    starts: dict[StartRole, dict[int, Measurement]] = field(default_factory=dict)
    own_reference: list[BaselineRun] = field(default_factory=list)
    unused_controls: list[str] = field(default_factory=list)
    disturbed: list[str] = field(default_factory=list)
    judge_input: JudgeInput | None = None
    judged: ProbeJudgement | None = None
    comparison: Reference | None = None
    error: RunError | None = None
    folder: Path | None = None
    is_dropped: bool = False

    @property
    def measured(self) -> Mapping[int, Measurement]:
        """What is judged, by the number of its start."""
        return self.starts.get(self.tested, {})

    @property
    def measurements(self) -> list[Measurement]:
        return list(self.measured.values())

    @property
    def in_blocks(self) -> bool:
        """Whether load took turns on its build and another in short blocks."""
        return any(FACT in one.facts for one in self.measurements)

    @property
    def controls(self) -> Mapping[Against, Mapping[int, Measurement]]:
        """Which other build → number of the start → what that build gave in this session."""
        found = {against: self.starts.get(role) for against, role in CONTROL_ROLES.items()}
        return {against: given for against, given in found.items() if given}

    @property
    def open(self) -> bool:
        """Whether another start of the build under test would serve it."""
        if self.error is not None:
            return False
        return self.judged is None or self.judged.needs_more_runs

    @property
    def controls_wanted(self) -> frozenset[Against]:
        """The builds of which a control comes before the next start of the build under test."""
        if not self.open or self.judged is None:
            return frozenset()
        return self.judged.controls_wanted

    @property
    def suspected(self) -> frozenset[Against]:
        """What a loss against it is not excluded yet, while another start may decide it."""
        return suspected(self.judged) if self.open and self.judged else frozenset()


def suspected(judged: ProbeJudgement) -> frozenset[Against]:
    """What a loss against it is neither proved nor excluded yet."""
    open_ones = [one for one in judged.judgements if one.needs_more_runs]
    return frozenset(one.against for one in open_ones) if judged.needs_more_runs else frozenset()


def why_not_used(state: ProbeState) -> str:
    """Why starts were not used."""
    return f"disturbed, so not used: {'; '.join(state.disturbed)}"


def _answered(measured: Measurement) -> str:
    """What a smoke test saw."""
    facts = measured.facts
    said = f"it answered: {facts.get('first_answer') or facts.get('answers', 'every prompt')}"
    other = facts.get("not_as_documented")
    if not isinstance(other, list) or not other:
        return said
    prompts = ", ".join(repr(prompt) for prompt in other)
    return f"{said}; not the text that the document gives for another release: {prompts}"


def smoke_input(probe: Probe, sides: Mapping[str, Sequence[Measurement]]) -> JudgeInput:
    """All that the verdict of a smoke test rests on: that it answered.

    Args:
        probe: the test.
        sides: name of each build, empty where there is one → what it gave.
    """
    reason = "; ".join(
        f"{name}: {_answered(given[-1])}" if name else _answered(given[-1])
        for name, given in sides.items()
    )
    return JudgeInput.of(probe.scenario, probe.label, Rule(), verdict=Verdict.PASS, reason=reason)


def not_reported(measurements: Sequence[Measurement]) -> Iterator[str]:
    """Which settings that were asked for a report does not show; said once for all starts."""
    silent = [one.facts.get("asked_not_reported") for one in measurements]
    names = dict.fromkeys(str(name) for one in silent if isinstance(one, list) for name in one)
    if names:
        yield (
            f"the report does not show {', '.join(names)}: that it was in force as asked is not "
            "established"
        )


def told_of_client(measurements: Sequence[Measurement]) -> Iterator[str]:
    """What the releases of client and server, and the prompts, differ in; each said once."""
    told = [str(one.facts[name]) for one in measurements for name in NOTED if name in one.facts]
    yield from dict.fromkeys(told)


_BUILD = {"baseline": "the baseline's build", "anchor": "the anchor's build"}


def why_another(states: Sequence[tuple[Probe, ProbeState]], controls: Against | None) -> str:
    """What is still open: ``c4: output_throughput undecided after 1 start (-1.2 %, …)``.

    Args:
        states: the probes that the start serves, with what is known of each.
        controls: whose build it is a control of; None: it is of the build under test.
    """
    open_ones = [
        (probe, one)
        for probe, state in states
        if state.judged is not None
        for one in state.judged.judgements
        if one.needs_more_runs and controls in (None, one.against)
    ]
    who = "" if controls is None else f"control, {_BUILD.get(controls, controls)}: "
    if not open_ones:
        return f"{who}for a claim or a curve that is undecided"
    probe, worst = max(open_ones, key=lambda one: _bands(one[1]))
    more = f", and {len(open_ones) - 1} more" if len(open_ones) > 1 else ""
    return f"{who}{probe.label}: {_undecided(worst)}{more}"


def _bands(one: Judgement) -> float:
    return abs(one.change or 0.0) / (one.band or 1.0)


def _undecided(one: Judgement) -> str:
    after = f"{one.metric} undecided after {counted(one.runs_used, 'start')}"
    if one.change is None or one.interval is None or one.band is None:
        return after
    shown = points if is_accuracy(one.metric) else _percent
    unit = "points" if is_accuracy(one.metric) else "%"
    low, high = one.interval
    return (
        f"{after} ({shown(one.change)} {unit}, interval {shown(low)}…{shown(high)} {unit}, "
        f"band {100 * one.band:.3g} {unit})"
    )


def _percent(share: float) -> str:
    return percent(share).removesuffix(" %")
