"""The documented SGLang lines: the release's parser takes them, and they are what is rendered."""

import shlex

import pytest
from sglang_scenarios import DOCUMENTED, DOCUMENTS, DP, PAGES, page, render, scenario, values
from tables import each

from perfgate.engines.option_check import Call, of_call
from perfgate.engines.sglang.releases.table import SERVE
from perfgate.scenarios.scenario import EngineSettings

OURS = {"--host": ("0.0.0.0",), "--port": ("8000",)}  # noqa: S104


def call(words: tuple[str, ...]) -> Call:
    return Call(SERVE, (), words, SERVE)


@each("line", DOCUMENTED)
@each("release", ["0.5.3", "0.5.23"])
def test_a_documented_line_is_taken_by_the_releases_own_parser(line: str, release: str) -> None:
    words = tuple(shlex.split(line)[3:])
    assert list(of_call(call(words), page(release))) == []
    wrong = (*words, "--enable-dp-atention")
    assert [one.place for one in of_call(call(wrong), page(release))] == ["--enable-dp-atention"]


@pytest.mark.parametrize(("line", "settings"), DOCUMENTED.items())
def test_a_documented_line_is_what_is_rendered(line: str, settings: EngineSettings) -> None:
    known = page(DOCUMENTS)
    rendered = values(render(scenario(settings)).argv, known)
    assert rendered == {**OURS, **values(line, known)}


@each("release", PAGES)
@each("spelling", ["--model", "--model-path"])
@each("ranks", ["--tp", "--tp-size"])
def test_both_spellings_of_the_document_name_one_option(
    release: str, spelling: str, ranks: str
) -> None:
    known = page(release)
    model, tp = known.option(SERVE, spelling), known.option(SERVE, ranks)
    assert model is not None
    assert "--model-path" in model.options
    assert tp is not None
    assert "--tp-size" in tp.options


def test_what_an_engine_does_not_add_at_the_documents_release() -> None:
    """No seed, no name, no pin: the document's line has none."""
    words = render(scenario(DP)).argv
    assert not {"--random-seed", "--served-model-name", "--disable-overlap-schedule"} & set(words)
