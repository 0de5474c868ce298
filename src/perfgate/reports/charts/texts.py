"""Texts in charts: what names and versions from anywhere look like there."""

from perfgate.core.redaction import visible

_LONGEST = 60  # characters of a text in a drawing; tables have the whole of it


def shown(text: str) -> str:
    """On one line, with an escape for what a reader cannot see: marks of direction, controls."""
    return visible(" ".join(text.split()))


def short(text: str, longest: int = _LONGEST) -> str:
    """`shown`, of at most so many characters."""
    whole = shown(text)
    return whole if len(whole) <= longest else whole[: longest - 1] + "…"


def rounded(value: float) -> float:
    """The value to six digits: more than a drawing shows."""
    return float(f"{value:.6g}")
