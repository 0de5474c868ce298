"""One report in which every text is hostile, through every format, read by that format's parser."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest
from lxml import etree
from markdown_it import MarkdownIt
from markdown_it.token import Token
from run_reports import HOSTILE, hostile, report, result
from tables import each

from perfgate.core.redaction import visible
from perfgate.core.verdict import Verdict
from perfgate.reports.formats.base import report_format
from perfgate.reports.run_report import RunReport

HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
# One with all texts, and one for each alone, so that what a format cuts hides none of them.
REPORTS = (hostile(), *(hostile(text) for text in HOSTILE))
# For the page, which looks up every judged metric: an unknown one is refused as unusable input.
OF_KNOWN = (hostile(metrics=False), *(hostile(text, metrics=False) for text in HOSTILE))


def written(name: str, of: RunReport) -> str:
    return report_format[name]().render(of)


@cache
def hostile_text(name: str, place: int) -> str:
    return written(name, (OF_KNOWN if name == "html" else REPORTS)[place])


each_report = each("place", range(len(REPORTS)))


@each("name", sorted(report_format))
@each("place", range(len(REPORTS)))
def test_every_format_is_text_without_hidden_characters(name: str, place: int) -> None:
    text = hostile_text(name, place)
    text.encode()
    assert text.endswith("\n") or not text
    assert not HIDDEN.search(text)


# --- Markdown -----------------------------------------------------------------------------------

OURS = re.compile(r"<details><summary>[A-Z][a-z ]+</summary>\n|</details>\n")
RENDERER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
INLINE = {"text", "code_inline", "softbreak", "strong_open", "strong_close"}
BLOCKS = {"paragraph", "heading", "bullet_list", "list_item", "table", "thead", "tbody", "tr"} | {
    "th",
    "td",
}


def parts(text: str) -> Iterator[Token]:
    for block in RENDERER.parse(text):
        yield block
        yield from block.children or ()


@each_report
def test_no_element_of_markdown_or_html_comes_of_hostile_text(place: int) -> None:
    text = hostile_text("markdown", place)
    seen = list(parts(text))
    assert len(seen) > 30
    for one in seen:
        kind = one.type.removesuffix("_open").removesuffix("_close")
        if one.type == "html_block":
            assert OURS.fullmatch(one.content)
        else:
            assert kind in BLOCKS or one.type in INLINE | {"inline", "fence"}, one
    assert sum(one.type == "fence" for one in seen) <= 1
    lists = [one for one in seen if one.type == "bullet_list_open"]
    assert all(one.level == 0 for one in lists)  # no list in a list
    for one in re.findall(r"^\| .*", text, re.MULTILINE):
        assert one.count("|") == 6
    assert not re.search(r"^\s*/", text, re.MULTILINE)  # a quick action of GitLab, /merge


REFERENCE = re.compile(
    r"@\w|#\d|!\d|\$\d|&\d|~[\w\"]|%[\"\w]|\^\w|GH-\d|://|www\.|:[a-z]+:", re.IGNORECASE
)


@each_report
def test_no_mention_reference_or_address_is_left_in_what_is_rendered(place: int) -> None:
    rendered = [one.content for one in parts(hostile_text("markdown", place)) if one.type == "text"]
    assert [one for one in rendered if REFERENCE.search(one)] == []


@each("text", [one for one in HOSTILE if one.isprintable() and len(one) < 160])
def test_hostile_text_is_still_readable(text: str) -> None:
    one = result(0, Verdict.ERROR, name=text, failure=None, reason=text)
    shown = (part for part in parts(written("markdown", report(one))) if part.type in INLINE)
    texts = [part.content for part in shown]
    assert "".join(texts).replace("\u200b", "").count(text) == 2  # the reason and the name


def test_a_fence_in_a_command_ends_no_block_of_code() -> None:
    one = result(0, Verdict.REGRESSION, rerun="pytest ```\n# heading\n````\n@octocat")
    (fence,) = (part for part in parts(written("markdown", report(one))) if part.type == "fence")
    assert fence.content == "pytest ```\\n# heading\\n````\\n@octocat\n"


# --- the others ---------------------------------------------------------------------------------

COMMAND = re.compile(r"::(error|warning) title=[^:,\r\n]+::[^\r\n]+")


@each_report
def test_every_annotation_is_one_command_and_no_other(place: int) -> None:
    lines = re.split(r"\r\n|\r|\n", hostile_text("annotations", place))
    assert lines.pop() == ""
    assert len(lines) <= 8
    for line in lines:
        assert COMMAND.fullmatch(line)
        assert not re.search(r"%(?!25|3A|2C)", line)


@each_report
def test_junit_has_no_element_that_is_not_its_own(place: int) -> None:
    parser = etree.XMLParser(resolve_entities=False, huge_tree=False)
    root = etree.fromstring(hostile_text("junit", place).encode(), parser)
    assert {one.tag for one in root.iter()} <= {
        *("testsuites", "testsuite", "testcase", "properties", "property", "failure", "error"),
        *("skipped", "system-out"),
    }
    assert not root.getroottree().docinfo.doctype
    names = [(one.get("classname"), one.get("name")) for one in root.iter("testcase")]
    assert len({*names}) == len(names) == len(REPORTS[place].results)
    assert len({name for _, name in names}) == len(names)
    for one in root.iter("failure", "error", "skipped", "system-out"):
        assert len((one.text or "").splitlines()) <= 80


@each_report
def test_json_holds_what_the_report_does(place: int) -> None:
    evil = REPORTS[place]
    held = json.loads(hostile_text("json", place), parse_constant=pytest.fail)
    assert held["suspicion"] == visible(evil.suspicion)
    assert [one["name"] for one in held["results"]] == [visible(one.name) for one in evil.results]
    told = json.loads(hostile_text("benchmark", place), parse_constant=pytest.fail)
    assert len(told["benchmarks"]) == sum(len(one.measured) for one in evil.results) > 20


# --- secrets of the process that makes the report -----------------------------------------------


@pytest.mark.parametrize("name", sorted(report_format))
def test_a_secret_that_slipped_into_a_record_is_masked_where_the_report_is_made(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "Qx7-" + "mUqh2" * 4  # pragma: allowlist secret
    monkeypatch.setenv("CI_JOB_TOKEN", secret)
    one = result(0, Verdict.ERROR, rerun=f"pytest --x={secret}", name=f"a{secret}")
    assert one.failure is not None
    one = replace(one, failure=replace(one.failure, message=f"clone https://me:{secret}@host"))
    two = result(1, Verdict.REGRESSION, probe=secret, reason=secret, compared_with=secret)
    text = written(name, report(one, two, suspicion=secret))
    assert secret not in text
    assert "***" in text or "&#42;&#42;&#42;" in text
