"""JUnit XML: a regression, an error and an undecided test are three different things in it.

Sessions that write it are in test_road.py.
"""

from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

from tables import each

from perfgate.suite.result_files import rewrite_junit, with_verdicts

OTHER = '<testcase name="other"><failure message="no test of ours">x</failure></testcase>'


def report(verdict: str, element: str) -> str:
    names = {"verdict": verdict, "scenario": "s", "probe": "c1", "summary": "why"}
    properties = "".join(f'<property name="{name}" value="{names[name]}"/>' for name in names)
    inside = f'<{element} message="Failed: a long table">the whole report</{element}>'
    counts = (
        f'failures="{1 + (element == "failure")}" errors="0" skipped="{element == "skipped":d}"'
    )
    return (
        f'<testsuites><testsuite {counts}><testcase name="ours"><properties>{properties}'
        f"</properties>{inside}</testcase>{OTHER}</testsuite></testsuites>"
    )


@each(
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
    (suite,) = ElementTree.fromstring(with_verdicts(report(verdict, written)))  # noqa: S314 (made here)
    ours, other = suite.findall("testcase")
    assert [one.tag for one in ours] == ["properties", element]
    assert ours[1].attrib == {"type": f"perfgate.{verdict}", "message": f"{verdict}: why"}
    assert ours[1].text == "the whole report"
    assert tuple(suite.get(name) for name in ("failures", "errors", "skipped")) == counts
    assert ElementTree.tostring(other, encoding="unicode") == OTHER


@each(
    "text",
    [
        report("PASS", "system-out"),
        report("PASS", "failure"),  # it failed beside its verdict
        f"<testsuites><testsuite>{OTHER}</testsuite></testsuites>",
    ],
)
def test_what_has_no_element_of_a_verdict_is_left_as_it_is(text: str) -> None:
    assert with_verdicts(text) == text


@each("name", ["junit.xml", "/dev/null"])
def test_a_file_that_cannot_be_read_back_ends_no_session(tmp_path: Path, name: str) -> None:
    (tmp_path / "junit.xml").write_text("<testsuites>")
    lines: list[str] = []
    config = SimpleNamespace(
        option=SimpleNamespace(xmlpath=name),
        invocation_params=SimpleNamespace(dir=tmp_path),
        get_terminal_writer=lambda: SimpleNamespace(line=lambda text, **_: lines.append(text)),
    )
    rewrite_junit(config)  # type: ignore[arg-type]
    assert ["is left as pytest wrote it" in line for line in lines] == [True] * (name[0] != "/")
