"""Certificate content: what the person who signs must know, as short texts and lines. Pure.

Markdown and the page show the same content; how is their business. Texts are as the check has them:
who shows them escapes them.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from perfgate.core.rule import VERSION as RULE
from perfgate.core.verdict import Judgement, Verdict, counted
from perfgate.release.check_result import CheckedTest, Finding, ReleaseCheck, Result
from perfgate.release.pack_manifest import PackedFile, Role
from perfgate.release.policy import Effect, Required
from perfgate.reports.outcome_text import interval, signed
from perfgate.reports.overview import allowed, known
from perfgate.reports.page.signs import Sign
from perfgate.reports.run_report import RunFacts

MOST_SCENARIOS = 14
"""Lines of scenarios that a page has room for; the worst come first."""
MOST_GROUPS = 6
"""Lines of waivers, of requirements, of runs."""
MOST_REASONS = 20
"""Lines of failures, and of warnings."""

RESULTS: Mapping[Result, Sign] = {
    "PASSED": Sign("●", "PASSED", "good", 2),
    "WARNED": Sign("◆", "WARNED", "open", 1),
    "FAILED": Sign("▼", "FAILED", "bad", 0),
}
EFFECTS: Mapping[Effect, Sign] = {
    "fail": Sign("▼", "failed", "bad", 0),
    "warn": Sign("◆", "warning", "open", 1),
    "pass": Sign("●", "passed", "good", 2),
}
# Roles whose files a verdict rests on, in the order in which they are shown.
HASHED: Mapping[Role, str] = {
    "policy": "policy",
    "scenarios": "scenarios",
    "baseline": "baselines",
    "waivers": "waivers",
    "noise": "learnt noise",
    "run": "run facts",
    "records": "records",
    "raw": "raw results",
}


@dataclass(frozen=True)
class ScenarioLine:
    """One scenario on one hardware.

    Attributes:
        sign: of the worst of its tests.
        finding: what there is of that test, in a word.
        scenario: which.
        hardware: on which; empty: the release has but one.
        tests: how many passed of how many that are required, ``4 of 5``.
        metric: the worst metric; empty: there is none.
        test: whose metric it is, as its probe is called; with no metric, which test and why.
        change, interval, band, starts, controls: of that metric; "-" where there is none.
    """

    sign: Sign
    finding: str
    scenario: str
    hardware: str
    tests: str
    metric: str
    test: str
    change: str = "-"
    interval: str = "-"
    band: str = "-"
    starts: str = "-"
    controls: str = "-"


@dataclass(frozen=True)
class Group:
    """Tests of which the same is said.

    Attributes:
        what: one word or two; empty: the sentence says it.
        why: one sentence; may be empty.
        names: of the tests, in their order; empty: it is said of the whole.
    """

    what: str
    why: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Root:
    """The files of one role.

    Attributes:
        role: in words.
        files: how many.
        sha256: of them all (`root_of`).
    """

    role: str
    files: int
    sha256: str


def result_of(check: ReleaseCheck) -> Result:
    """The result as it is shown: never better than what the tests are, nor a pass of nothing."""
    failed = check.result == "FAILED" or check.faults or check.with_effect("fail")
    if failed or not check.metrics_checked:
        return "FAILED"
    warned = check.result == "WARNED" or check.warnings or check.with_effect("warn")
    return "WARNED" if warned else "PASSED"


def meaning(check: ReleaseCheck) -> str:
    """What the result says, one sentence."""
    fails = len(check.with_effect("fail"))
    warns = len(check.with_effect("warn")) + len(check.warnings)
    if not check.metrics_checked:
        return "Nothing was checked: no metric of a required test has a verdict from numbers."
    if result_of(check) == "FAILED":
        failed = f"{fails} of {counted(len(check.tests), 'required test')} failed"
        if not fails:
            failed = "its tests are well, the whole is not" if check.faults else "its check failed"
        return f"Not to be released by this policy: {failed}."
    if result_of(check) == "WARNED":
        return f"Fit for release by this policy, with {counted(warns, 'warning')}."
    return (
        f"Fit for release by this policy: all {counted(len(check.tests), 'required test')} passed."
    )


def stamps(check: ReleaseCheck) -> tuple[str, ...]:
    """The words that go across the page."""
    synthetic = any(
        one.finding == Finding.SYNTHETIC or (one.result is not None and one.result.synthetic)
        for one in check.tests
    )
    failed = result_of(check) == "FAILED"
    return (*(["SYNTHETIC"] if synthetic else []), *(["FAILED"] if failed else []))


def asked(check: ReleaseCheck) -> list[tuple[str, str]]:
    """What was asked, name and words."""
    policy, build = check.policy, check.policy.build
    name = " ".join(filter(None, (build.engine, build.version)))
    words = [name, build.commit and f"commit {build.commit}", build.image]
    hardware = dict.fromkeys(one.hardware for one in check.tests if one.hardware)
    effects = [f"{name} counts as {effect}" for name, effect in policy.effects.items()]
    return [
        ("release", policy.release),
        ("build", ", ".join(filter(None, words))),
        ("hardware", ", ".join(hardware) or "none"),
        ("policy", f"sha256 {policy.sha256}" if policy.sha256 else "not hashed"),
        (
            "rules",
            "; ".join(
                [
                    f"runs at most {policy.max_age_days:g} days old",
                    *effects,
                    f"false alarms allowed in {100 * policy.false_alarms:g} % of releases",
                ]
            ),
        ),
    ]


def requirements(check: ReleaseCheck) -> list[str]:
    """One line a requirement."""
    return [_requirement(one, check) for one in check.policy.required]


def _requirement(one: Required, check: ReleaseCheck) -> str:
    tests = sum(test.requirement == one.name for test in check.tests)
    told = [
        f"{one.name}: {counted(tests, 'test')}" if tests else f"{one.name}:",
        one.select and f"selected by {one.select}",
        one.tests and f"named: {', '.join(one.tests[:3])}" + (", …" if len(one.tests) > 3 else ""),
        one.hardware and f"on {one.hardware}",
        one.starts > 1 and f"at least {one.starts} starts",
        one.max_age_days is not None and f"at most {one.max_age_days:g} days old",
        one.documented and "documented values reached",
        one.floors and f"{counted(len(one.floors), 'floor')} reached",
    ]
    return ", ".join(str(part) for part in told if part).replace(":, ", ": ", 1)


def counts(check: ReleaseCheck) -> str:
    """How much was required, found and checked."""
    by_finding: dict[str, int] = {}
    for one in sorted(check.tests, key=lambda one: EFFECTS[one.effect].rank):
        by_finding[one.finding] = by_finding.get(one.finding, 0) + 1
    found = ", ".join(f"{number} {word}" for word, number in by_finding.items()) or "none"
    scenarios = len({(one.scenario, one.hardware) for one in check.tests})
    return (
        f"{counted(len(check.tests), 'required test')} in {counted(scenarios, 'scenario')}: "
        f"{found}. {counted(check.metrics_checked, 'metric')} checked against numbers."
    )


def scenario_lines(check: ReleaseCheck) -> list[ScenarioLine]:
    """One line for each scenario on each hardware, the worst first, else in the policy's order."""
    of_each: dict[tuple[str, str], list[CheckedTest]] = {}
    for one in check.tests:
        of_each.setdefault((one.scenario, one.hardware), []).append(one)
    several = len({hardware for _, hardware in of_each}) > 1
    return [_line(tests, several=several) for tests in sorted(of_each.values(), key=_rank)]


def rest(lines: Sequence[ScenarioLine]) -> str:
    """What the lines beyond those that are shown are; empty: all are shown."""
    left = lines[MOST_SCENARIOS:]
    if not left:
        return ""
    kinds = sorted({one.sign.word: one.sign.rank for one in left}.items(), key=lambda kind: kind[1])
    each = ", ".join(f"{sum(o.sign.word == word for o in left)} {word}" for word, _ in kinds)
    return f"and {counted(len(left), 'more scenario')}: {each}"


def _rank(tests: Sequence[CheckedTest]) -> tuple[int, int, float]:
    worst = _worst_test(tests)
    loss = max((_bands(one) for one in _judged(worst)), default=0.0)
    severity = list(Finding).index(worst.finding)
    return (
        EFFECTS[worst.effect].rank,
        severity if worst.effect != "pass" else 0,
        -loss * (worst.effect != "pass"),
    )


def _worst_test(tests: Sequence[CheckedTest]) -> CheckedTest:
    def key(one: CheckedTest) -> tuple[int, bool, float]:
        loss = max((_bands(judged) for judged in _judged(one)), default=0.0)
        return EFFECTS[one.effect].rank, one.finding == Finding.PASSED, -loss

    return min(tests, key=key)


def _judged(one: CheckedTest) -> list[Judgement]:
    judged = one.result.judgements if one.result else ()
    return [judgement for judgement in judged if judgement.change is not None]


def _bands(one: Judgement) -> float:
    """The change to the worse, in bands."""
    metric = known(one.metric)
    if metric is None or one.change is None:
        return 0.0
    loss = -one.change if metric.direction == "higher" else one.change
    return loss / one.band if one.band else loss


def _line(tests: Sequence[CheckedTest], *, several: bool) -> ScenarioLine:
    worst = _worst_test(tests)
    passed = sum(one.effect == "pass" for one in tests)
    said = f"{passed} of {len(tests)}"
    judged = _judged(worst)
    hardware = worst.hardware if several else ""
    subject = (EFFECTS[worst.effect], str(worst.finding), worst.scenario, hardware, said)
    if not judged or not worst.metrics:  # numbers that count for nothing are not shown
        return ScenarioLine(
            *subject, metric="", test=f"{worst.test}: {worst.why}".removesuffix(": ")
        )
    bad = [one for one in judged if one.verdict == Verdict.REGRESSION] or judged
    one = max(bad, key=_bands)
    return ScenarioLine(
        *subject,
        metric=one.metric,
        test=(worst.result and worst.result.probe) or worst.test,
        change=_told(signed, one.metric, one.change),
        interval=_interval(one),
        band=allowed(one),
        starts=str(one.runs_used),
        controls=str(one.controls_used),
    )


def _told(say: Callable[[str, float | None], str], metric: str, value: float | None) -> str:
    """A change with its unit; of a metric that no table knows, the bare share."""
    return say(metric, value) if known(metric) else "-" if value is None else f"{value:+.3g}"


def _interval(one: Judgement) -> str:
    if known(one.metric):
        return interval(one)
    return "-" if one.interval is None else f"{one.interval[0]:+.3g} … {one.interval[1]:+.3g}"


def groups(check: ReleaseCheck, effect: Effect) -> list[Group]:
    """What is said of the whole, then the tests with that effect by what is said of them."""
    whole = {"fail": check.faults, "warn": check.warnings, "pass": ()}[effect]
    found: dict[tuple[Finding, str], list[str]] = {}
    for one in check.with_effect(effect):
        found.setdefault((one.finding, one.why), []).append(one.test)
    ordered = sorted(found.items(), key=lambda one: -len(one[1]))
    each = [Group(str(finding), why, tuple(names)) for (finding, why), names in ordered]
    return [*(Group("", one, ()) for one in whole), *each]


def waivers(check: ReleaseCheck) -> list[Group]:
    """Each waiver once, as the records name it (owner, limit, last day, reason), with its tests."""
    found: dict[str, list[str]] = {}
    for one in check.tests:
        for waiver in one.waivers:
            found.setdefault(waiver, []).append(one.test)
    return [Group("", waiver, tuple(names)) for waiver, names in found.items()]


_UNCOVERED = (
    Finding.MISSING,
    Finding.NOT_RUN,
    Finding.STALE,
    Finding.WRONG_HARDWARE,
    Finding.WRONG_BUILD,
    Finding.SYNTHETIC,
    Finding.INJECTED,
    Finding.ERROR,
    Finding.NO_BASELINE,
    Finding.NOT_COMPARABLE,
    Finding.NOTHING_CHECKED,
)


def not_covered(check: ReleaseCheck) -> list[Group]:
    """What no verdict of this release speaks of: required, selected by nobody, and only told."""
    found = []
    lacking = [one for one in check.tests if one.finding in _UNCOVERED]
    if lacking:
        kinds = ", ".join(dict.fromkeys(str(one.finding) for one in lacking))
        names = tuple(one.test for one in lacking)
        found.append(Group("required", f"no valid verdict: {kinds}", names))
    if check.not_required:
        why = "in the runs, and named by no requirement"
        found.append(Group("not required", why, check.not_required))
    if told := _only_told(check):
        found.append(Group("only told", "metrics that were measured and gate nothing", told))
    return found


def _only_told(check: ReleaseCheck) -> tuple[str, ...]:
    results = [one.result for one in check.tests if one.result]
    judged = {judgement.metric for one in results for judgement in one.judgements}
    return tuple(
        dict.fromkeys(
            measured.metric
            for one in results
            for measured in one.measured
            if measured.metric not in judged
        )
    )


def run_lines(check: ReleaseCheck) -> list[str]:
    """Machine, date and perfgate of each run."""
    machines = check.machines or {}
    return [_run(one, machines.get(one.id, "")) for one in check.runs]


def _run(one: RunFacts, machine: str) -> str:
    where = machine or one.machine.get("host") or "machine not told"
    started = one.started[:16].replace("T", " ")
    made_by = one.versions.get("perfgate", "of unknown version")
    return f"{one.id}: {where}, started {started} UTC, perfgate {made_by}"


def rates(check: ReleaseCheck) -> str:
    """The error rates, one sentence."""
    if check.error_rates is None:
        return "No error rate can be told: no metric was compared with anything."
    return check.error_rates.sentence


def made_by() -> str:
    """Which perfgate, and by which rule."""
    return f"perfgate {version('perfgate')}, rule {RULE}"


def moment(check: ReleaseCheck) -> str:
    """When the check was made."""
    return f"{check.at:%Y-%m-%d %H:%M} UTC"


def root_of(files: Iterable[PackedFile]) -> str:
    """The SHA-256 of the lines ``<sha256>  <path>``, by path, each ended by a line feed.

    It is what ``sha256sum`` prints of these files, hashed: ``sha256sum FILE… | sha256sum``.
    """
    ordered = sorted(files, key=lambda one: one.path)
    lines = "".join(f"{one.sha256}  {one.path}\n" for one in ordered)
    return hashlib.sha256(lines.encode("utf-8", "surrogatepass")).hexdigest()


def roots(files: Sequence[PackedFile]) -> list[Root]:
    """One root for each role that a verdict rests on."""
    found = []
    for role, words in HASHED.items():
        of_role = [one for one in files if one.role == role]
        if of_role:
            found.append(Root(words, len(of_role), root_of(of_role)))
    return found


def signers(check: ReleaseCheck) -> str:
    """Who may sign."""
    names = ", ".join(one.name for one in check.policy.signers)
    return names or "whoever holds the key that `verify` is given"


VERIFY = "perfgate release verify EVIDENCE.tar --key PUBLIC_KEY"
