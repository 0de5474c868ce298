"""Active records: which lines of a run's records count, once it was resumed or lost a worker.

The file itself is only ever appended to. Pure.
"""

import copy
from collections.abc import Iterable, Mapping
from typing import Any

Line = Mapping[str, Any]
_ENDS = ("verdict", "skipped")
_OF_THE_SELECTION = ("selected", "scenario", "shard")  # what is to be run, whatever became of it


def standing(lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines that no later one supersedes, in order.

    Two kinds supersede: ``resumed`` all lines of the groups that it repeats, and of tests that it
    does not keep; ``set_aside`` the measurements of a scenario that a replaced worker left. A
    verdict that was kept says so: ``resumed_from`` is when it was recorded.
    """
    found: list[dict[str, Any]] = []
    for line in lines:
        kind = line.get("record")
        if kind == "resumed":
            found = [_marked(one) for one in found if _is_kept(one, line)]
        elif kind == "set_aside":
            found = [one for one in found if not _was_set_aside(one, line)]
        found.append(line)
    return found


def _is_kept(line: Line, resumed: Line) -> bool:
    kind = line.get("record")
    if kind in ("resumed", *_OF_THE_SELECTION):
        return True
    if kind in _ENDS:
        return bool(line.get("test") in resumed["keeps"])
    if kind in ("waiver_fault", "candidate", "not_recorded", "noise_kept", "ended"):
        return False  # told again at the end
    return line.get("scenario") not in resumed["repeats"]


def _marked(line: dict[str, Any]) -> dict[str, Any]:
    """The line of a session before; of a verdict, with when it was recorded."""
    if line.get("record") != "verdict":
        return line
    marked = copy.copy(line)
    marked["resumed_from"] = str(line.get("at"))
    return marked


def _was_set_aside(line: Line, aside: Line) -> bool:
    if line.get("record") in ("resumed", "group", "set_aside", *_OF_THE_SELECTION, *_ENDS):
        return False
    return bool(line.get("scenario") == aside["scenario"])
