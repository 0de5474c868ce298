"""Templates: folders of Jinja2 templates, and the filters that every text of a report shares.

Each environment makes harmless, for its own reader, whatever is not perfgate's own: HTML escapes
it, Markdown shows it as `markdown_text.prose`, a terminal as one line without control characters.
"""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from textwrap import wrap

import jinja2
from markupsafe import Markup

from perfgate.campaign.budget import span
from perfgate.core.redaction import visible
from perfgate.core.verdict import counted
from perfgate.reports import figures, markdown_text

REPORTS = Path(__file__).parent / "templates"
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
    made = _environment(REPORTS, lambda text: Markup(markdown_text.prose(text)))  # noqa: S704
    for name, escape in (
        ("code", markdown_text.code),
        ("prose", markdown_text.prose),
        ("fenced", lambda lines: "\n".join(markdown_text.fenced(lines))),
    ):
        made.filters[name] = _ours(escape)
    return made


def _environment(
    folder: Path, show: Callable[[str], str], autoescape: bool | Callable[..., bool] = True
) -> jinja2.Environment:
    """An environment in which `show` makes every text that is not ours, `Markup`, harmless."""

    def finalize(value: object) -> object:
        return value if isinstance(value, Markup | int | float) else show(str(value))

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
        "short": markdown_text.shortened,
        "breakable": _breakable,
    }
    return made


def _ours(make: Callable[..., str]) -> Callable[..., Markup]:
    """The same, of perfgate's own: shown as it is."""
    return lambda *given: Markup(make(*given))  # noqa: S704


def _breakable(name: str) -> Markup:
    """A name of a metric in HTML, which may go on in the next line between its words."""
    words = re.split("(?<=[_:])", visible(name))
    return Markup("<wbr/>").join(words)


def _label(word: str, synthetic: bool) -> str:
    """What a line begins with; numbers of stand-ins are marked."""
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
