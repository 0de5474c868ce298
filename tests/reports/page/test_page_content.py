"""The page as a parser of HTML reads it: everything is told without a script."""

from dataclasses import replace

import pytest
from building import applied
from lxml import html
from page_reports import histories, judgement, report, result
from tables import each

from perfgate.core.measured import ChangedQuestions
from perfgate.core.verdict import Verdict
from perfgate.reports.charts import Chart, ChartSet, ChartTable
from perfgate.reports.formats.base import ReportContext, report_format
from perfgate.reports.page import page_of
from perfgate.reports.page.sections import LOG_LINES
from perfgate.reports.run_report import Failure, RunReport

NO_CHARTS = ChartSet((), "no charts: vl-convert is not installed")
EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u202ejavascript:alert(3)"


def page(of: RunReport, charts: ChartSet = NO_CHARTS) -> html.HtmlElement:
    return html.document_fromstring(page_of(of, charts, lambda: "made bundle"))


def words(element: html.HtmlElement) -> str:
    return " ".join(element.text_content().split())


def cells(row: html.HtmlElement) -> str:
    return " | ".join(words(cell) for cell in row)


def one(of: html.HtmlElement, selector: str) -> html.HtmlElement:
    (found,) = of.xpath(selector)
    return found


def test_the_first_screen_tells_the_verdict_the_build_and_what_moved() -> None:
    first = one(page(report(16)), "//section[@id='verdict']")
    assert words(one(first, ".//h1")) == "Regression"
    told = words(first)
    assert "at least one regression of performance or accuracy." in told
    assert "exit status 1" in told
    assert "tensorrt-llm 1.3.0, commit 0a1b2c3d4e5f, image example/engine:1.3.0" in told
    assert "the baseline of tensorrt-llm 1.2.0, commit 99887766" in told
    assert "4 GPU hours" in told  # 8 GPUs for half an hour
    regressed = first.xpath(".//h2[.='Regressed']/following::table[1]/tbody/tr")
    assert [cells(row) for row in regressed] == [
        "b200-made-0-regression-c64-6 | output_throughput [tokens/s]"
        f"{against} | -7.1 % | -9.3 … -4.8 % | -2.0 % |  | 41,400 | 38,461"
        for against in ("", " since the anchor NO_CONTROL")
    ]


@each(
    ("heading", "said"),
    [
        ("Failed", "ERROR b200-made-0-failed-c2048-11: oom: CUDA ran out of memory"),
        ("Could not be decided", "b200-made-0-undecided-c256-8"),
        ("Could not be decided", "driver: 570.1 here, 565.2 in the baseline"),
        ("Could not be decided", "there is no baseline yet"),
        ("Waived losses", "known slower sampler, until 2026-12-01"),
        ("Improved", "b200-made-0-improvement-c128-7"),
        ("Not run", "needs 8×B200, found no GPU"),
        ("Not run", "not enough time left: needs 2 h, 20 min are left"),
        ("Not run", "the session ended first"),
    ],
)
def test_the_first_screen_tells_what_else_became_of_the_tests(heading: str, said: str) -> None:
    first = one(page(report(16)), "//section[@id='verdict']")
    (title,) = first.xpath(f".//h2[.='{heading}']")
    told = ""
    for element in title.itersiblings():
        if element.tag == "h2":
            break
        told += words(element)
    assert said in told


def test_suspicion_waiver_faults_and_merging_are_on_the_first_screen() -> None:
    told = words(
        one(
            page(report(suspicion="the host moved", waiver_faults=("old",), merged=("retry",))),
            "//section[@id='verdict']",
        )
    )
    for said in ("Suspicion: the host moved", "Waiver that does not hold: old", "Merging retry"):
        assert said in told


def test_a_run_without_anything_is_a_page() -> None:
    empty = report(0, status=None, meaning="the run has not ended, or was killed", runs=())
    read = page(empty)
    assert words(one(read, "//h1")) == "Not ended"
    assert "No scenario was selected." in words(read)


def test_every_test_is_a_row_with_its_verdict_the_worst_first() -> None:
    rows = page(report(32)).xpath("//table[@id='all-results']/tbody/tr")
    assert len(rows) == 32
    verdicts = [row.get("data-v") for row in rows]
    assert verdicts[:4] == ["REGRESSION", "REGRESSION", "ERROR", "ERROR"]
    assert verdicts[-1] == "PASS"
    assert all(row.get("data-v") in words(row) for row in rows)


def test_the_name_of_a_metric_may_be_broken_between_its_words() -> None:
    text = page_of(report(), NO_CHARTS, lambda: None)
    assert '<td><span class="metric">output_<wbr/>throughput</span> [tokens/s]<td' in text


def test_every_link_leads_to_a_place_of_the_page() -> None:
    read = page(report(32))
    ids = read.xpath("//@id")
    links = read.xpath("//a/@href")
    assert len(ids) == len(set(ids))
    assert links
    assert {link.removeprefix("#") for link in links} <= set(ids)


def test_a_section_has_all_metrics_of_a_test() -> None:
    article = one(page(report(16)), "//article[.//span[@class='name'][contains(., 'regression')]]")
    heads = [words(head) for head in article.xpath(".//thead//th")]
    rows = [[words(cell) for cell in row] for row in article.xpath(".//tbody/tr")]
    assert heads == [
        *("Metric", "Unit", "Value", "n", "Documented"),
        *("Baseline", "Change", "Interval", "Band", "Verdict"),
    ]
    assert rows[0] == [
        *("output_throughput", "tokens/s", "41,234", "3", "40,000"),
        *("41,400", "-7.1 %", "-9.3 … -4.8 %", "-2.0 %", "▼ REGRESSION"),
    ]
    assert [row[0] for row in rows] == [
        *("output_throughput", "tpot_mean_ms", "output_throughput since the anchor"),
        *("request_throughput", "ttft_median_ms", "ttft_p99_ms", "tpot_p99_ms"),
        *("e2el_mean_ms", "output_speed_per_user"),
    ]
    assert rows[5][-1] == "· reported"
    told = words(article)
    for said in (
        "output_throughput: -7.1 %, told in words",
        "NO_CONTROL: no control: the machine is not excluded",
        "documented inbest_practice.md, section 3",
        "rerun: pytest perf_tests --run-dir runs/again -k 'b200-made-0-regression-c64-6'",
    ):
        assert said in told


def test_a_failure_has_its_class_last_lines_and_next_step() -> None:
    lines = tuple(f"line {number}" for number in range(300))
    failed = replace(
        result("failed", Verdict.ERROR), failure=Failure("hang", "no answer", lines, "look there")
    )
    read = one(page(replace(report(0), results=(failed,))), "//div[@class='failure']")
    shown = one(read, ".//pre").text_content().split("\n")
    assert shown[0] == "… 100 lines before, in the run folder"
    assert shown[1:] == list(lines[-LOG_LINES:])
    assert "hang: no answer" in words(read)
    assert "Next step: look there" in words(read)


def test_the_changed_questions_of_each_score_are_named() -> None:
    task = "accuracy:gsm8k:exact_match:"
    changed = tuple(
        ChangedQuestions(f"{task}{filter_}", "baseline", 100, 3, 1, ("a", "b"), ("c",))
        for filter_ in ("strict-match", "flexible-extract")
    )
    of = replace(result("pass", Verdict.PASS), changed=changed)
    told = words(page(replace(report(0), results=(of,))))
    for filter_ in ("strict-match", "flexible-extract"):
        assert (
            f"{task}{filter_}: 3 of 100 questions lost, 1 gained "
            "Lost (the first 2 of 3): a b Gained: c" in told
        )


def test_machine_and_run_facts_are_told() -> None:
    told = words(one(page(report(16)), "//section[@id='runs']"))
    for said in ("node7", "name B200, driver 570.1", "4c3100f", "pytest -m b200", "exit status 1"):
        assert said in told


def test_synthetic_results_are_stamped_everywhere() -> None:
    marked = replace(
        report(16),
        synthetic=True,
        results=tuple(replace(each, synthetic=True) for each in report(16).results),
    )
    read = page(marked)
    assert words(read.xpath("//body/*[2]")[0]).startswith("SYNTHETIC")
    assert read.find("head/title").text.startswith("SYNTHETIC")
    assert "synthetic" in read.find("body").get("class")
    assert len(read.xpath("//*[contains(@class, 'watermarked')]")) >= 3
    for row in (*read.xpath("//table[@id='all-results']/tbody/tr"), *read.xpath("//article/h4")):
        assert "synthetic" in words(row)
    assert "SYNTHETIC" not in page(report(16)).find("body").text_content().split("{")[0]


def chart(rows: int = 3, svg: str | None = None, title: str = "a title") -> Chart:
    table = ChartTable(("commit", "value"), tuple((f"c{n}", f"{n}") for n in range(rows)))
    return Chart("history-0a", title, {"mark": "point", "title": title}, table, svg)


def test_a_chart_has_its_title_place_and_table_and_the_first_their_svg() -> None:
    first = replace(chart(svg="<svg><title>drawn</title></svg>"), id="first-0b")
    read = page(report(1), ChartSet((first,), "", {"b200-made-0": (chart(),)}))
    static, drawn = read.xpath("//figure")
    assert static.get("id") == "first-0b"
    assert one(static, ".//*[local-name()='svg']/*").text_content() == "drawn"
    assert not drawn.xpath(".//*[local-name()='svg']")
    assert [cells(row) for row in drawn.xpath(".//tbody/tr")] == ["c0 | 0", "c1 | 1", "c2 | 2"]
    assert "history-0a" in one(read, "//script[@id='chart-specs']").text
    assert read.xpath("//script[@id='chart-bundle']")


def test_without_the_extra_the_page_says_so_and_has_the_tables() -> None:
    charts = ChartSet((), "install perfgate[report]", {"b200-made-0": (chart(),)})
    read = html.document_fromstring(page_of(report(1), charts, lambda: None))
    assert "install perfgate[report]" in words(one(read, "//section[@id='verdict']"))
    assert not read.xpath("//script[@id='chart-specs']")
    assert len(read.xpath("//figure//tbody/tr")) == 3


def test_hostile_texts_stay_texts() -> None:
    of = replace(
        result("failed", Verdict.ERROR),
        name=EVIL + "x" * 4000,
        scenario=EVIL,
        reason=EVIL,
        rerun=EVIL,
        judgements=(judgement(Verdict.REGRESSION, reason=EVIL, waiver=applied(EVIL)),),
        failure=Failure(EVIL, EVIL, (EVIL,), EVIL),
        notes=(EVIL,),
    )
    evil = replace(report(0), results=(of,), suspicion=EVIL, merged=(EVIL,), meaning=EVIL)
    charts = ChartSet((), EVIL, {EVIL: (chart(title=EVIL),)})
    text = page_of(evil, charts, lambda: "made bundle")
    read = html.document_fromstring(text)
    assert "\u202e" not in text
    assert "\\u202e" in text
    assert not read.xpath("//img")
    assert len(read.xpath("//script")) == 3  # specs, bundle, our own
    assert not read.xpath("//@*[starts-with(name(), 'on')]")
    assert all(link.startswith("#") for link in read.xpath("//a/@href"))
    assert "alert(1)" in one(read, "//article/h4").text_content()
    assert "</" not in one(read, "//script[@id='chart-specs']").text


def test_only_our_own_scripts_may_run_and_nothing_may_be_loaded() -> None:
    read = page(report(1))
    policy = one(read, "//meta[@http-equiv]").get("content")
    assert "default-src 'none'" in policy
    assert policy.count("sha256-") == 1
    assert "unsafe-inline'; img" in policy  # styles
    assert not read.xpath("//@src")
    assert set(read.xpath("//link/@href")) == {"data:,"}
    with_charts = page(report(1), ChartSet((chart(),), ""))
    assert one(with_charts, "//meta[@http-equiv]").get("content").count("sha256-") == 2


def test_500_results_with_histories_are_under_two_megabytes() -> None:
    pytest.importorskip("vl_convert")
    large = report(500)
    text = report_format["html"]().render(large, ReportContext(histories(large)))
    assert len(text.encode()) < 2_000_000
    read = html.document_fromstring(text)
    assert len(read.xpath("//table[@id='all-results']/tbody/tr")) == 500
    assert len(read.xpath("//article")) == 500
    assert len(read.xpath("//figure")) > 100
