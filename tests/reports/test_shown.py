"""A report as it may be shown: the same report, every text in it redacted."""

import pytest
from run_reports import hostile, of_size

from perfgate.core.plain import to_plain
from perfgate.core.redaction import visible
from perfgate.reports.shown import shown


def test_a_report_without_anything_hidden_stays_equal() -> None:
    assert shown(of_size(20)) == of_size(20)


def test_every_text_is_redacted_names_of_fields_of_the_machine_among_them() -> None:
    def texts(held: object) -> list[str]:
        if isinstance(held, str):
            return [held]
        if isinstance(held, dict):
            return [text for pair in held.items() for part in pair for text in texts(part)]
        return [text for part in held for text in texts(part)] if isinstance(held, list) else []

    before, after = texts(to_plain(hostile())), texts(to_plain(shown(hostile())))
    assert after == [visible(one) for one in before]
    assert after != before


def test_a_second_time_changes_nothing() -> None:
    assert shown(shown(hostile())) == shown(hostile())


def test_a_secret_of_this_process_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI_JOB_TOKEN", "b200-scenario-000")
    assert "b200-scenario-000" not in str(to_plain(shown(of_size(5))))
