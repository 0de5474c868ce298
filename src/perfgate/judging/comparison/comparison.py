"""Comparison: the gate's verdicts for two things that were measured, A the reference, B the new
one.

Pure. Reading them is the business of `perfgate.judging.comparison.sides`, showing the result
that of `perfgate.reports.comparison`.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from perfgate.core.errors import InputError
from perfgate.core.metrics import lookup
from perfgate.judging.comparison.probe import (
    ComparisonOptions,
    ProbeComparison,
    compare_probe,
    facts_of,
    shared_metrics,
)
from perfgate.judging.comparison.sides import Measured, Side

SCENARIO = "scenario"  # named as meant to differ, probes are matched by their labels alone


@dataclass(frozen=True)
class Comparison:
    """All that a comparison gives; `only_in_a` and `only_in_b` name probes."""

    a: Side
    b: Side
    probes: tuple[ProbeComparison, ...]
    only_in_a: tuple[str, ...] = ()
    only_in_b: tuple[str, ...] = ()

    @property
    def synthetic(self) -> bool:
        """Whether stand-ins made numbers of either side."""
        return self.a.synthetic or self.b.synthetic

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader should know of the sides."""
        told = [f"{name}: {text}" for name, side in self._sides() for text in side.warnings]
        told += [
            f"{name}: injected: {', '.join(side.injected)}"
            for name, side in self._sides()
            if side.injected
        ]
        return tuple(told)

    def _sides(self) -> tuple[tuple[str, Side], tuple[str, Side]]:
        return ("A", self.a), ("B", self.b)


def compare(a: Side, b: Side, options: ComparisonOptions) -> Comparison:
    """Judge the new side B against the reference A, probe by probe.

    Raises:
        InputError: a run is on both sides, a name that is asked for is not there, or values that
            cannot be judged.
    """
    a, b = _chosen(a, options.probes), _chosen(b, options.probes)
    _require_two(a, b)
    pairs, only_a, only_b = _pairs(a, b, options.across)
    _require_known(options, pairs)
    return Comparison(a, b, tuple(compare_probe(*pair, options) for pair in pairs), only_a, only_b)


def _chosen(side: Side, names: Sequence[str]) -> Side:
    """The side with the named probes only; results of other tools have but one, and no name."""
    if not names or side.kind == "files":
        return side
    for name in names:
        if not any(name in (probe.name, probe.label) for probe in side.probes):
            raise InputError(
                f"no such probe in {side.path}",
                field="--probe",
                found=name,
                expected="one of " + ", ".join(probe.name for probe in side.probes),
            )
    kept = [probe for probe in side.probes if {probe.name, probe.label} & set(names)]
    return replace(side, probes=tuple(kept))


def _require_two(a: Side, b: Side) -> None:
    """Refuse a run that is on both sides: it would pass whatever the build is like."""
    known = {one for probe in a.probes for one in probe.identities}
    shared = sorted(known & {one for probe in b.probes for one in probe.identities})
    if shared or a.path.resolve() == b.path.resolve():
        raise InputError(
            "both sides hold the same run, which proves nothing",
            file=b.path,
            found=shared[0] if shared else str(a.path),
            expected="two builds, each measured on its own",
            hint="name the run of the other build",
        )


Pair = tuple[str, Measured, Measured]


def _pairs(
    a: Side, b: Side, across: Collection[str]
) -> tuple[list[Pair], tuple[str, ...], tuple[str, ...]]:
    """The probes that both sides have, and the names of those that only one has."""
    if "files" in (a.kind, b.kind):
        for side in (a, b):
            if len(side.probes) != 1:
                raise InputError(
                    "results of another tool can be compared with one probe only",
                    file=side.path,
                    field="--probe",
                    found=", ".join(probe.name for probe in side.probes),
                    expected="the name of one of them",
                )
        one, other = a.probes[0], b.probes[0]
        name = other.name if a.kind == "files" else one.name
        return [(name, one, other)], (), ()
    of_a, of_b = (_by_name(side, by_label=SCENARIO in across) for side in (a, b))
    pairs = [(name, probe, of_b[name]) for name, probe in of_a.items() if name in of_b]
    return (
        pairs,
        tuple(name for name in of_a if name not in of_b),
        tuple(name for name in of_b if name not in of_a),
    )


def _by_name(side: Side, *, by_label: bool) -> dict[str, Measured]:
    if not by_label:
        return {probe.name: probe for probe in side.probes}
    scenarios = sorted({probe.scenario for probe in side.probes})
    if len(scenarios) > 1:
        raise InputError(
            "probes of several scenarios cannot be matched by their labels",
            file=side.path,
            field="--across",
            found=", ".join(scenarios),
            expected=f"one scenario on each side, as {SCENARIO} is meant to differ",
            hint="choose the probes of one scenario with --probe",
        )
    return {probe.label: probe for probe in side.probes}


def _require_known(options: ComparisonOptions, pairs: Sequence[Pair]) -> None:
    """Refuse names of facts and metrics that nothing here has: most likely they are misspelt."""
    facts = {SCENARIO} | {name for _, a, b in pairs for side in facts_of(a, b) for name in side}
    unknown = sorted(options.across - facts)
    if unknown and pairs:
        raise InputError(
            "no such fact",
            field="--across",
            found=", ".join(unknown),
            expected="facts of both sides: " + ", ".join(sorted(facts)),
        )
    shared = sorted({name for _, a, b in pairs for name in shared_metrics(a, b)[0]})
    given = [("--band", name) for name in options.bands] + [
        ("--metric", n) for n in options.metrics
    ]
    for option, metric in given:
        lookup(metric)
        if pairs and metric not in shared:
            raise InputError(
                "the two sides do not share this metric",
                field=option,
                found=metric,
                expected="one of " + (", ".join(shared) or "none, as they share no metric"),
            )
    for metric in options.metrics:
        if metric not in options.bands and lookup(metric).family.band is None:
            raise InputError(
                f"{metric} has no band of its own, so that it cannot be judged",
                field="--metric",
                hint=f"add --band {metric}=FRACTION: the loss that counts",
            )
