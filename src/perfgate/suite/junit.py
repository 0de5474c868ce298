"""JUnit XML: which element a verdict is, once pytest has written the file.

pytest knows a failed test only as ``<failure>``. A reader of the file must tell a regression from
a test that has no number, and from one that is undecided: each has an element, or a type, of its
own. The file is rewritten and pytest's own plugin left alone, whose inside changes with its
release.
"""

import os
from pathlib import Path
from xml.etree import ElementTree

import pytest

from perfgate.core.durable_files import write_text
from perfgate.core.errors import PerfgateError
from perfgate.core.verdict import Verdict
from perfgate.reports.formats.junit import COUNTS, ELEMENTS, kind, message


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Give the tests of the suite the elements of their verdicts."""
    path = getattr(session.config.option, "xmlpath", None)
    if path is None or hasattr(session.config, "workerinput"):
        return
    named = Path(os.path.expandvars(path)).expanduser()  # as pytest reads it
    file = session.config.invocation_params.dir / named
    if not file.is_file():  # a device or pipe, which nobody can read back
        return
    try:
        text = file.read_text(encoding="utf-8")
        if (told := with_verdicts(text)) != text:
            write_text(file, told)
    except (OSError, PerfgateError, ElementTree.ParseError) as error:
        # Raised here, it would end pytest in status 1, which means a regression.
        session.config.get_terminal_writer().line(
            f"perfgate: {file} is left as pytest wrote it, every failed test a <failure>: {error}",
            red=True,
        )


def with_verdicts(text: str) -> str:
    """The report with the elements of the verdicts; other tests stay as they are.

    Args:
        text: JUnit XML as pytest writes it.
    """
    root = ElementTree.fromstring(text)  # noqa: S314 (pytest wrote it in this session)
    changed = False
    for suite in root.iter("testsuite"):
        for test in suite.iter("testcase"):
            changed |= _as_verdict(suite, test)
    if not changed:
        return text
    return '<?xml version="1.0" encoding="utf-8"?>' + ElementTree.tostring(root, encoding="unicode")


def _as_verdict(suite: ElementTree.Element, test: ElementTree.Element) -> bool:
    """Whether the test has a verdict, and an element that is now that of it."""
    known = {one.get("name"): one.get("value", "") for one in test.iter("property")}
    if not {"verdict", "scenario", "probe", "summary"} <= known.keys():
        return False
    if known["verdict"] not in ELEMENTS:
        return False
    verdict = Verdict(known["verdict"])
    for element in test:
        if element.tag in COUNTS:
            _count(suite, element.tag, -1)
            element.tag = ELEMENTS[verdict]
            _count(suite, element.tag, +1)
            element.set("type", kind(verdict))
            element.set("message", message(verdict, known["summary"]))
            return True
    return False


def _count(suite: ElementTree.Element, element: str, more: int) -> None:
    name = COUNTS[element]
    suite.set(name, str(int(suite.get(name, "0")) + more))
