"""Markdown text: hostile text as text, wherever GitHub and GitLab render Markdown. Pure.

Both render in two steps: Markdown with HTML in it, then references in the text that came out
(mentions, numbers of issues, addresses). Character references stop the first step. An invisible
space of zero width stops the second, which sees no difference between `@` and `&#64;`.
"""

import re
from collections.abc import Collection, Sequence

from perfgate.core.redaction import visible

# All that begins an element of CommonMark, of GitHub's or GitLab's dialect, or of HTML.
_SPECIAL = {ord(one): f"&#{ord(one)};" for one in "\\`*_{}[]<>|&~$^#@!"}
_BREAK = "\u200b"
# `@name`, `#1`, `!1`, `$1`, `&1`, `~label`, `%1`, `^alert`, `:emoji:`, `://`, `www.`, `GH-1`.
_REFERENCE = re.compile(r"[@#!$&~%^:](?=[\w\"'/*{])|\bwww(?=\.)|\bGH-(?=\d)", re.IGNORECASE)
_STARTS_BLOCK = re.compile(r"[-+=]|\d+[.)](?:\s|$)")
_NOT_IN_CODE = re.compile(r"[`|\\]|^\s|\s$")
_ELLIPSIS = "…"


def shortened(text: str, most: int) -> str:
    """The text on one line, cut at the end to so many characters."""
    one_line = " ".join(visible(text).split())
    return one_line if len(one_line) <= most else one_line[: most - 1] + _ELLIPSIS


def prose(text: str, most: int = 300) -> str:
    """The text as it reads, with nothing in it that renders as anything else.

    Args:
        text: any; line ends become spaces.
        most: characters of it that are shown.
    """
    shown = _REFERENCE.sub(lambda found: found[0] + _BREAK, shortened(text, most))
    escaped = shown.translate(_SPECIAL).replace(_BREAK, "&#8203;")
    if _STARTS_BLOCK.match(escaped):
        return f"&#{ord(escaped[0])};{escaped[1:]}"
    return escaped


def code(text: str, most: int = 160) -> str:
    """A name in the letters of a machine; where that cannot hold it, as `prose`.

    Args:
        text: any; line ends become spaces.
        most: characters of it that are shown.
    """
    shown = shortened(text, most)
    return prose(shown, most) if not shown or _NOT_IN_CODE.search(shown) else f"`{shown}`"


def fenced(lines: Sequence[str]) -> list[str]:
    """A block of code with these lines, which no line of them ends."""
    shown = [visible(one).replace("\n", "\\n") for one in lines]
    longest = max((len(run) for one in shown for run in re.findall("`+", one)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, *shown, fence]


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int]) -> str:
    """The lines of a table; its cells are escaped already."""
    rule = "".join("--:|" if place in right else "---|" for place in range(len(columns)))
    heading, *lines = ("| " + " | ".join(row) + " |" for row in (columns, *rows))
    return "\n".join([heading, f"|{rule}", *lines])
