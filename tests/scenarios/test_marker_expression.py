"""Marker expressions mean what they mean to pytest, and are refused where pytest refuses them."""

import pytest
from _pytest.mark.expression import Expression
from hypothesis import example, given
from hypothesis import strategies as st

from perfgate.core.errors import InputError
from perfgate.scenarios.marker_expression import parse

NAMES = ("b200", "slow", "wide_ep", "a-b.c", "x[1/2]", "::s\\t", "+1", "True", "None", "Ωμ")


def expressions() -> st.SearchStrategy[str]:
    return st.recursive(
        st.sampled_from(NAMES),
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from([" and ", " or ", "\tor  "]), inner).map("".join),
            inner.map("not {}".format),
            inner.map("( {})".format),
        ),
        max_leaves=12,
    )


@given(expressions(), st.sets(st.sampled_from(NAMES)))
def test_it_selects_as_pytest_does(text: str, markers: set[str]) -> None:
    ours, theirs = parse(text), Expression.compile(text)
    assert ours.matches(markers) == theirs.evaluate(lambda name, /, **_: name in markers)
    assert ours.names == theirs.idents()


words = st.sampled_from([*NAMES, "and", "or", "not", "(", ")", "andor", "nota", ",", "=", "?", "@"])
texts = st.one_of(
    st.lists(words).map(" ".join),
    st.lists(words).map("".join),
    st.text(alphabet="abor nd()t?\t,=\n:", max_size=12),
)


def column_refused(text: str) -> int | None:
    """Where pytest refuses it; None: it does not."""
    try:
        Expression.compile(text)
    except SyntaxError as refusal:
        return refusal.offset
    return None


@given(texts)
@example("a (")
@example("  ")
@example("")
@example("a\nb")
@example("a ?")
def test_any_text_is_read_or_refused_as_by_pytest(text: str) -> None:
    column = column_refused(text)
    if column is None and "=" not in text:
        nothing = Expression.compile(text).evaluate(lambda name, /, **_: False)
        assert parse(text).matches(()) == nothing
        return
    with pytest.raises(InputError) as caught:
        parse(text)
    if "have none" not in str(caught.value):  # name(key=value), right or wrong, stops at its (
        assert f"at column {column}\n" in str(caught.value.found)


def test_a_malformed_one_shows_its_column() -> None:
    with pytest.raises(InputError) as caught:
        parse("b200 and not (slow or)")
    assert str(caught.value) == (
        "-m: malformed marker expression\n"
        "  found: ')' at column 22\n"
        "    b200 and not (slow or)\n"
        "                         ^\n"
        "  expected: a marker, not, or an opening parenthesis"
    )


@pytest.mark.parametrize("text", ["b200(gpus=8)", "not b200 ( gpus = 8 )"])
def test_arguments_of_a_marker_are_refused(text: str) -> None:
    Expression.compile(text)
    with pytest.raises(InputError, match="markers of scenarios have none"):
        parse(text)


def test_an_endless_nesting_is_no_traceback() -> None:
    with pytest.raises(InputError, match="nested too deeply"):
        parse("(" * 5000 + "a" + ")" * 5000)
