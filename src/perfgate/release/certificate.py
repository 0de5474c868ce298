"""Certificate: one page for the person who signs, as Markdown and as HTML that prints on a sheet.

Both are templates over one value. Pure but for the templates and the style sheet; no present time
is in it: its time is the check's (docs/reference/release.md). What is not ours is escaped.
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

from perfgate.core.verdict import RULE_VERSION, Judgement, Verdict
from perfgate.release.check_result import (
    LOSSES,
    CheckedTest,
    Finding,
    ReleaseCheck,
    Result,
    severity,
)
from perfgate.release.pack_archive import PackedFile, Role
from perfgate.release.policy import Effect
from perfgate.reports.figures import worst_first
from perfgate.reports.formats.base import shown
from perfgate.reports.overview import some
from perfgate.reports.page.sections import Sign
from perfgate.reports.templating import code, environment, prose, shortened

_TEMPLATES = Path(__file__).parent / "templates"
MOST_SCENARIOS = 14
"""Lines of scenarios that a page has room for; the worst come first."""
EFFECTS: Mapping[Effect, Sign] = {
    "fail": Sign("▼", "failed", "bad", 0),
    "warn": Sign("◆", "warning", "open", 1),
    "pass": Sign("●", "passed", "good", 2),
}
_EFFECT_OF: Mapping[Result, Effect] = {"PASSED": "pass", "WARNED": "warn", "FAILED": "fail"}
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
    return templates().get_template("certificate.md").render(content(check, files))


def certificate_page(check: ReleaseCheck, files: Sequence[PackedFile] = ()) -> str:
    """The certificate as one HTML file, without a script; arguments as `certificate_markdown`."""
    return templates().get_template("certificate.html").render(content(check, files))


def check_lines(check: ReleaseCheck) -> list[str]:
    """What stands below the table: what was read, what was really checked, and the result."""
    words = {"check": check, "policy": check.policy, "findings": _by_finding(check)}
    return templates().get_template("check.txt").render(words).splitlines()


@cache
def templates() -> jinja2.Environment:
    """The templates of this room: the certificate, the lines of a check, its error rates."""
    found = environment(_TEMPLATES)
    style = (_TEMPLATES / "certificate.css").read_text(encoding="utf-8")
    found.globals |= {"style": Markup(style), "some": some}  # noqa: S704
    found.filters |= {"prose": prose, "code": code, "short": shortened}
    return found


def content(check: ReleaseCheck, files: Sequence[PackedFile] = ()) -> dict[str, Any]:
    """What both templates show; arguments as of `certificate_markdown`."""
    check = shown(check)
    rows = scenario_rows(check)
    found: dict[str, Any] = {
        "check": check,
        "sign": EFFECTS[_EFFECT_OF[check.result]],
        "stamps": stamps(check),
        "findings": _by_finding(check),
        "failures": _groups(check, "fail"),
        "scenarios": len(rows),
        "rows": rows[:MOST_SCENARIOS],
        "rest": Counter(row.sign.word for row in rows[MOST_SCENARIOS:]),
        "warnings": _groups(check, "warn"),
        # each once, as the records name it (owner, limit, last day, reason)
        "waivers": _grouped(("", said, test.test) for test in check.tests for said in test.waivers),
        "not_covered": _not_covered(check),
        "roots": [
            (words, len(of_role), root_of(of_role))
            for role, words in _HASHED.items()
            if (of_role := [file for file in files if file.role == role])
        ],
        "made_by": f"perfgate {version('perfgate')}, rule {RULE_VERSION}",
    }
    return found | _sentences(found)


def _sentences(found: Mapping[str, Any]) -> dict[str, Any]:
    """Block of `certificate.txt` → its text; of `requirements` and `runs`, its lines."""
    template = templates().get_template("certificate.txt")
    context = template.new_context({**found})
    said = {name: "".join(render(context)).strip() for name, render in template.blocks.items()}
    return said | {name: said[name].splitlines() for name in ("requirements", "runs")}


def stamps(check: ReleaseCheck) -> list[str]:
    """The words that go across the page."""
    synthetic = any(
        test.finding == Finding.SYNTHETIC or (test.result and test.result.synthetic)
        for test in check.tests
    )
    words = {"SYNTHETIC": synthetic, "FAILED": check.result == "FAILED"}
    return [word for word, holds in words.items() if holds]


def _by_finding(check: ReleaseCheck) -> str:
    found = Counter(test.finding for test in sorted(check.tests, key=severity))
    return ", ".join(f"{number} {word}" for word, number in found.items())


def scenario_rows(check: ReleaseCheck) -> list[ScenarioRow]:
    """One row for each scenario on each hardware, the worst first, else in the policy's order."""
    of_each: dict[tuple[str, str], list[CheckedTest]] = {}
    for test in check.tests:
        of_each.setdefault((test.scenario, test.hardware), []).append(test)
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
    results = [test.result for test in check.tests if test.result]
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


def root_of(files: Iterable[PackedFile]) -> str:
    """The SHA-256 of the lines ``<sha256>  <path>``, by path, each ended by a line feed.

    It is what ``sha256sum`` prints of these files, hashed: ``sha256sum FILE… | sha256sum``.
    """
    lines = [f"{one.sha256}  {one.path}\n" for one in sorted(files, key=lambda file: file.path)]
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogatepass")).hexdigest()
