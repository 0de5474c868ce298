"""Control characters: found, and shown as escapes on one line."""

from tables import each

from perfgate.core.redaction import control_character_in, escaped


@each("text", ["", "two words", "Zoë’s “№1”", "日本", "العربية", "a\xa0b", "👩‍🚀"])
def test_what_people_write_has_none(text: str) -> None:
    assert control_character_in(text) is None
    assert escaped(text) == text


@each(
    ("text", "found"),
    [
        ("a\nb", r"\n"),
        ("\x1b[2J", r"\x1b"),
        ("\x7f", r"\x7f"),
        ("\x85", r"\x85"),
        ("\u2028", r"\u2028"),
        ("\u202e", r"\u202e"),
        ("\ud800", r"\ud800"),
    ],
)
def test_the_first_is_told_as_an_escape(text: str, found: str) -> None:
    assert control_character_in(text) == found
    assert found in escaped(text)
    assert text not in escaped(text)
