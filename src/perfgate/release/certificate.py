"""Certificate in Markdown: one page for the person who signs. Pure.

No present time is in it: its time is the check's
(docs/reference/certificate.md).
"""

from collections.abc import Iterator, Sequence

from perfgate.release import certificate_content as content
from perfgate.release.certificate_content import (
    MOST_GROUPS,
    MOST_REASONS,
    MOST_SCENARIOS,
    Group,
    ScenarioLine,
)
from perfgate.release.check_result import ReleaseCheck
from perfgate.release.pack_manifest import PackedFile
from perfgate.reports.markdown_text import code, prose, table
from perfgate.reports.overview import some
from perfgate.reports.shown import shown

_NAMES, _NAME = 4, 80  # names of tests in a line, and characters of each
_COLUMNS = (
    "",
    "scenario",
    "passed",
    "worst metric",
    "change",
    "interval",
    "band",
    "starts",
    "controls",
)


def certificate_markdown(check: ReleaseCheck, hashes: Sequence[PackedFile] = ()) -> str:
    """The certificate.

    Args:
        check: what was asked and found.
        hashes: files of the pack, without the certificate itself; empty: there is no pack.
    """
    check = shown(check)
    sign = content.RESULTS[content.result_of(check)]
    lines = [f"# {sign.shape} {sign.word}: {prose(check.policy.release, _NAME)}", ""]
    if words := content.stamps(check):
        lines += [f"**{' · '.join(words)}**", ""]
    lines += [f"**{prose(content.meaning(check))}**", "", prose(content.counts(check), 600), ""]
    lines += [f"- {name}: {prose(told)}" for name, told in content.asked(check)]
    lines += _part("Required", [prose(one, 200) for one in content.requirements(check)])
    lines += _part("Why it failed", _groups(content.groups(check, "fail")), MOST_REASONS)
    lines += ["", "## Scenarios", "", *_scenarios(content.scenario_lines(check))]
    lines += _part("Warnings", _groups(content.groups(check, "warn")), MOST_REASONS)
    lines += _part("Waivers", _groups(content.waivers(check)))
    lines += _part("Not covered", _groups(content.not_covered(check)))
    lines += ["", "## How sure", "", prose(content.rates(check), 1200)]
    runs = [*content.run_lines(check), *check.notes]
    lines += _part("Runs", [prose(one, 200) for one in runs], 2 * MOST_GROUPS)
    lines += ["", "## Evidence", "", *_hashes(hashes), ""]
    lines += [f"Made by {prose(content.made_by())}, checked {content.moment(check)}.", ""]
    lines += [f"Verify: `{content.VERIFY}`", "", "## Signature", ""]
    lines += [f"May sign: {prose(content.signers(check), 200)}", ""]
    lines += [table(("name", "date", "signature"), [("&nbsp;",) * 3], ()), ""]
    return "\n".join(lines)


def _part(title: str, lines: Sequence[str], most: int = MOST_GROUPS) -> list[str]:
    """A part with its list; nothing where that is empty."""
    if not lines:
        return []
    kept, left = some(lines, most)
    more = [f"- and {left} more"] if left else []
    return ["", f"## {title}", "", *(f"- {one}" for one in kept), *more]


def _groups(found: Sequence[Group]) -> list[str]:
    return [
        ": ".join(filter(None, (prose(one.what, 40), prose(one.why))))
        + (f" ({_names(one.names)})" if one.names else "")
        for one in found
    ]


def _names(names: Sequence[str]) -> str:
    kept, left = some(names, _NAMES)
    return ", ".join(code(one, _NAME) for one in kept) + (f", and {left} more" if left else "")


def _scenarios(lines: Sequence[ScenarioLine]) -> Iterator[str]:
    if not lines:
        yield "None: the policy requires no test that is known."
        return
    yield table(_COLUMNS, [_row(one) for one in lines[:MOST_SCENARIOS]], range(4, 9))
    if left := content.rest(lines):
        yield ""
        yield left


def _row(one: ScenarioLine) -> tuple[str, ...]:
    return (
        f"{one.sign.shape} {prose(one.finding)}",
        code(one.scenario, _NAME) + (f" on {prose(one.hardware, 40)}" if one.hardware else ""),
        one.tests,
        f"{code(one.metric, _NAME)} of {prose(one.test, 40)}"
        if one.metric
        else prose(one.test, 160),
        one.change,
        one.interval,
        one.band,
        one.starts,
        one.controls,
    )


def _hashes(hashes: Sequence[PackedFile]) -> list[str]:
    found = content.roots(hashes)
    if not found:
        return ["Not packed: no file is named by its hash (`perfgate release pack`)."]
    rows = [(one.role, str(one.files), f"`{one.sha256}`") for one in found]
    return [table(("role", "files", "sha256 of their sha256sum"), rows, {1})]
