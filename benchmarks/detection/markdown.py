"""Markdown: tables, and numbers as the page writes them."""

from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A table; the first `left` columns are text, the others numbers."""
    rules = ["---" if position < left else "--:" for position in range(len(heads))]
    lines = [heads, rules, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def percent(share: float, digits: int = 2) -> str:
    """``0.06``: a share in per cent, without the sign; "< 0.001" where rounding would say none."""
    text = f"{100 * share:.{digits}f}"
    return text if share == 0 or float(text) else f"< {10**-digits:.{digits}f}"


def met(yes: bool) -> str:
    return "met" if yes else "**missed**"
