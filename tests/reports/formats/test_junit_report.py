"""JUnit XML of a report: elements and properties as in pytest's file, within GitLab's limits."""

from building import outcome
from lxml import etree
from run_reports import of_size, report, result
from tables import each

from perfgate.core.verdict import Verdict
from perfgate.reports.formats.base import ReportContext
from perfgate.reports.formats.junit import ELEMENTS, MOST_LINES, JunitFormat, properties
from perfgate.reports.run_report import RunReport, TestResult


def junit(of: RunReport) -> etree._Element:
    return etree.fromstring(JunitFormat().render(of, ReportContext()).encode())


def case(of: TestResult) -> etree._Element:
    (found,) = junit(report(of)).iter("testcase")
    return found


@each("verdict", list(Verdict))
def test_each_verdict_has_the_element_that_the_suite_gives_it(verdict: Verdict) -> None:
    found = case(result(0, verdict))
    (element,) = [one for one in found if one.tag not in ("properties", "system-out")] or [None]
    if verdict not in ELEMENTS:
        assert element is None
        return
    assert element is not None
    assert element.tag == ELEMENTS[verdict]
    assert element.get("type") == f"perfgate.{verdict.value}"
    assert (element.get("message") or "").startswith(f"{verdict.value}: ")


def test_one_that_was_not_run_is_skipped_with_its_reason() -> None:
    (element,) = case(result(0, None)).findall("skipped")
    assert element.get("type") == "perfgate.lack"
    assert element.get("message") == "needs 8 GPUs of type B200, there is none"


def test_the_properties_are_those_of_the_session() -> None:
    ended = outcome(resumed_from="2026-11-05T12:00:00+00:00", injected=("a=1",))
    told = TestResult(
        test="t",
        name=ended.probe.id,
        scenario=ended.probe.scenario.id,
        probe=ended.probe.label,
        run="r",
        verdict=ended.verdict,
        judgements=ended.judgements,
        measured=ended.measured,
        compared_with=ended.compared_with,
        build=ended.build,
        injected=ended.injected,
        resumed_from=ended.resumed_from,
    )
    found = [(one.get("name"), one.get("value")) for one in case(told).iter("property")]
    assert found == properties(ended)
    assert ("metric.output_throughput.change", "-12.3 %") in found


def test_a_failure_says_all_that_a_person_needs() -> None:
    text = case(result(0, Verdict.REGRESSION)).findtext("failure") or ""
    for told in ("-5.0 %", "-6.0 … -4.0 %", "-2.0 %", "rerun: PERFGATE_MODELS=/models pytest '"):
        assert told in text
    assert "build: tensorrt-llm 1.3.0" in text


def test_output_is_cut_to_what_gitlab_shows_the_last_lines_of_a_log_kept() -> None:
    lines = (case(result(0, Verdict.ERROR)).findtext("error") or "").splitlines()
    assert len(lines) == MOST_LINES == 80
    assert lines[0] == "oom: the server ran out of GPU memory"
    assert "lines before are left out" in lines[2]
    assert "log line 199" in lines
    assert lines[-1].startswith("rerun: ")


def test_suites_are_scenarios_and_count_their_cases() -> None:
    root = junit(of_size(50))
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("50", "3", "3")
    suites = root.findall("testsuite")
    assert len(suites) == 10
    first = suites[0]
    assert (first.get("name"), first.get("time")) == ("b200-scenario-000", "1800")
    told = [first.get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert told == ["5", "1", "1", "2"]
    assert {one.get("classname") for one in first} == {"b200-scenario-000"}


def test_equal_names_stay_two() -> None:
    names = [
        one.get("name") for one in junit(report(*[result(0, name="same")] * 3)).iter("testcase")
    ]
    assert names == ["same", "same (2)", "same (3)"]


def test_500_results_are_within_the_limits_of_gitlab() -> None:
    text = JunitFormat().render(of_size(500), ReportContext())
    assert len(text.encode()) < 30 * 2**20
    root = etree.fromstring(text.encode())
    objects = sum(1 + len(one.attrib) + bool(one.text) + bool(one.tail) for one in root.iter())
    assert objects < 250_000


def test_synthetic_numbers_are_stamped() -> None:
    found = case(result(0, Verdict.REGRESSION, synthetic=True))
    for tag in ("failure", "system-out"):
        assert (found.findtext(tag) or "").startswith("SYNTHETIC: a stand-in made these numbers\n")
