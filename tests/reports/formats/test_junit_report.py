"""JUnit XML of a report: elements and properties as in pytest's file, within GitLab's limits."""

from lxml import etree
from run_reports import of_size, report, result

from perfgate.core.verdict import Verdict
from perfgate.reports.formats.junit import MOST_LINES, JunitFormat
from perfgate.reports.run_report import RunReport, TestResult


def junit(of: RunReport) -> etree._Element:
    return etree.fromstring(JunitFormat().render(of).encode())


def case(of: TestResult) -> etree._Element:
    (found,) = junit(report(of)).iter("testcase")
    return found


def test_output_is_cut_to_what_gitlab_shows_the_last_lines_of_a_log_kept() -> None:
    lines = (case(result(0, Verdict.ERROR)).findtext("error") or "").splitlines()
    assert len(lines) == MOST_LINES == 80
    assert lines[0] == "oom: the server ran out of GPU memory"
    assert "lines before are left out" in lines[2]
    assert "log line 199" in lines
    assert lines[-1].startswith("rerun: ")


def test_equal_names_stay_two() -> None:
    names = [result(0, name="same")] * 3 + [result(0, name=2000 * "n")] * 3
    shown = [one.get("name") or "" for one in junit(report(*names)).iter("testcase")]
    assert shown[:3] == ["same", "same (2)", "same (3)"]
    assert [len(one) < 1010 for one in shown] == 6 * [True]
    assert [one.rpartition(" ")[2] for one in shown[4:]] == ["(2)", "(3)"]


def test_500_results_are_within_the_limits_of_gitlab() -> None:
    text = JunitFormat().render(of_size(500))
    assert len(text.encode()) < 30 * 2**20
    root = etree.fromstring(text.encode())
    objects = sum(1 + len(one.attrib) + bool(one.text) + bool(one.tail) for one in root.iter())
    assert objects < 250_000
