"""Notification: what changed since the last one, as one short message for a chat. Pure.

The text has the few marks that Slack and those that take its JSON know (`*bold*`, code spans).
Names, reasons and titles come from elsewhere: of what they hold nothing is a mark, a mention or a
link.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from perfgate.core.redaction import mask, visible
from perfgate.gate.verdict import counted
from perfgate.reports.run_report import RunReport
from perfgate.reports.series import FROM_WORST, Change, Standing, State, by_scenario

LONGEST = 3000  # characters: what Slack shows of one block of text
LONGEST_LINK = 400
SHOWN = 5  # scenarios

WORDS: dict[State, str] = {
    "red": "red",
    "error": "failed (no verdict)",
    "unjudged": "not judged",
    "undecided": "undecided",
    "green": "green",
}
_SYNTHETIC = "SYNTHETIC: stand-ins made these numbers; nothing is claimed of any engine"

# Three characters are Slack's own (docs.slack.dev, "Formatting message text"). The others make
# mentions, links, images and code of data, in Slack or in those that take its JSON and read
# Markdown (Mattermost, Rocket.Chat).
_ESCAPED = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_NEUTRAL = str.maketrans({"@": "＠", "`": "'", "[": "(", "]": ")", "*": "∗", "~": "∼", "|": "¦"})
_LINKS = (("://", ": //"), ("www.", "www ."))


def message(
    report: RunReport,
    found: Sequence[Standing],
    changed: Sequence[Change],
    *,
    title: str = "",
    link: str = "",
    synthetic: bool = False,
) -> str:
    """The text of one message.

    Args:
        report: the run.
        found: what it says of each series.
        changed: which of these changed; the worst first.
        title: what a person calls this run; empty: nothing.
        link: where to read on; empty: nowhere.
        synthetic: whether stand-ins made the numbers.
    """
    of_scenarios = list(by_scenario(list(changed)))
    results = [one.standing.result for one in changed if one.standing.result is not None]
    results = results or [one.result for one in found if one.result is not None]
    injected = list(dict.fromkeys(what for one in results for what in one.injected))
    status = "it has not ended" if report.status is None else f"exit status {report.status}"
    builds = (one.build.in_words for one in results if one.build is not None)
    lines = [
        f"*{_SYNTHETIC}*" if synthetic else "",
        f"*{plain(title or 'perfgate', 150)}: {summary(changed)}*",
        plain(f"{status}: {report.meaning}", 160),
        plain(f"changed on purpose: {', '.join(injected)}", 120) if injected else "",
        _named("build", builds),
        _named("compared with", (one.compared_with for one in results)),
        *(_bullet(changes) for _, changes in of_scenarios[:SHOWN]),
        f"… and {counted(len(of_scenarios) - SHOWN, 'scenario')} more"
        if len(of_scenarios) > SHOWN
        else "",
        plain(report.suspicion, 160),
        plain(f"tests now: {_counts(found)}; {_runs(report)}", 240),
        _escape(link),
    ]
    return "\n".join(line for line in lines if line)


def summary(changed: Sequence[Change]) -> str:
    """``2 scenarios newly red, 1 newly green``; each scenario counts by its worst change."""
    states = Counter(changes[0].state for _, changes in by_scenario(list(changed)))
    parts = [f"{states[one]} newly {WORDS[one]}" for one in FROM_WORST if states[one]]
    if parts:
        count, _, rest = parts[0].partition(" ")
        parts[0] = f"{counted(int(count), 'scenario')} {rest}"
    return ", ".join(parts)


def plain(text: str, most: int) -> str:
    """Text of elsewhere on one line: secrets masked, nothing in it a mark, a mention or a link.

    Args:
        text: any text.
        most: characters of the result.
    """
    neutral = visible(" ".join(mask(text, by_name=False).split())).translate(_NEUTRAL)
    for of_link, broken in _LINKS:
        neutral = neutral.replace(of_link, broken)
    found: list[str] = []
    length = 0
    for one in neutral:
        shown = _ESCAPED.get(one, one)
        if length + len(shown) > most - 1:
            return f"{''.join(found)}…"
        found.append(shown)
        length += len(shown)
    return "".join(found)


def _escape(text: str) -> str:
    return "".join(_ESCAPED.get(one, one) for one in text)


def _bullet(changes: Sequence[Change]) -> str:
    """One scenario: its worst change in full, the others counted."""
    worst, *others = changes
    before = "new" if worst.before is None else f"was {WORDS[worst.before]}"
    who = f"`{plain(worst.standing.scenario, 80)}`" if worst.standing.scenario else "the run"
    label = f"{worst.standing.label}: " if worst.standing.label else ""
    more = Counter(one.state for one in others)
    rest = ", ".join(f"{more[one]} newly {WORDS[one]}" for one in FROM_WORST if more[one])
    told = plain(f"{label}{worst.standing.why}", 170) if worst.standing.why else ""
    parts = [f"• newly {WORDS[worst.state]} ({before})", who, told]
    line = ": ".join(part for part in parts if part)
    return f"{line}; other tests of it: {rest}" if rest else line


def _named(what: str, values: Iterable[str]) -> str:
    found = list(dict.fromkeys(one for one in values if one))
    if not found:
        return ""
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"{what}: {plain(found[0], 180)}{more}"


def _counts(found: Sequence[Standing]) -> str:
    states = Counter(one.now.state for one in found if one.result is not None)
    return ", ".join(f"{states[one]} {WORDS[one]}" for one in FROM_WORST if states[one]) or "none"


def _runs(report: RunReport) -> str:
    names = [one.id for one in report.runs]
    return f"run {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")
