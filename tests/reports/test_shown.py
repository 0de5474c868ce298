"""A report as it may be shown: the same report, every text in it redacted."""

from run_reports import hostile

from perfgate.core.plain import to_plain
from perfgate.core.redaction import visible
from perfgate.reports.formats.base import shown


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
