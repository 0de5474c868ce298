"""Release run: false alarms of a whole suite, and of the probes that it is made of.

Twelve scenarios of six probes of three metrics, and the packaged suite of each GPU: each metric is
held against the baseline (one band) and against an anchor of three starts (1.5 bands, controls of
the anchor's own build). Nothing changed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from benchmarks.detection.draws import SCENARIOS, Values, source
from benchmarks.detection.error_rates import BAND, CONTROLS, CURVES, MOST_RUNS
from perfgate.core.files.paths import packaged
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.judging.assembly.bands import band_of, sigma_of
from perfgate.judging.forecast.simulation import (
    IN_SESSION,
    REAL,
    BaselineDesign,
    Control,
    NoiseScenario,
    session_counts,
    starts,
)
from perfgate.judging.rules import scale
from perfgate.judging.rules.scale import ANCHOR_MARGIN
from perfgate.judging.rules.sequential import (
    HOST_SHIFT,
    PASS,
    REGRESSION,
    Verdicts,
    combine,
    levels,
)
from perfgate.scenarios.files import load_suite
from perfgate.scenarios.probe import load_probes
from perfgate.scenarios.scenario import Scenario

METRICS = 3
ANCHOR = (3, 3)
# Of single probes, by width: bands from which on a release's error rates are told, in sigma
# (`perfgate.release.error_rates`).
PROBE_BANDS = (2.0, 3.0, 3.6, 3.9)
_AT_ONCE = 5000
_PROBES_AT_ONCE = 50_000


@dataclass(frozen=True)
class Shape:
    """One scenario of a release.

    Attributes:
        probes: its points of load.
        metrics: speeds that gate, of each.
        band: the narrowest of them, in sigma of one start.
    """

    probes: int
    metrics: int
    band: float


STUDY = "12 scenarios"
PACKAGED = ("B200", "GB200", "H200")


@cache
def shapes_of(suite: str) -> tuple[Shape, ...]:
    """The scenarios of `STUDY`, or those that the packaged suite gates on one GPU."""
    if suite == STUDY:
        return (Shape(6, METRICS, BAND),) * 12
    scenarios = load_suite(packaged() / "scenarios").scenarios
    found = [_shape(one) for one in scenarios if one.hardware.gpu == suite]
    return tuple(one for one in found if one.probes and one.metrics)


def _shape(scenario: Scenario) -> Shape:
    speeds = [one for one in scenario.gate.metrics if not is_accuracy(one)]
    bands = (
        scale.margin(lookup(one), band_of(one, scenario) or 0.0) / sigma_of(one, scenario)
        for one in speeds
    )
    return Shape(len(load_probes(scenario)), len(speeds), min(bands, default=BAND))


@dataclass(frozen=True)
class Release:
    """One kind of release run.

    Attributes:
        noise: of the starts.
        n_base, sessions: of the baseline.
        shared: whether all probes of a start meet its events, or each its own.
        control: with controls, or without.
        suite: `STUDY`, or a GPU of `PACKAGED`. No part of the repr, which names the draws.
    """

    noise: str
    n_base: int
    sessions: int
    shared: bool
    control: Control
    suite: str = field(default=STUDY, repr=False)


_GATES: tuple[tuple[str, str, Control], ...] = (
    (STUDY, "real", "controlled"),
    (STUDY, "real", "alone"),
    (STUDY, "heavy", "controlled"),
    *((gpu, "real", "controlled") for gpu in PACKAGED),
)
CASES = tuple(
    Release(noise, *size, shared, control, suite)
    for suite, noise, control in _GATES
    for size in ((10, 10), (3, 3))
    for shared in (True, False)
)


def of_releases(runs: int) -> list[dict[str, object]]:
    """Any false REGRESSION, all PASS, and the starts of a scenario, for each case."""
    return [_simulated(case, runs) for case in CASES]


def of_probes(trials: int) -> list[dict[str, object]]:
    """False REGRESSION of one metric and of one probe, and what is found of one band, by width."""
    return [
        _of_probe(control, band, *size, trials)
        for control in CONTROLS
        for band in PROBE_BANDS
        for size in CURVES
    ]


def _of_probe(
    control: Control, band: float, n_base: int, sessions: int, trials: int
) -> dict[str, object]:
    """Unchanged probes, and as many as a fifth of them that lost one band in every metric."""
    counts = dict.fromkeys(("of_a_metric", "of_a_probe", "with_anchor", "found"), 0.0)
    lost = 0
    for first in range(0, trials, _PROBES_AT_ONCE):
        size = min(_PROBES_AT_ONCE, trials - first)
        rng = source(f"probe {n_base} {sessions}", first // _PROBES_AT_ONCE)
        base = starts(rng, REAL, size, METRICS, session_counts(n_base, sessions))
        anchor = starts(rng, REAL, size, METRICS, session_counts(*ANCHOR))
        session = starts(rng, REAL, size, METRICS, [IN_SESSION])
        tests = _tests(base, sessions, 1.0, band, control, session)
        both = [*tests, *_tests(anchor, ANCHOR[1], ANCHOR_MARGIN, band, control, session)]
        counts["of_a_metric"] += sum(one.share(REGRESSION) for one in tests) / METRICS * size
        counts["of_a_probe"] += combine(tests).share(REGRESSION) * size
        counts["with_anchor"] += combine(both).share(REGRESSION) * size
        if 5 * first < trials:
            slower = _tests(base, sessions, 1.0, band, control, session, loss=1.0)
            counts["found"] += sum(one.share(REGRESSION) for one in slower) / METRICS * size
            lost += size
    shares = {name: count / (lost if name == "found" else trials) for name, count in counts.items()}
    told = {"control": control, "band": band, "n_base": n_base, "sessions": sessions}
    return {**told, "trials": trials, **shares, "found_trials": lost}


def _tests(
    base: Values,
    sessions: int,
    bands: float,
    band: float,
    control: Control,
    session: Values,
    loss: float = 0.0,
) -> list[Verdicts]:
    """Each metric against one baseline; the band is that of the nearest, in sigma."""
    design = BaselineDesign(base.shape[2], sessions, bands * band, control, MOST_RUNS)
    return [
        design.decided(
            loss,
            levels(base[:, metric].astype(np.float64), 1.0, sessions=sessions),
            session[:, metric],
        )
        for metric in range(base.shape[1])
    ]


def _simulated(case: Release, runs: int) -> dict[str, object]:
    red, red_nearest = np.zeros(runs, bool), np.zeros(runs, bool)
    passed, made = np.ones(runs, bool), 0.0
    shapes = shapes_of(case.suite)
    for scenario, shape in enumerate(shapes):
        for first in range(0, runs, _AT_ONCE):
            size, there = min(_AT_ONCE, runs - first), slice(first, first + _AT_ONCE)
            rng = source(f"release {case}", scenario * 10_000 + first // _AT_ONCE)
            nearest, probes, starts_made = _scenario(case, shape, size, rng)
            red[there] |= (probes == REGRESSION).any(axis=1)
            red_nearest[there] |= (nearest == REGRESSION).any(axis=1)
            passed[there] &= np.isin(probes, (PASS, HOST_SHIFT)).all(axis=1)
            made += float(starts_made.sum())
    return {
        "suite": case.suite,
        "comparisons": 2 * sum(one.probes * one.metrics for one in shapes),
        "noise": case.noise,
        "n_base": case.n_base,
        "shared": case.shared,
        "control": case.control,
        "trials": runs,
        "any_regression": float(red.mean()),
        "any_without_anchors": float(red_nearest.mean()),
        "all_pass": float(passed.mean()),
        "starts": made / runs / len(shapes),
    }


def _scenario(
    case: Release, shape: Shape, trials: int, rng: np.random.Generator
) -> tuple[Values, Values, Values]:
    """Codes of each probe against the baseline alone and against both; starts of the scenario."""

    def drawn(counts: list[int]) -> Values:
        return _drawn(rng, case, shape, trials, counts)

    base = drawn(session_counts(case.n_base, case.sessions))
    anchor, session = drawn(session_counts(*ANCHOR)), drawn([IN_SESSION])
    tests = _tests(base, case.sessions, 1.0, shape.band, case.control, session)
    tests += _tests(anchor, ANCHOR[1], ANCHOR_MARGIN, shape.band, case.control, session)
    nearest, probe = combine(tests[: shape.metrics]), combine(tests)
    made = (probe.new + probe.controls).reshape(trials, shape.probes).max(axis=1)
    return _by_run(nearest, trials), _by_run(probe, trials), made


def _by_run(found: Verdicts, trials: int) -> Values:
    return found.codes.reshape(trials, -1)


def _drawn(
    rng: np.random.Generator, case: Release, shape: Shape, trials: int, counts: Sequence[int]
) -> Values:
    """Starts of all probes, shape (trials × probes, metrics, starts)."""
    rows = trials * shape.probes
    kind = SCENARIOS[case.noise]
    if not case.shared:
        return starts(rng, kind, rows, shape.metrics, counts)
    quiet = NoiseScenario(kind.core, kind.between)
    events = NoiseScenario(0.0, 0.0, kind.of_starts, kind.of_sessions, kind.event_size)
    own = starts(rng, quiet, rows, shape.metrics, counts)
    of_events = starts(rng, events, trials, shape.metrics, counts)
    return own + np.repeat(of_events, shape.probes, axis=0)
