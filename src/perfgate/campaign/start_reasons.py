"""Start reasons: why a further fresh start is made, in one sentence for who looks on. Pure."""

from collections.abc import Sequence

from perfgate.campaign.probe_state import ProbeState
from perfgate.core.metrics import is_accuracy
from perfgate.core.verdict import Against, Judgement, counted, percent, points
from perfgate.scenarios.probe import Probe

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
    told = points if is_accuracy(one.metric) else _percent
    unit = "points" if is_accuracy(one.metric) else "%"
    low, high = one.interval
    return (
        f"{after} ({told(one.change)} {unit}, interval {told(low)}…{told(high)} {unit}, "
        f"band {100 * one.band:.3g} {unit})"
    )


def _percent(share: float) -> str:
    return percent(share).removesuffix(" %")
