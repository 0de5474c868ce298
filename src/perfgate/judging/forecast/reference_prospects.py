"""Reference prospects: what documents and answers could show, before anything is measured. Pure."""

import math
from dataclasses import replace

from perfgate.baselines import Entry
from perfgate.core.errors import InputError
from perfgate.core.metrics import lookup
from perfgate.core.verdict import counted
from perfgate.judging.assembly.bands import band_of, resolve_band
from perfgate.judging.assembly.judgement import sigma_of
from perfgate.judging.forecast.power import Odds, bisected
from perfgate.judging.forecast.prospect import LOSSES, Prospect, placed
from perfgate.judging.forecast.start_effort import (
    BETWEEN_MACHINES,
    CHANGED_ANSWERS,
    AnswersTest,
    DocumentedTest,
    ScoreTest,
    documented_odds,
    score_odds,
)
from perfgate.judging.rules import scale
from perfgate.judging.rules.accuracy import changed_share
from perfgate.judging.rules.documented import documented_margin
from perfgate.judging.rules.noise import Noise
from perfgate.judging.rules.odds import LEAST_FOUND as LEAST_MARGIN_FOUND
from perfgate.judging.rules.odds import (
    ReferenceOdds,
    found_share,
    outcomes,
    smallest_margin,
)
from perfgate.judging.rules.scores import documented_score, least_margin
from perfgate.judging.rules.sequential import PASS, REGRESSION, Verdicts
from perfgate.scenarios.documented import DocumentedValue
from perfgate.scenarios.probe import Probe

# Evaluations that a baseline of answers should have, and the share of answers that two of one build
# differ in at most where they are simulated (statistics §7).
BASELINE_EVALUATIONS = 3
MOST_CHANGED = 0.42


def of_document(probe: Probe, metric: str, value: DocumentedValue, most: int) -> Prospect:
    """A performance metric against its documented value, which comes without a spread."""
    known = lookup(metric)
    band = resolve_band(metric, probe.scenario, value)
    margin = documented_margin(known, band.declared or 0.0)
    sigma = sigma_of(metric, probe.scenario) or known.family.sigma
    test = DocumentedTest(margin, sigma, most)
    smallest = bisected(lambda loss: documented_odds(test, loss).below)
    return Prospect(
        probe,
        metric,
        "documented",
        n_base=1,
        sessions=1,
        noise=Noise(sigma, math.inf, f"prior {sigma:.2%}, stipulated"),
        noise_from="prior",
        band=scale.band(known, margin),
        smallest=None if smallest is None else scale.band(known, smallest * margin),
        odds=tuple(_told(loss, documented_odds(test, loss)) for loss in LOSSES),
        test=test,
        notes=(f"{BETWEEN_MACHINES:.0%} between the document's machine and this one assumed",),
    )


def of_answers(probe: Probe, metric: str, entry: Entry) -> Prospect:
    """An accuracy against a baseline's answers, question by question."""
    band, evaluations = band_of(metric, probe.scenario), entry.answers(metric)
    values = entry.values(metric)
    if not values or band is None:
        return Prospect(probe, metric, "nothing", band=band)
    found = Prospect(probe, metric, "baseline", len(values), entry.sessions(metric), band=band)
    if not evaluations:
        note = "the baseline has no answers, so only the scores can be compared"
        return replace(found, notes=(note,))
    seen = changed_share(evaluations)
    changed = CHANGED_ANSWERS if seen is None else min(seen, MOST_CHANGED)
    test = AnswersTest(len(evaluations[0]), band, len(evaluations), changed)
    key = test.questions, changed, test.base_runs
    problem, warnings = _margin_too_small(found, test), tuple[str, ...]()
    if problem is not None and probe.scenario.gate.noise == "measured":
        # A scenario that measures itself may have answers that never vary: nobody knows yet.
        problem, warnings = None, ("a drop of the margin would be found too seldom",)
    said = "if" if seen is None else "as the baseline's evaluations show,"
    return replace(
        found,
        n_base=test.base_runs,
        noise_from="answers",
        smallest=smallest_margin(*key),
        odds=tuple(_of_answers(loss, outcomes(*key, band, loss * band)) for loss in LOSSES),
        test=test,
        problem=problem,
        warnings=warnings,
        notes=(
            f"{test.questions} questions, {said} {changed:.1%} of the answers differ from run to "
            "run",
        ),
    )


def _margin_too_small(found: Prospect, test: AnswersTest) -> InputError | None:
    """The error of a margin that the rule cannot hold, with what would mend it; None: it can."""
    key = test.questions, test.changed, test.base_runs
    least = smallest_margin(*key)
    if least is not None and test.margin >= least:
        return None
    share = found_share(*key, margin=test.margin)
    error = InputError(
        f"the margin of {found.metric} is too small for its questions",
        found=f"{100 * test.margin:g} points, of which {share:.0%} of drops would be found, with "
        f"{test.questions} questions and {counted(test.base_runs, 'evaluation')} of the baseline",
        expected=f"at least {LEAST_MARGIN_FOUND:.0%}",
    )
    ways = [] if least is None else [f"widen the margin to {100 * least:g} points or more"]
    more = smallest_margin(test.questions, test.changed, BASELINE_EVALUATIONS)
    if test.base_runs < BASELINE_EVALUATIONS and more is not None and more <= test.margin:
        ways.append(f"accept a baseline of {BASELINE_EVALUATIONS} evaluations")
    hint = ", or ".join(ways) or "ask more questions, or take the metric out of gate.metrics"
    return placed(found.probe, found.metric, error, hint)


def of_score(probe: Probe, metric: str, value: DocumentedValue) -> Prospect:
    """An accuracy against a documented score."""
    score = documented_score(value.value, value.stderr)
    band = resolve_band(metric, probe.scenario, value).loss
    found = Prospect(
        probe, metric, "documented", n_base=1, sessions=1, noise_from="document", band=band
    )
    if score.questions is None or band is None:
        return replace(found, notes=("a documented score without an error, taken as exact",))
    # As many questions are asked now as the documented standard error stands for.
    least, notes = least_margin(score, score.questions), tuple[str, ...]()
    if band < least:
        notes = (f"margin raised from {100 * band:.1f} points, which its error does not resolve",)
    test = ScoreTest(score, max(band, least))
    smallest = bisected(lambda loss: score_odds(test, loss).below)
    return replace(
        found,
        band=test.margin,
        smallest=None if smallest is None else smallest * test.margin,
        odds=tuple(_told(loss, score_odds(test, loss)) for loss in LOSSES),
        test=test,
        notes=notes,
    )


def _told(loss: float, found: ReferenceOdds) -> Odds:
    starts = sum(number * share for number, share in enumerate(found.starts, start=1))
    undecided = max(0.0, 1 - found.below - found.passed)
    return Odds(loss, found.below, found.passed, undecided, 0.0, starts, 0.0)


def _of_answers(loss: float, found: Verdicts) -> Odds:
    lost, passed = found.share(REGRESSION), found.share(PASS)
    return Odds(loss, lost, passed, max(0.0, 1 - lost - passed), 0.0, float(found.new.mean()), 0.0)
