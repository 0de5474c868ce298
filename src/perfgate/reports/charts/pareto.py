"""Pareto frontier: which points of a sweep no other point beats on both axes. Pure arithmetic."""

from collections.abc import Sequence


def frontier(points: Sequence[tuple[float, float]]) -> tuple[int, ...]:
    """The places of the points that no other is better than, by the first axis.

    A point is beaten by one that is at least as good on both axes, more is better, and better on
    one. Of equal points all are kept.

    Args:
        points: finite values on both axes.
    """
    by_first = sorted(range(len(points)), key=lambda place: (-points[place][0], -points[place][1]))
    kept: list[int] = []
    best = float("-inf")  # on the second axis, of all that have more on the first
    for place in by_first:
        second = points[place][1]
        is_equal = bool(kept) and points[kept[-1]] == points[place]
        if second > best or is_equal:
            kept.append(place)
            best = second
    return tuple(reversed(kept))
