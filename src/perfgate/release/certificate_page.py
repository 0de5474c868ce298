"""Certificate page: the certificate as one HTML file, without a script, that prints on one page.

Pure but for the template and the style sheet beside it. Everything in it is escaped but our style.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from markupsafe import Markup

from perfgate.release import certificate_content as content
from perfgate.release.check_result import ReleaseCheck
from perfgate.release.pack_manifest import PackedFile
from perfgate.reports.html_templates import environment
from perfgate.reports.markdown_text import shortened
from perfgate.reports.overview import some
from perfgate.reports.shown import shown

_TEMPLATES = Path(__file__).parent / "templates"


def certificate_page(check: ReleaseCheck, hashes: Sequence[PackedFile] = ()) -> str:
    """The page; arguments as of `certificate_markdown`."""
    check = shown(check)
    lines = content.scenario_lines(check)
    return (
        environment(_TEMPLATES)
        .get_template("certificate.html")
        .render(
            check=check,
            content=content,
            sign=content.RESULTS[content.result_of(check)],
            stamps=content.stamps(check),
            lines=lines[: content.MOST_SCENARIOS],
            rest=content.rest(lines),
            roots=content.roots(hashes),
            short=shortened,
            some=some,
            breakable=_breakable,
            style=Markup(_style()),  # noqa: S704
        )
    )


def _breakable(text: str) -> Markup:
    """A name that may go on in the next line after each underscore."""
    return Markup("_<wbr>").join(shortened(text, 80).split("_"))


@cache
def _style() -> str:
    return (_TEMPLATES / "certificate.css").read_text(encoding="utf-8")
