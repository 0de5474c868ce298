"""Templates: folders of Jinja2 templates, and the filters that every text of a report shares.

Each environment makes harmless, for its own reader, whatever is not perfgate's own: HTML escapes
it, Markdown shows it as `prose`, a terminal as one line without control characters.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from textwrap import wrap

import jinja2
from markupsafe import Markup

from perfgate.campaign.budget import span
from perfgate.core.redaction import visible
from perfgate.core.verdict import counted
from perfgate.reports import figures

# All that begins an element of CommonMark, of GitHub's or GitLab's dialect, or of HTML.
_SPECIAL = {ord(one): f"&#{ord(one)};" for one in "\\`*_{}[]<>|&~$^#@!"}
_BREAK = "\u200b"
# `@name`, `#1`, `!1`, `$1`, `&1`, `~label`, `%1`, `^alert`, `:emoji:`, `://`, `www.`, `GH-1`.
_REFERENCE = re.compile(r"[@#!$&~%^:](?=[\w\"'/*{])|\bwww(?=\.)|\bGH-(?=\d)", re.IGNORECASE)
_STARTS_BLOCK = re.compile(r"[-+=]|\d+[.)](?:\s|$)")
_NOT_IN_CODE = re.compile(r"[`|\\]|^\s|\s$")
_ELLIPSIS = "…"


def shortened(text: str, most: int = 60) -> str:
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
    shown = [visible(line).replace("\n", "\\n") for line in lines]
    longest = max((len(run) for one in shown for run in re.findall("`+", one)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, *shown, fence]


REPORTS = Path(__file__).parent / "templates"
_SHOWN_AS_IT_IS = (Markup, int, float)
_INDENT = 15  # of a terminal's line that goes on
_WIDTH = 160  # at which a long line goes on in the next


@cache
def environment(folder: Path) -> jinja2.Environment:
    """HTML is escaped; what is not ours is shown without hidden characters.

    Args:
        folder: holds the templates.
    """
    return _environment(folder, visible, jinja2.select_autoescape(["html"]))


@cache
def terminal() -> jinja2.Environment:
    """For a terminal: every text that is not ours is one line."""
    made = _environment(REPORTS, lambda text: Markup(_on_one_line(text)))  # noqa: S704
    made.filters |= {"folded": _folded, "label": _ours(_label)}
    return made


@cache
def markdown() -> jinja2.Environment:
    """For Markdown that GitHub or GitLab renders: every text that is not ours is prose."""
    made = _environment(REPORTS, lambda text: Markup(prose(text)))  # noqa: S704
    for name, escape in (
        ("code", code),
        ("prose", prose),
        ("fenced", lambda lines: "\n".join(fenced(lines))),
    ):
        made.filters[name] = _ours(escape)
    return made


def _environment(
    folder: Path, show: Callable[[str], str], autoescape: bool | Callable[..., bool] = True
) -> jinja2.Environment:
    """An environment in which `show` makes every text that is not ours, `Markup`, harmless."""

    def finalize(value: object) -> object:
        return value if isinstance(value, _SHOWN_AS_IT_IS) else show(str(value))

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=autoescape,  # noqa: S701 (`show` escapes where this does not)
        undefined=jinja2.StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {
        "change": _ours(lambda one: figures.signed(one.metric, one.change)),
        "interval": _ours(figures.interval),
        "band": _ours(figures.band),
        "number": _ours(figures.number),
        "span": _ours(span),
        "counted": _ours(counted),
        "with_unit": figures.with_unit,
        "short": shortened,
        "breakable": _breakable,
    }
    return made


def _ours(make: Callable[..., str]) -> Callable[..., Markup]:
    """The same, of perfgate's own: shown as it is."""
    return lambda *given: Markup(make(*given))  # noqa: S704


def _breakable(name: str) -> Markup:
    """A name of a metric in HTML, which may go on in the next line between its words."""
    name, space, unit = visible(name).partition(" ")
    words = Markup("<wbr/>").join(re.split("(?<=[_:])", name))
    return Markup('<span class="metric">{}</span>{}{}').format(words, space, unit)


def _label(word: str, synthetic: bool) -> str:
    """What a line begins with; numbers of mock programs are marked."""
    return f"{'synthetic ' if synthetic else ''}{word:14} "


def _on_one_line(text: str) -> str:
    """What follows a line end in a text cannot pass for a line of its own."""
    return " ".join(visible(text).split())


def _folded(text: str, before: int = _INDENT) -> Markup:
    """A text broken between words; its later lines are indented.

    Args:
        text: any.
        before: characters that stand before it on its first line.
    """
    lines = wrap(_on_one_line(text), _WIDTH - before, break_on_hyphens=False)
    return Markup(("\n" + " " * _INDENT).join(lines))  # noqa: S704
