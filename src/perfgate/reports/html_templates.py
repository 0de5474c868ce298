"""Templates: a folder of Jinja2 templates; those of HTML show hostile texts as texts."""

from functools import cache
from pathlib import Path

import jinja2
from markupsafe import Markup

from perfgate.core.redaction import visible


@cache
def environment(folder: Path) -> jinja2.Environment:
    """HTML is escaped; what is not ours is shown without hidden characters.

    Args:
        folder: holds the templates.
    """
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=jinja2.select_autoescape(["html"]),
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _shown(value: object) -> object:
    """A text with escapes for what cannot be seen; our own markup, and all else, as it is."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return visible(value)
