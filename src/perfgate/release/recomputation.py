"""Recomputation: the verdicts of a run, computed anew from its raw files."""

from dataclasses import dataclass

from perfgate.gate.verdict import Verdict


@dataclass(frozen=True)
class Recomputed:
    """One verdict, computed anew.

    Attributes:
        run: id of the run.
        test: id of the probe, curve or claim.
        recorded: the verdict that the run's records have; None: it has none.
        verdict: what the raw files give; None: it cannot be computed.
        differences: what is not as recorded, one line each, with both numbers; empty: all is.
        not_recomputed: what was taken from the records, as no file holds it, one line each.
        metrics: gating metrics whose judgement was computed anew.
    """

    run: str
    test: str
    recorded: Verdict | None
    verdict: Verdict | None
    differences: tuple[str, ...] = ()
    not_recomputed: tuple[str, ...] = ()
    metrics: int = 0
