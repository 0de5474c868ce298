"""What only the whole run shows: verdicts that speak of the machine, waived losses, likely ones
beside the gate, a host that moved, what its starts took and saved, and what its time did not
suffice for.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from perfgate.baselines.waivers import in_force
from perfgate.campaign.budget import span
from perfgate.campaign.resume import judgements_of, observed_of
from perfgate.core.measured import Change
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.verdict import Judgement, Mark, Verdict, counted
from perfgate.judging.rules.diagnostics import Moved, false_discoveries, moved_together
from perfgate.reports.outcome_text import MARKS, signed
from perfgate.runs.records import name_of
from perfgate.runs.start_counts import total

Records = Sequence[Mapping[str, Any]]

# Of the metrics on the warning list one in ten moved by chance (Benjamini and Hochberg 1995).
FALSE_DISCOVERIES = 0.10
WORSE = "probably worse, though no verdict depends on it (one in ten by chance)"

# docs/explanation/detection.md, the table `guarantee`; a test compares the figures.
WITHOUT_CONTROLS = (
    "the error rates with controls do not hold. If nothing changed and noise is like that of "
    "published nightlies, 45 to 97 of 100 release runs (12 scenarios, 6 probes, 3 metrics) "
    "end in a performance REGRESSION."
)


def waived(records: Records) -> list[str]:
    """Every loss that a waiver let through, with that waiver."""
    return [
        f"{one.name}: {one.metric} {signed(one.metric, one.change)}: {one.waiver}"
        for one in in_force(_verdicts(records))
    ]


def marked(records: Records, most: int | None = None) -> list[tuple[Mark, str]]:
    """Each mark that verdicts have, with what it says and whose they are.

    Args:
        records: the run's.
        most: verdicts to name for each mark; None: all.
    """
    names: dict[Mark, dict[str, None]] = {}
    for line in _verdicts(records):
        synthetic = "synthetic " if line["synthetic"] else ""
        for one in judgements_of(line):
            if one.mark:
                names.setdefault(one.mark, {})[f"{synthetic}{name_of(line)}"] = None
    found = []
    for mark, of_mark in names.items():
        shown = ", ".join(list(of_mark)[:most])
        more = "" if most is None or len(of_mark) <= most else f" and {len(of_mark) - most} more"
        found.append((mark, f"{shown}{more}: {MARKS[mark]}"))
    return found


def waiver_faults(records: Records) -> list[str]:
    """Waivers that do not hold."""
    return [line["message"] for line in records if line["record"] == "waiver_fault"]


def probably_worse(records: Records) -> list[tuple[str, Change]]:
    """Metrics that are only reported and probably got worse, each with its probe.

    The likeliest come first; those of stand-ins are marked.
    """
    observed = [
        (f"{'synthetic ' if line['synthetic'] else ''}{name_of(line)}", one)
        for line in _verdicts(records)
        for one in observed_of(line)
    ]
    found = false_discoveries([one.p_value for _, one in observed], FALSE_DISCOVERIES)
    worse = [moved for moved, lost in zip(observed, found, strict=True) if lost]
    return sorted(worse, key=lambda moved: moved[1].p_value)


def starts(records: Records) -> str:
    """How many fresh starts the run took, and what sharing them saved; empty: no group ended."""
    groups = _groups(records)
    if not groups:
        return ""
    found = total(groups)
    mark = "synthetic " if any(one["synthetic"] for one in groups) else ""
    again = f", {found.again} of them again" if found.again else ""
    again += f", {counted(found.controls, 'control')} among them" if found.controls else ""
    time = ""
    if found.saved_s > 0:
        time = f" (about {span(found.saved_s)} of {span(found.spent_s + found.saved_s)})"
    return (
        f"{mark}starts: {found.made} made{again}, {found.planned} planned, "
        f"{found.without_sharing} without sharing: {found.saved} saved{time}"
    )


def group_rows(records: Records) -> list[tuple[str, ...]]:
    """One row per group: its starts, and its seconds, as `GROUP_COLUMNS`."""
    return [
        (
            f"{'synthetic ' if one['synthetic'] else ''}{one['scenario']}",
            *(str(one["starts"][name]) for name in ("planned", "made", "again", "without_sharing")),
            *(span(one["seconds"][name]) for name in ("spent", "starting", "saved")),
            one["ended"],
        )
        for one in _groups(records)
    ]


GROUP_COLUMNS = (
    *("group", "planned", "made", "again", "without sharing"),
    *("time spent", "of it starting", "saved", "ended"),
)


def not_for_time(records: Records) -> list[Mapping[str, Any]]:
    """What was not run because the session's time would not have sufficed."""
    return [line for line in records if line["record"] == "skipped" and line.get("why") == "budget"]


def resumptions(records: Records) -> list[str]:
    """When the run was resumed, and how much of it was kept each time."""
    return [
        f"Resumed {line['at']}: {counted(len(line['groups']), 'group')} kept, "
        f"{len(line['repeats'])} measured anew."
        for line in records
        if line["record"] == "resumed"
    ]


def suspicion(records: Records) -> str:
    """That the host moved and not the build, if nearly everything did; empty: nothing of it."""
    return moved_together(
        [
            Moved(line["scenario"], one["metric"], one["change"], _lost(one))
            for line in _verdicts(records)
            if not line["synthetic"]
            for one in line["judgements"]
            if one["against"] == "baseline" and one["interval"] and not is_accuracy(one["metric"])
        ]
    )


def without_controls(records: Records) -> str:
    """Which error rates hold if tests were judged without controls; empty: none was."""
    tests = {
        name_of(line)
        for line in _verdicts(records)
        if not line["synthetic"]
        for one in judgements_of(line)
        if _lacks_control(one, (line.get("provenance") or {}).get("controls") or {})
    }
    if not tests:
        return ""
    return f"{counted(len(tests), 'test')} judged without controls: {WITHOUT_CONTROLS}"


def _lacks_control(judged: Judgement, controls: Mapping[str, Any]) -> bool:
    """Whether the rule without controls judged it; a required control allows no REGRESSION."""
    if judged.mark == "NO_CONTROL":
        return judged.verdict == Verdict.REGRESSION
    if judged.interval is None or judged.controls_used or judged.is_interleaved:
        return False
    if is_accuracy(judged.metric) or judged.against not in ("baseline", "anchor"):
        return False
    policy = controls.get("policy")
    return policy == "none" or (policy == "auto" and judged.against in controls["why_not"])


def _lost(judgement: Mapping[str, Any]) -> bool:
    """Whether its interval leaves nothing but a loss."""
    low, high = judgement["interval"]
    return bool(high < 0 if lookup(judgement["metric"]).direction == "higher" else low > 0)


def _verdicts(records: Records) -> list[Mapping[str, Any]]:
    return [line for line in records if line["record"] == "verdict"]


def _groups(records: Records) -> list[Mapping[str, Any]]:
    return [line for line in records if line["record"] == "group"]
