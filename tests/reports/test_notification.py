"""The message of a notification: what it says, how long it is, and that data stays data."""

import re
from dataclasses import replace
from typing import Any

import pytest
from building import judgement
from hypothesis import given
from hypothesis import strategies as st

from perfgate.gate.verdict import Verdict
from perfgate.reports.notification import LONGEST, message, plain
from perfgate.reports.run_report import RunFacts, RunReport, TestResult
from perfgate.reports.series import SeriesState, changes, standings
from perfgate.verdicts.measured import MeasuredBuild

STARTED = "2026-11-23T02:00:00+00:00"
FACTS = RunFacts("nightly-7", STARTED, 1, gate=False, record_only=False, machine={}, versions={},
                 launcher="local", arguments=(), git={})  # fmt: skip
BUILD = MeasuredBuild("tensorrt-llm", "1.3.0", "0a1b2c3")


def lost(scenario: str, probe: str = "c4", **changed: Any) -> TestResult:
    made = TestResult(
        f"t[{scenario}-{probe}]", f"{scenario}-{probe}", scenario, probe, FACTS.id,
        Verdict.REGRESSION, judgements=(judgement(),), build=BUILD,
        compared_with="tensorrt-llm 1.2.0 of 2026-11-05, accepted by Ada",
    )  # fmt: skip
    return replace(made, **changed)


def text_of(*results: TestResult, known: dict[str, SeriesState] | None = None, **how: Any) -> str:
    of_report = {one: how.pop(one) for one in ("status", "meaning", "suspicion") if one in how}
    report = RunReport(1, (FACTS,), 1, "at least one regression", synthetic=False,
                       results=results, scenarios=(), efforts=())  # fmt: skip
    report = replace(report, **of_report)
    if how.get("synthetic"):
        report = replace(report, synthetic=True)
    found = standings(report, synthetic=how.get("synthetic", False))
    return message(report, found, changes(found, known or {}), **how)


def test_the_whole_message() -> None:
    known = {
        "small-c4": SeriesState("green", "nightly-6", STARTED),
        "small-c1": SeriesState("green", "nightly-6", STARTED),
        "other-c1": SeriesState("red", "nightly-6", STARTED),
    }
    text = text_of(
        lost("small"),
        lost("small", "c1", verdict=Verdict.INCONCLUSIVE, judgements=()),
        lost("other", "c1", verdict=Verdict.PASS, judgements=(judgement(verdict=Verdict.PASS),)),
        known=known,
        title="nightly of main",
        link="https://ci.example/runs/7?a=1&b=2",
    )
    assert text.splitlines() == [
        "*nightly of main: 1 scenario newly red, 1 newly green*",
        "exit status 1: at least one regression",
        "build: tensorrt-llm 1.3.0, commit 0a1b2c3",
        "compared with: tensorrt-llm 1.2.0 of 2026-11-05, accepted by Ada",
        "• newly red (was green): `small`: c4: output_throughput -12.3 % (interval -14.0 … -10.5 "
        "%, band -2.0 %); other tests of it: 1 newly undecided",
        "• newly green (was red): `other`: c1: output_throughput -12.3 %",
        "tests now: 1 red, 1 undecided, 1 green; run nightly-7",
        "https://ci.example/runs/7?a=1&amp;b=2",
    ]


def test_five_scenarios_are_shown_and_the_rest_counted() -> None:
    text = text_of(*(lost(f"s{number}") for number in range(8)))
    assert text.startswith("*perfgate: 8 scenarios newly red*\n")
    assert text.count("• newly red (new): ") == 5
    assert "\n… and 3 scenarios more\n" in text


def test_a_message_of_stand_ins_is_stamped_first() -> None:
    text = text_of(lost("small", synthetic=True), synthetic=True)
    assert text.startswith("*SYNTHETIC: stand-ins made these numbers; nothing is claimed")
    assert "SYNTHETIC" not in text_of(lost("small"))


def test_what_was_changed_on_purpose_is_told() -> None:
    assert "changed on purpose: max_batch_size=1\n" in text_of(
        lost("small", injected=("max_batch_size=1",))
    )


def test_a_machine_that_moved_is_told() -> None:
    assert "\n10 of 11 scenarios moved\n" in text_of(
        lost("small"), suspicion="10 of 11 scenarios moved"
    )


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ("a & b < c > d", "a &amp; b &lt; c &gt; d"),
        ("<!here> <@U1> <!channel>", "&lt;!here&gt; &lt;＠U1&gt; &lt;!channel&gt;"),
        ("@channel @all", "＠channel ＠all"),
        ("<https://evil.example|ok>", "&lt;https: //evil.example¦ok&gt;"),
        ("[ok](https://evil.example)", "(ok)(https: //evil.example)"),
        ("![](https://evil.example/x.png)", "!()(https: //evil.example/x.png)"),
        ("www.evil.example", "www .evil.example"),
        ("`code` *bold* ~no~", "'code' ∗bold∗ ∼no∼"),
        ("two\nlines\tand \x1b[31mred", "two lines and \\x1b(31mred"),
        ("\u202eright to left", "\\u202eright to left"),
    ],
)
def test_data_is_no_mention_no_link_and_no_mark(data: str, shown: str) -> None:
    assert plain(data, 100) == shown


def test_a_secret_is_masked_before_it_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "s3cr3t-of-some-length-0123"  # pragma: allowlist secret
    monkeypatch.setenv("HF_TOKEN", secret)
    assert plain(f"of {secret} and", 12) == "of *** and".replace("*", "∗")
    assert secret[:6] not in text_of(lost(secret), title=secret)


def test_a_cut_splits_no_escape() -> None:
    assert plain("&&&", 11) == "&amp;&amp;…"
    assert plain("&&", 11) == "&amp;&amp;"
    assert plain("abc", 3) == "ab…"


_HOSTILE = st.text(st.sampled_from("<>&@[]`*|:/w.\n\x1b\u202e ab"), max_size=400)


@given(_HOSTILE, _HOSTILE, _HOSTILE, st.integers(1, 7))
def test_whatever_the_data_the_message_is_short_and_has_no_control_sequence(
    name: str, reason: str, title: str, count: int
) -> None:
    results = (
        lost(f"{name}{number}", name, verdict=Verdict.INCONCLUSIVE, judgements=(), reason=reason,
             compared_with=reason, injected=(reason,))
        for number in range(count)
    )  # fmt: skip
    text = text_of(
        *results, title=title, link=f"https://ci.example/{'x' * 380}", suspicion=reason * 3,
        meaning=reason,
    )  # fmt: skip
    assert len(text) <= LONGEST
    assert not re.search(r"[<>@\[\]]|&(?!(?:amp|lt|gt);)|[\x00-\x09\x0b-\x1f]", text)
    assert text.count("://") == 1
