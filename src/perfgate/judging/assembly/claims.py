"""Claims: a documented statement about one result or two, and its `JudgeInput`. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfgate.baselines import Entry
from perfgate.core.errors import InputError
from perfgate.core.measurement import Measurement
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.rule import Rule
from perfgate.core.verdict import Judgement
from perfgate.judging.assembly.judge_input import JudgeInput
from perfgate.judging.assembly.measured import answers_of, measured_score
from perfgate.judging.rules.accuracy import Answers, Score
from perfgate.judging.rules.claims import (
    EarlierStarts,
    Statement,
    judge_accuracy_claim,
    judge_claim,
)
from perfgate.scenarios.claims import claims_of
from perfgate.scenarios.files import LoadedSuite
from perfgate.scenarios.probe import Probe, all_probes
from perfgate.scenarios.scenario import Claim, Scenario


@dataclass(frozen=True)
class ClaimProbe:
    """A claim and the probes whose measurements decide it.

    Attributes:
        claim: the statement.
        probe: what it speaks of.
        versus: what that is compared with; None: a number.
    """

    claim: Claim
    probe: Probe
    versus: Probe | None = None

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def scenario(self) -> Scenario:
        """The scenario that the claim speaks of."""
        return self.probe.scenario

    @property
    def id(self) -> str:
        return self.claim.id

    @property
    def label(self) -> str:
        return self.claim.id

    @property
    def probes(self) -> tuple[Probe, ...]:
        """What must be measured."""
        return (self.probe,) if self.versus is None else (self.probe, self.versus)

    @property
    def takes_turns(self) -> bool:
        """Whether both sides take turns in starts made for the claim: where a start is cheap.

        That is without a GPU. Scores do not depend on when they are measured.
        """
        starts = [one.is_load and one.scenario.hardware.gpu == "none" for one in self.probes]
        return self.versus is not None and all(starts)

    @property
    def own_noise(self) -> bool:
        """Whether a side says that the noise which the machine shows decides."""
        return any(one.scenario.gate.noise == "measured" for one in self.probes)


def claim_probes(claims: Sequence[Claim], scenarios: Sequence[Scenario]) -> tuple[ClaimProbe, ...]:
    """The claims with their probes.

    Raises:
        InputError: a claim names no scenario, or one without such a probe.
    """
    by_id = {scenario.id: scenario for scenario in scenarios}
    return tuple(
        ClaimProbe(
            claim,
            _probe(claim, by_id, claim.scenario),
            None if claim.versus is None else _probe(claim, by_id, claim.versus),
        )
        for claim in claims
    )


def claims_of_suite(suite: LoadedSuite) -> tuple[ClaimProbe, ...]:
    """All claims of a suite: floors and those of its files; errors as of `claim_probes`."""
    return claim_probes(claims_of(suite.scenarios, suite.claims), suite.scenarios)


def _probe(claim: Claim, scenarios: dict[str, Scenario], name: str) -> Probe:
    scenario = scenarios.get(name)
    for probe in all_probes(scenario) if scenario else ():
        if is_accuracy(claim.metric):
            if not probe.is_load and claim.metric.split(":")[1] == probe.label:
                return probe
        elif probe.is_load and claim.concurrency in (None, getattr(probe.what, "concurrency", 0)):
            return probe
    raise InputError(
        "claim about what no scenario measures",
        field=f"claim {claim.id}",
        found=f"{claim.metric} of {name}",
        expected="a metric that this scenario gives",
    )


@dataclass(frozen=True)
class ClaimTest:
    """A claim and the numbers of both sides: that which it speaks of, then the other one.

    Attributes:
        claim: the statement.
        values: of a speed: one per fresh start of each side.
        answers: of an accuracy: those of each evaluation.
        scores: of an accuracy: that of the first evaluation of each side.
        earlier: that one side is a baseline's; None: both are of one session.
        own_noise: whether the machine's own noise decides.
        sigma: noise of one fresh start of a speed.
    """

    claim: Claim
    values: tuple[Sequence[float], ...] = ()
    answers: tuple[Sequence[Answers], ...] = ()
    scores: tuple[Score | None, ...] = ()
    earlier: EarlierStarts | None = None
    own_noise: bool = False
    sigma: float | None = None

    def judge(self, rule: Rule) -> Judgement:  # noqa: ARG002 (a claim has its own)
        """REGRESSION: it does not hold.

        Raises:
            InputError: nothing to compare, or values that cannot be judged.
        """
        statement = Statement(self.claim)
        if statement.is_accuracy:
            new, versus = self.scores
            return judge_accuracy_claim(
                statement, *self.answers, new_score=new, versus_score=versus
            )
        return judge_claim(
            statement,
            *self.values,
            earlier=self.earlier,
            own_noise=self.own_noise,
            sigma=self.sigma,
        )


def claim_test(
    claim: Claim,
    new: Sequence[Measurement],
    versus: Sequence[Measurement] = (),
    *,
    nodes: int = 1,
    earlier: EarlierStarts | None = None,
    own_noise: bool = False,
) -> ClaimTest:
    """A claim and the measurements of both sides, one per fresh start; none: it has one side.

    Other arguments as the fields of `ClaimTest`.

    Raises:
        InputError: a score of an unknown number of questions.
    """
    metric, sides = claim.metric, (new, versus)
    if is_accuracy(metric):
        answers = tuple(answers_of(metric, side) for side in sides)
        scores = tuple(measured_score(metric, side[0]) if side else None for side in sides)
        return ClaimTest(claim, answers=answers, scores=scores)
    values = tuple([one.metrics[metric] for one in side] for side in sides)
    sigma = lookup(metric).family.on(nodes).sigma
    return ClaimTest(claim, values, earlier=earlier, own_noise=own_noise, sigma=sigma)


def claim_input(
    claim_probe: ClaimProbe, sides: Mapping[Probe, Sequence[Measurement] | Entry]
) -> JudgeInput:
    """All that the verdict of a claim rests on.

    Args:
        claim_probe: the claim.
        sides: each of its probes → its measurements, one per fresh start; at most one is an
            accepted baseline instead.

    Raises:
        InputError: a score of an unknown number of questions.
    """
    claim, scenario = claim_probe.claim, claim_probe.scenario
    given, earlier = [], None
    for probe in claim_probe.probes:
        side = sides[probe]
        if isinstance(side, Entry):
            of_claim = probe == claim_probe.probe
            earlier = EarlierStarts("new" if of_claim else "other", side.sessions(claim.metric))
            side = stored_measurements(side, claim.metric)
        given.append(side)
    test = claim_test(
        claim,
        *given,
        nodes=scenario.hardware.nodes,
        earlier=earlier,
        own_noise=claim_probe.own_noise,
    )
    return JudgeInput.of(scenario, claim_probe.label, Rule(), tests=[test])


def stored_measurements(entry: Entry, metric: str) -> list[Measurement]:
    """A baseline's fresh starts that have the metric, as measurements."""
    return [
        Measurement(run.metrics, {}, run.answers) for run in entry.runs if metric in run.metrics
    ]
