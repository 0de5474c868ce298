"""Certificate: one page for the person who signs, as Markdown and as HTML that prints on a sheet.

Both are templates over one value. Pure but for the templates and the style sheet; no present time
is in it: its time is the check's (docs/reference/certificate.md). What is not ours is escaped.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from perfgate.core.rule import VERSION as RULE
from perfgate.core.verdict import Judgement, Verdict, counted
from perfgate.release.check_result import (
    LOSSES,
    CheckedTest,
    Finding,
    ReleaseCheck,
    Result,
    severity,
)
from perfgate.release.pack_manifest import PackedFile, Role
from perfgate.release.policy import Effect, Required
from perfgate.reports.figures import band, interval, signed, worst_first
from perfgate.reports.formats.base import shown
from perfgate.reports.overview import some
from perfgate.reports.page.sections import Sign
from perfgate.reports.templating import code, environment, prose, shortened

_TEMPLATES = Path(__file__).parent / "templates"
MOST_SCENARIOS = 14
"""Lines of scenarios that a page has room for; the worst come first."""
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
_HASHED: Mapping[Role, str] = {
    "policy": "policy",
    "scenarios": "scenarios",
    "baseline": "baselines",
    "waivers": "waivers",
    "noise": "learnt noise",
    "run": "run facts",
    "records": "records",
    "raw": "raw results",
}
_COVERED = (*LOSSES, Finding.PASSED, Finding.INCONCLUSIVE, Finding.FEW_STARTS)


@dataclass(frozen=True)
class ScenarioRow:
    """One scenario on one hardware.

    Attributes:
        worst: the worst of its tests.
        hardware: on which; empty: the release has but one.
        tests: how many passed of how many that are required, ``4 of 5``.
        metric: the worst metric of that test; None: no number of it counts.
    """

    worst: CheckedTest
    hardware: str
    tests: str
    metric: Judgement | None

    @property
    def sign(self) -> Sign:
        """Of the worst of its tests."""
        return EFFECTS[self.worst.effect]

    @property
    def subject(self) -> str:
        """Whose metric it is, as its probe is called; with no metric, which test and why."""
        if self.metric is None:
            return f"{self.worst.test}: {self.worst.why}".removesuffix(": ")
        return (self.worst.result and self.worst.result.probe) or self.worst.test

    @property
    def numbers(self) -> dict[str, str]:
        """Heading → cell, of the metric."""
        metric = self.metric
        if metric is None:
            return dict.fromkeys(("change", "interval", "band", "starts", "controls"), "-")
        return {
            "change": signed(metric.metric, metric.change),
            "interval": interval(metric),
            "band": band(metric),
            "starts": str(metric.runs_used),
            "controls": str(metric.controls_used),
        }


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


def certificate_markdown(check: ReleaseCheck, files: Sequence[PackedFile] = ()) -> str:
    """The certificate as Markdown.

    Args:
        check: what was asked and found.
        files: of the pack, without the certificate itself; empty: there is no pack.
    """
    return _templates().get_template("certificate.md").render(content(check, files))


def certificate_page(check: ReleaseCheck, files: Sequence[PackedFile] = ()) -> str:
    """The certificate as one HTML file, without a script; arguments as `certificate_markdown`."""
    return _templates().get_template("certificate.html").render(content(check, files))


def check_lines(check: ReleaseCheck) -> list[str]:
    """What stands below the table: what was read, what was really checked, and the result."""
    tests, findings = counted(len(check.tests), "test"), _by_finding(check)
    template = _templates().get_template("check.txt")
    words = {"check": check, "policy": check.policy, "tests": tests, "findings": findings}
    return template.render(words).splitlines()


@cache
def _templates() -> jinja2.Environment:
    found = environment(_TEMPLATES)
    style = (_TEMPLATES / "certificate.css").read_text(encoding="utf-8")
    found.globals |= {"style": Markup(style), "some": some}  # noqa: S704
    found.filters |= {"prose": prose, "code": code, "short": shortened}
    return found


def content(check: ReleaseCheck, files: Sequence[PackedFile] = ()) -> dict[str, Any]:
    """What both templates show; arguments as of `certificate_markdown`."""
    check = shown(check)
    rows = scenario_rows(check)
    signers = ", ".join(one.name for one in check.policy.signers)
    return {
        "check": check,
        "sign": RESULTS[result_of(check)],
        "stamps": stamps(check),
        "meaning": meaning(check),
        "counts": counts(check),
        "asked": _asked(check),
        "requirements": [_requirement(one, check) for one in check.policy.required],
        "failures": _groups(check, "fail"),
        "rows": rows[:MOST_SCENARIOS],
        "rest": _rest(rows[MOST_SCENARIOS:]),
        "warnings": _groups(check, "warn"),
        # each once, as the records name it (owner, limit, last day, reason)
        "waivers": _grouped(("", said, one.test) for one in check.tests for said in one.waivers),
        "not_covered": _not_covered(check),
        "rates": check.error_rates.sentence
        if check.error_rates
        else "No error rate can be told: no metric was compared with anything.",
        "runs": _runs(check),
        "roots": [
            (words, len(of_role), root_of(of_role))
            for role, words in _HASHED.items()
            if (of_role := [one for one in files if one.role == role])
        ],
        "made_by": f"perfgate {version('perfgate')}, rule {RULE}",
        "signers": signers or "whoever holds the key that `verify` is given",
    }


def result_of(check: ReleaseCheck) -> Result:
    """The result as it is shown: never better than what the tests are, nor a pass of nothing."""
    return min(check.result, check.follows, key=lambda one: RESULTS[one].rank)


def meaning(check: ReleaseCheck) -> str:
    """What the result says, one sentence."""
    tests = counted(len(check.tests), "required test")
    if not check.metrics_checked:
        return "Nothing was checked: no metric of a required test has a verdict from numbers."
    if result_of(check) == "FAILED":
        failed = f"{len(check.with_effect('fail'))} of {tests} failed"
        if not check.with_effect("fail"):
            failed = "its tests are well, the whole is not" if check.faults else "its check failed"
        return f"Not to be released by this policy: {failed}."
    if result_of(check) == "WARNED":
        warnings = len(check.with_effect("warn")) + len(check.warnings)
        return f"Fit for release by this policy, with {counted(warnings, 'warning')}."
    return f"Fit for release by this policy: all {tests} passed."


def stamps(check: ReleaseCheck) -> list[str]:
    """The words that go across the page."""
    synthetic = any(
        one.finding == Finding.SYNTHETIC or (one.result and one.result.synthetic)
        for one in check.tests
    )
    words = {"SYNTHETIC": synthetic, "FAILED": result_of(check) == "FAILED"}
    return [word for word, holds in words.items() if holds]


def counts(check: ReleaseCheck) -> str:
    """How much was required, found and checked."""
    scenarios = len({(one.scenario, one.hardware) for one in check.tests})
    return (
        f"{counted(len(check.tests), 'required test')} in {counted(scenarios, 'scenario')}: "
        f"{_by_finding(check) or 'none'}. {counted(check.metrics_checked, 'metric')} checked "
        "against numbers."
    )


def _by_finding(check: ReleaseCheck) -> str:
    found = Counter(test.finding for test in sorted(check.tests, key=severity))
    return ", ".join(f"{number} {word}" for word, number in found.items())


def _asked(check: ReleaseCheck) -> dict[str, str]:
    policy = check.policy
    hardware = dict.fromkeys(one.hardware for one in check.tests if one.hardware)
    rules = [
        f"runs at most {policy.max_age_days:g} days old",
        *(f"{name} counts as {effect}" for name, effect in policy.effects.items()),
        f"false alarms allowed in {100 * policy.false_alarms:g} % of releases",
    ]
    return {
        "release": policy.release,
        "build": policy.build.in_words,
        "hardware": ", ".join(hardware) or "none",
        "policy": f"sha256 {policy.sha256}" if policy.sha256 else "not hashed",
        "rules": "; ".join(rules),
    }


def _requirement(one: Required, check: ReleaseCheck) -> str:
    tests = sum(test.requirement == one.name for test in check.tests)
    told = [
        counted(tests, "test") if tests else "",
        one.select and f"selected by {one.select}",
        one.tests and f"named: {', '.join(one.tests[:3])}" + (", …" if len(one.tests) > 3 else ""),
        one.hardware and f"on {one.hardware}",
        one.starts > 1 and f"at least {one.starts} starts",
        one.max_age_days is not None and f"at most {one.max_age_days:g} days old",
        one.documented and "documented values reached",
        one.floors and f"{counted(len(one.floors), 'floor')} reached",
    ]
    return f"{one.name}: " + ", ".join(str(part) for part in told if part)


def scenario_rows(check: ReleaseCheck) -> list[ScenarioRow]:
    """One row for each scenario on each hardware, the worst first, else in the policy's order."""
    of_each: dict[tuple[str, str], list[CheckedTest]] = {}
    for one in check.tests:
        of_each.setdefault((one.scenario, one.hardware), []).append(one)
    several = len({hardware for _, hardware in of_each}) > 1
    found = [_scenario_row(tests, several=several) for tests in of_each.values()]
    bad = [row for row in found if row.worst.effect != "pass"]
    passed = [row for row in found if row.worst.effect == "pass"]
    return [*sorted(bad, key=lambda row: _rank(row.worst)), *passed]


def _rank(test: CheckedTest) -> tuple[tuple[int, int], tuple[bool, float]]:
    """What tests are sorted by: effect and finding, then their largest loss in bands."""
    return severity(test), min(map(worst_first, _judged(test)), default=worst_first(None))


def _scenario_row(tests: Sequence[CheckedTest], *, several: bool) -> ScenarioRow:
    worst = min(tests, key=_rank)
    judged = _judged(worst) if worst.metrics else []  # numbers that count for nothing are not shown
    bad = [one for one in judged if one.verdict == Verdict.REGRESSION] or judged
    return ScenarioRow(
        worst,
        worst.hardware if several else "",
        f"{sum(one.effect == 'pass' for one in tests)} of {len(tests)}",
        min(bad, key=worst_first, default=None),
    )


def _rest(rows: Sequence[ScenarioRow]) -> str:
    """What the rows are that are not shown; empty: all are."""
    if not rows:
        return ""
    kinds = sorted({one.sign.rank: one.sign.word for one in rows}.items())
    each = (f"{sum(one.sign.rank == rank for one in rows)} {word}" for rank, word in kinds)
    return f"and {counted(len(rows), 'more scenario')}: {', '.join(each)}"


def _judged(one: CheckedTest) -> list[Judgement]:
    judged = one.result.judgements if one.result else ()
    return [judgement for judgement in judged if judgement.change is not None]


def _groups(check: ReleaseCheck, effect: Effect) -> list[Group]:
    """What is said of the whole, then the tests with that effect by what is said of them."""
    whole = check.faults if effect == "fail" else check.warnings
    each = _grouped((one.finding, one.why, one.test) for one in check.with_effect(effect))
    return [*(Group("", one, ()) for one in whole), *sorted(each, key=lambda one: -len(one.names))]


def _grouped(said: Iterable[tuple[str, str, str]]) -> list[Group]:
    """What, why and test → one group for each what and why."""
    found: dict[tuple[str, str], list[str]] = {}
    for what, why, test in said:
        found.setdefault((str(what), why), []).append(test)
    return [Group(what, why, tuple(names)) for (what, why), names in found.items()]


def _not_covered(check: ReleaseCheck) -> list[Group]:
    """What no verdict of this release speaks of: required, selected by nobody, and only told."""
    lacking = [one for one in check.tests if one.finding not in _COVERED]
    kinds = ", ".join(dict.fromkeys(str(one.finding) for one in lacking))
    results = [one.result for one in check.tests if one.result]
    judged = {judgement.metric for one in results for judgement in one.judgements}
    measured = dict.fromkeys(one.metric for result in results for one in result.measured)
    found = [
        Group("required", f"no valid verdict: {kinds}", tuple(one.test for one in lacking)),
        Group("not required", "in the runs, and named by no requirement", check.not_required),
        Group(
            "only told",
            "metrics that were measured and gate nothing",
            tuple(one for one in measured if one not in judged),
        ),
    ]
    return [one for one in found if one.names]


def _runs(check: ReleaseCheck) -> list[str]:
    """Machine, date and perfgate of each run."""
    return [
        f"{one.id}: {check.machines.get(one.id) or one.machine.get('host') or 'machine not told'}, "
        f"started {one.started[:16].replace('T', ' ')} UTC, "
        f"perfgate {one.versions.get('perfgate', 'of unknown version')}"
        for one in check.runs
    ]


def root_of(files: Iterable[PackedFile]) -> str:
    """The SHA-256 of the lines ``<sha256>  <path>``, by path, each ended by a line feed.

    It is what ``sha256sum`` prints of these files, hashed: ``sha256sum FILE… | sha256sum``.
    """
    lines = [f"{one.sha256}  {one.path}\n" for one in sorted(files, key=lambda one: one.path)]
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogatepass")).hexdigest()
