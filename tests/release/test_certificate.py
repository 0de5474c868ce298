"""The certificate, in Markdown and as a page, whatever names and reasons hold."""

import hashlib
import re
from dataclasses import replace
from html import unescape

import pytest
from made_checks import check, checked, hostile, packed, usual, with_every_finding
from markdown_it import MarkdownIt
from run_reports import HOSTILE, judged
from tables import each

from perfgate.core.verdict import RULE_VERSION, Verdict
from perfgate.release import certificate
from perfgate.release.certificate import certificate_markdown, certificate_page, content
from perfgate.release.check_result import Finding, ReleaseCheck
from perfgate.release.pack_archive import PackedFile

RENDERER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def texts(page: str) -> str:
    """What a person reads, without style and markup."""
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL).replace("\u200b", "")
    return " ".join(unescape(re.sub(r"<[^>]*>", "", body)).split())


def passing() -> ReleaseCheck:
    return check(*(checked(place) for place in range(3)))


def test_the_result_is_first_in_words_with_a_shape_and_stamped() -> None:
    by_stand_in = replace(checked(0).result, synthetic=True)
    lost = checked(0, Finding.SYNTHETIC, result=None, effect="warn")
    for made, title, stamps in (
        (passing(), "# ● PASSED: tensorrt-llm 1.3.0", []),
        (usual(), "# ◆ WARNED: ", []),
        (with_every_finding(), "# ▼ FAILED: ", ["SYNTHETIC", "FAILED"]),
        (check(replace(checked(0), result=by_stand_in)), "# ● PASSED", ["SYNTHETIC"]),
        (check(checked(1), lost), "# ◆ WARNED", ["SYNTHETIC"]),
    ):
        text, page = certificate_markdown(made), certificate_page(made)
        assert text.startswith(title)
        assert content(made)["stamps"] == stamps
        assert all(f"**{' · '.join(stamps)}**" in text for one in stamps)
        assert re.findall('<span data-word="([^"]*)">', page) == stamps
        assert ("<title>SYNTHETIC " in page) == ("SYNTHETIC" in stamps)


PASSING_IN_VAIN = checked(0, Finding.MISSING, effect="pass")


@each("tests", [(), (replace(checked(0), metrics=0),), (PASSING_IN_VAIN,)], ids=len)
def test_nothing_checked_never_looks_like_a_pass(tests) -> None:
    empty = check(*tests)
    text, page = certificate_markdown(empty), texts(certificate_page(empty))
    assert text.startswith("# ▼ FAILED")
    for words in ("Nothing was checked", "No error rate can be told", "0 metrics checked"):
        assert words in text
        assert words in page
    assert "Fit for release" not in text + page
    assert "PASSED" not in page


def test_faults_warnings_and_notes_of_the_whole_are_shown() -> None:
    made = check(checked(0))
    text = certificate_markdown(replace(made, faults=("too many",)))
    assert text.startswith("# ▼ FAILED")
    assert "its tests are well, the whole is not" in text
    assert "## Why it failed\n\n- too many\n" in text
    warned = certificate_markdown(replace(made, warnings=("old clock",), notes=("two runs",)))
    assert warned.startswith("# ◆ WARNED")
    for words in ("with 1 warning.", "## Warnings\n\n- old clock\n", "\n- two runs\n"):
        assert words in warned


def test_page_and_markdown_of_a_usual_release_say_the_same() -> None:
    text, page = certificate_markdown(usual(), packed()), certificate_page(usual(), packed())
    assert "| name | date | signature |" in text
    for told in (texts(RENDERER.render(text)), texts(page)):
        for words in (
            "◆ WARNED",
            "Fit for release by this policy, with 1 warning.",
            "60 required tests in 12 scenarios: 1 waived, 59 passed",
            "120 metrics checked",
            "tensorrt-llm 1.3.0, commit 0a1b2c3d4e5f, sha256:5f5f",
            "8xB200",
            f"sha256 {'ab' * 32}",
            "selected by b200 and serving",
            "at least 2 starts",
            "documented values reached, 1 floor reached",
            "runs at most 7 days old",
            "false alarms allowed in 1 % of releases",
            "4 of 5 output_throughput of c4 -5.1 % -6.1 … -4.1 % -2.0 % 2 0",
            "waived by Ada up to a loss of 6.0 %, until 2026-12-01: the new sampler",
            "b200-extra-c1",
            "ttft_p99_ms",
            "in at most 0.7 % of cases",
            "node7, 8 × NVIDIA B200",
            "started 2026-11-23 01",
            f"rule {RULE_VERSION}",
            "checked 2026-11-23 18:00 UTC",
            "perfgate release verify EVIDENCE.tar",
            certificate.root_of(packed()[1:3]),
        ):
            assert words in told, words
        assert re.search("[Mm]ay sign:? ?Ada", told)


def test_every_finding_is_shown_with_why() -> None:
    made = with_every_finding()
    text = certificate_markdown(made)
    rendered = RENDERER.render(text).replace("\u200b", "")
    for one in made.tests:
        assert f"1 {one.finding}" in rendered, one.finding
        if one.why:
            assert one.why in rendered, one.finding


def test_the_worst_metric_of_the_worst_test() -> None:
    one = checked(1)
    slow = judged(Verdict.PASS, 0.019, metric="tpot_mean_ms", runs_used=4, controls_used=3)
    worse = replace(one, result=replace(one.result, judgements=(*one.result.judgements, slow)))
    text = certificate_markdown(check(checked(0), worse, checked(2)))
    numbers = "+1.9 % | +0.9 … +2.9 % | +2.0 % | 4 | 3"
    assert f"| 3 of 3 | `tpot_mean_ms` of c2 | {numbers} |" in text


def test_the_worst_come_first_and_the_rest_is_counted() -> None:
    tests = [checked(place, each=1) for place in range(60)]
    tests[50] = checked(50, Finding.REGRESSION, each=1)
    tests[40] = checked(40, Finding.WAIVED, each=1)
    tests[30] = checked(30, Finding.MISSING, each=1)
    made = check(*tests)
    lines = content(made)["rows"]
    assert [one.worst.scenario[-3:] for one in lines[:4]] == ["050", "030", "040", "000"]
    text = certificate_markdown(made)
    assert text.count("| ● passed |") == certificate.MOST_SCENARIOS - 3
    assert "and 46 more scenarios: 46 passed" in text


def test_reasons_are_said_once() -> None:
    made = check(*(checked(place, Finding.MISSING, each=1) for place in range(40)))
    text = certificate_markdown(made)
    assert "- missing: in none of the runs (`b200-scenario-000-c1`" in text
    assert "and 36 more)" in text


def test_is_what_sha256sum_gives() -> None:
    """``sha256sum a b | sha256sum``."""
    lines = "11" * 32 + "  a\n" + "22" * 32 + "  b\n"
    expected = hashlib.sha256(lines.encode()).hexdigest()
    files = [PackedFile("b", "22" * 32, 1, "raw"), PackedFile("a", "11" * 32, 9, "raw")]
    assert certificate.root_of(files) == expected
    assert expected in certificate_markdown(passing(), files)


@each("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_stay_texts(text: str) -> None:
    """No element but those of the certificate, no hidden character, no line without an end."""
    made, usual = hostile([text] * len(Finding)), with_every_finding()
    told, plain = (certificate_markdown(one, packed()) for one in (made, usual))
    tokens = RENDERER.parse(told)
    kinds = {one.type for one in tokens}
    assert not kinds & {"html_block", "fence", "code_block", "blockquote_open", "hr"}
    inline = {part.type for one in tokens for part in one.children or ()}
    assert inline <= {"text", "code_inline", "strong_open", "strong_close", "softbreak"}
    headings = [one for one in tokens if one.type == "heading_open"]
    assert len(headings) <= len(re.findall("^#", plain, re.MULTILINE))
    assert sum(one.type == "table_open" for one in tokens) == 3
    assert max(map(len, told.splitlines())) < 4000
    page, own = (certificate_page(one, packed()) for one in (made, usual))
    elements, allowed = ({*re.findall(r"<([a-z][a-z0-9]*)", one)} for one in (page, own))
    assert elements <= allowed | {"li", "ul"}
    assert not re.search(r"<[^>]*\son[a-z]+=", page)
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08\x1b\ud800-\udfff]", told + page)
    assert len(page) < 60_000


def test_a_secret_of_this_process_is_no_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from perfgate.core import redaction

    secret = "s3cr3t-of-the-signer-0123456789"  # pragma: allowlist secret
    monkeypatch.setenv("HF_TOKEN", secret)
    redaction.remember({"HF_TOKEN": secret})
    made = replace(checked(0), why=f"token {secret}", effect="warn")
    assert secret not in certificate_markdown(check(made))


def test_one_file_without_a_script() -> None:
    page = certificate_page(usual(), packed())
    assert "<script" not in page
    assert not re.search(r"\ssrc=|@import|url\(", page)
    assert set(re.findall(r'href="([^"]*)"', page)) == {"data:,"}
    assert "default-src 'none'" in page
