"""The nearest known word, for the hint of a message."""

from tables import each

from perfgate.core.suggestion import did_you_mean, nearest

KNOWN = ("b200", "GB200", "lm_eval")


@each(
    ("word", "found"),
    [
        ("b20", "b200"),
        ("gb200", "GB200"),
        ("lm-eval", "lm_eval"),
        ("LMEVAL", "lm_eval"),
        ("sglang", None),
        ("", None),
    ],
)
def test_a_few_letters_or_case_may_differ(word: str, found: str | None) -> None:
    assert nearest(word, KNOWN) == found
    assert did_you_mean(word, KNOWN) == (f"did you mean {found}?" if found else None)


def test_without_known_words_nothing_is_meant() -> None:
    assert did_you_mean("b20", ()) is None
