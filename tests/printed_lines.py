"""What a program prints, as the parsers of its reports are given it."""

from perfgate.clients.logs import Line, line_of


def lines_of(content: str) -> tuple[Line, ...]:
    """The lines of a text, blank ones among them."""
    return tuple(line_of(raw, number) for number, raw in enumerate(content.split("\n"), start=1))
