"""JUnit XML: a regression, an error and an undecided test are three different things in it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from perfgate.suite.junit import pytest_sessionfinish, with_verdicts

OTHER = '<testcase name="other"><failure message="no test of ours">x</failure></testcase>'


def report(verdict: str, element: str) -> str:
    names = {"verdict": verdict, "scenario": "s", "probe": "c1", "summary": "why"}
    properties = "".join(f'<property name="{name}" value="{names[name]}"/>' for name in names)
    inside = f'<{element} message="Failed: a long table">the whole report</{element}>'
    counts = {"failure": "failures", "error": "errors", "skipped": "skipped"}
    found = {"failures": 1, "errors": 0, "skipped": 0}  # that of the other test
    if element in counts:
        found[counts[element]] += 1
    told = " ".join(f'{name}="{count}"' for name, count in found.items())
    return (
        '<?xml version="1.0" encoding="utf-8"?>'
        f'<testsuites><testsuite name="pytest" tests="2" {told}>'
        f'<testcase name="ours"><properties>{properties}</properties>{inside}</testcase>'
        f"{OTHER}</testsuite></testsuites>"
    )


@pytest.mark.parametrize(
    ("verdict", "written", "element", "counts"),
    [
        ("REGRESSION", "failure", "failure", ("2", "0", "0")),
        ("ERROR", "failure", "error", ("1", "1", "0")),
        ("INCONCLUSIVE", "failure", "skipped", ("1", "0", "1")),
        ("NO_BASELINE", "skipped", "skipped", ("1", "0", "1")),
        ("NOT_COMPARABLE", "skipped", "skipped", ("1", "0", "1")),
    ],
)
def test_each_verdict_has_its_element_and_type(
    verdict: str, written: str, element: str, counts: tuple[str, str, str]
) -> None:
    text = with_verdicts(report(verdict, written))
    assert text.startswith('<?xml version="1.0" encoding="utf-8"?>')
    (suite,) = ElementTree.fromstring(text)  # noqa: S314 (made here)
    ours, other = suite.findall("testcase")
    found = ours.find(element)
    assert found is not None
    assert found.get("type") == f"perfgate.{verdict}"
    assert found.get("message") == f"{verdict}: why"
    assert found.text == "the whole report"
    assert [one.tag for one in ours] == ["properties", element]
    assert tuple(suite.get(name) for name in ("failures", "errors", "skipped")) == counts
    assert ElementTree.tostring(other, encoding="unicode") == OTHER


@pytest.mark.parametrize("verdict", ["PASS", "IMPROVEMENT"])
def test_what_passed_has_no_element(verdict: str) -> None:
    text = report(verdict, "system-out")
    assert with_verdicts(text) == text


def test_a_test_that_failed_beside_its_verdict_stays_failed() -> None:
    text = report("PASS", "failure")
    assert with_verdicts(text) == text


class Writer:
    """Takes down what is written on the terminal."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, text: str, **_markup: bool) -> None:
        self.lines.append(text)


def finished(tmp_path: Path, name: str, **more: Any) -> list[str]:
    """What is said when a session ends whose report has that name."""
    writer = Writer()
    config = SimpleNamespace(
        option=SimpleNamespace(xmlpath=name),
        invocation_params=SimpleNamespace(dir=tmp_path),
        get_terminal_writer=lambda: writer,
        **more,
    )
    pytest_sessionfinish(SimpleNamespace(config=config))  # type: ignore[arg-type]
    return writer.lines


def test_the_file_is_rewritten_where_the_session_was_started(tmp_path: Path) -> None:
    (tmp_path / "junit.xml").write_text(report("ERROR", "failure"))
    assert finished(tmp_path, "junit.xml") == []
    assert "perfgate.ERROR" in (tmp_path / "junit.xml").read_text()


def test_a_worker_leaves_the_file_to_the_main_process(tmp_path: Path) -> None:
    (tmp_path / "junit.xml").write_text(report("ERROR", "failure"))
    finished(tmp_path, "junit.xml", workerinput={})
    assert (tmp_path / "junit.xml").read_text() == report("ERROR", "failure")


def test_a_file_that_cannot_be_read_back_ends_no_session(tmp_path: Path) -> None:
    (tmp_path / "junit.xml").write_text("<testsuites>")
    (told,) = finished(tmp_path, "junit.xml")
    assert "is left as pytest wrote it" in told
    assert finished(tmp_path, "/dev/null") == []


def test_a_report_of_other_tests_is_left_as_it_is() -> None:
    text = f"<testsuites><testsuite>{OTHER}</testsuite></testsuites>"
    assert with_verdicts(text) == text
