"""The page as a parser of HTML reads it: everything is told without a script."""

from dataclasses import replace

import pytest
from building import applied
from lxml import html
from run_reports import judged, of_size, report, result

from benchmarks.report_page import made_report
from perfgate.core.verdict import Verdict
from perfgate.reports.charts import Chart, ChartSet, ChartTable
from perfgate.reports.formats.base import report_format
from perfgate.reports.page import page_of
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


def test_a_run_without_anything_is_a_page() -> None:
    empty = report(status=None, meaning="the run has not ended, or was killed", runs=())
    read = page(empty)
    assert words(one(read, "//h1")) == "Not ended"
    assert "No scenario was selected." in words(read)


def test_every_test_is_a_row_with_its_verdict_the_worst_first() -> None:
    rows = page(of_size(40)).xpath("//table[@id='all-results']/tbody/tr")
    assert len(rows) == 40
    verdicts = [row.get("data-v") for row in rows]
    assert verdicts[:4] == ["REGRESSION", "REGRESSION", "ERROR", "ERROR"]
    assert verdicts[-1] == "PASS"
    assert all(row.get("data-v") in words(row) for row in rows)


def test_the_name_of_a_metric_may_be_broken_between_its_words() -> None:
    text = page_of(of_size(5), NO_CHARTS, lambda: None)
    assert '<td><span class="metric">output_<wbr/>throughput</span> [tokens/s]<td' in text


def test_every_link_leads_to_a_place_of_the_page() -> None:
    read = page(of_size(40))
    ids = read.xpath("//@id")
    links = read.xpath("//a/@href")
    assert len(ids) == len(set(ids))
    assert links
    assert {link.removeprefix("#") for link in links} <= set(ids)


def test_synthetic_results_are_stamped_everywhere() -> None:
    marked = replace(
        of_size(20),
        synthetic=True,
        results=tuple(replace(each, synthetic=True) for each in of_size(20).results),
    )
    read = page(marked)
    assert words(read.xpath("//body/*[2]")[0]).startswith("SYNTHETIC")
    assert read.find("head/title").text.startswith("SYNTHETIC")
    assert "synthetic" in read.find("body").get("class")
    assert len(read.xpath("//*[contains(@class, 'watermarked')]")) >= 3
    for row in (*read.xpath("//table[@id='all-results']/tbody/tr"), *read.xpath("//article/h4")):
        assert "synthetic" in words(row)
    assert "SYNTHETIC" not in page(of_size(20)).find("body").text_content().split("{")[0]


def chart(rows: int = 3, svg: str | None = None, title: str = "a title") -> Chart:
    table = ChartTable(("commit", "value"), tuple((f"c{n}", f"{n}") for n in range(rows)))
    return Chart("history-0a", title, {"mark": "point", "title": title}, table, svg)


def test_a_chart_has_its_title_place_and_table_and_the_first_their_svg() -> None:
    first = replace(chart(svg="<svg><title>drawn</title></svg>"), id="first-0b")
    read = page(of_size(1), ChartSet((first,), "", {"b200-scenario-000": (chart(),)}))
    static, drawn = read.xpath("//figure")
    assert static.get("id") == "first-0b"
    assert one(static, ".//*[local-name()='svg']/*").text_content() == "drawn"
    assert not drawn.xpath(".//*[local-name()='svg']")
    assert [cells(row) for row in drawn.xpath(".//tbody/tr")] == ["c0 | 0", "c1 | 1", "c2 | 2"]
    assert "history-0a" in one(read, "//script[@id='chart-specs']").text
    assert read.xpath("//script[@id='chart-bundle']")


def test_without_the_extra_the_page_says_so_and_has_the_tables() -> None:
    charts = ChartSet((), "install perfgate[report]", {"b200-scenario-000": (chart(),)})
    read = html.document_fromstring(page_of(of_size(1), charts, lambda: None))
    assert "install perfgate[report]" in words(one(read, "//section[@id='verdict']"))
    assert not read.xpath("//script[@id='chart-specs']")
    assert len(read.xpath("//figure//tbody/tr")) == 3


def test_hostile_texts_stay_texts() -> None:
    of = result(
        0,
        Verdict.ERROR,
        name=EVIL + "x" * 4000,
        scenario=EVIL,
        reason=EVIL,
        rerun=EVIL,
        judgements=(judged(Verdict.REGRESSION, reason=EVIL, waiver=applied(EVIL)),),
        failure=Failure(EVIL, EVIL, (EVIL,), EVIL),
        notes=(EVIL,),
    )
    evil = report(of, suspicion=EVIL, merged=(EVIL,), meaning=EVIL)
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
    read = page(of_size(1))
    policy = one(read, "//meta[@http-equiv]").get("content")
    assert "default-src 'none'" in policy
    assert policy.count("sha256-") == 1
    assert "unsafe-inline'; img" in policy  # styles
    assert not read.xpath("//@src")
    assert set(read.xpath("//link/@href")) == {"data:,"}
    with_charts = page(of_size(1), ChartSet((chart(),), ""))
    assert one(with_charts, "//meta[@http-equiv]").get("content").count("sha256-") == 2


def test_500_results_with_histories_are_under_two_megabytes() -> None:
    pytest.importorskip("vl_convert")
    report, histories = made_report(500)
    text = report_format["html"](histories).render(report)
    assert len(text.encode()) < 2_000_000
    read = html.document_fromstring(text)
    assert len(read.xpath("//table[@id='all-results']/tbody/tr")) == 500
    assert len(read.xpath("//article")) == 500
    assert len(read.xpath("//figure")) > 100
