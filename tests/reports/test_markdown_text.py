"""Hostile text as Markdown: it renders as itself, by a renderer of CommonMark."""

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from tables import each

from perfgate.core.redaction import visible
from perfgate.reports.templating import code, fenced, prose, shortened

RENDERER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
PIECES = [*"\\`*_{}[]<>()|&~$^#@!\"'%+=-:/.0123 \t\n", "a", "www.", "https://", "GH-1"]
EVIL = st.lists(st.sampled_from(PIECES) | st.characters(), max_size=40).map("".join)


def rendered(text: str) -> str:
    """The one paragraph of the list item that the text is in; it fails if there is more."""
    (inline,) = [one for one in RENDERER.parse(f"- {text}") if one.type == "inline"]
    kinds = [one.type for one in RENDERER.parse(f"- {text}") if one.type != "inline"]
    assert kinds == [
        *("bullet_list_open", "list_item_open", "paragraph_open", "paragraph_close"),
        *("list_item_close", "bullet_list_close"),
    ]
    assert {one.type for one in inline.children or ()} <= {"text", "code_inline"}
    return "".join(one.content for one in inline.children or ()).replace("\u200b", "")


@given(EVIL)
def test_prose_renders_as_the_text_itself(text: str) -> None:
    expected = " ".join(visible(text).split())
    if expected:
        assert rendered(prose(text)) == expected.replace("\u200b", "")


@given(EVIL)
def test_a_name_renders_as_itself_too(text: str) -> None:
    expected = " ".join(visible(text).split())
    if expected:
        assert rendered(code(text)) == expected.replace("\u200b", "")


@given(st.lists(EVIL, min_size=2, max_size=2))
def test_a_cell_stays_one_cell(cells: list[str]) -> None:
    text = f"| a | b |\n|---|---|\n| {prose(cells[0])} | {code(cells[1])} |"
    kinds = [one.type for one in RENDERER.parse(text)]
    assert kinds.count("td_open") == 2
    assert kinds.count("tr_open") == 2


@given(st.lists(EVIL, min_size=1, max_size=4))
def test_no_line_ends_a_block_of_code(lines: list[str]) -> None:
    tokens = RENDERER.parse("\n".join([*fenced(lines), "", "after"]))
    assert [one.type for one in tokens] == [
        *("fence", "paragraph_open", "inline", "paragraph_close"),
    ]
    assert tokens[0].content.count("\n") == len(lines)


@each("text", ["- item", "+ item", "1. item", "12) item", "=", "---"])
def test_nothing_begins_a_block(text: str) -> None:
    assert rendered(prose(text)) == text


def test_long_texts_are_cut_and_say_so() -> None:
    assert shortened("x" * 9 + "\n y", 10) == "xxxxxxxxx…"
    assert rendered(prose("&" * 900)) == "&" * 299 + "…"


def test_what_reads_well_stays_as_it_is() -> None:
    assert prose("5.0 % lower (interval -6.0…-4.0 %), band 2 %") == (
        "5.0 % lower (interval -6.0…-4.0 %), band 2 %"
    )
    assert code("b200-serve-c4") == "`b200-serve-c4`"
