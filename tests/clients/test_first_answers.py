"""First answers: whole, and what the scenario says of them; and those of quickstart_advanced.py.

What the recorded outputs say is in tests/data/values.json.
"""

from dataclasses import replace
from pathlib import Path

import pytest
from building import SCENARIO
from refusals import refused
from tables import each
from test_trtllm_bench import OFFLINE, POINT

from perfgate.clients.first_answers import (
    Answer,
    compared_with_texts,
    require_known,
    require_whole,
)
from perfgate.clients.report_lines import lines_of
from perfgate.clients.trtllm_quickstart import TrtllmQuickstart, parse
from perfgate.core.errors import RunError
from perfgate.core.locations import Locations
from perfgate.core.measurement import Measurement
from perfgate.engines.base import EngineBuild
from perfgate.scenarios.scenario import (
    DocumentedAnswer,
    EngineChoice,
    EngineSettings,
    Scenario,
    Smoke,
    Source,
)

PROMPT = "Where is New York?"
TEXT = " It is a state\n\nin the north."
GOOD = Answer(TEXT, "length", 6, 16)


def asking(*answers: DocumentedAnswer, release: str | None = "1.0.0rc6") -> Scenario:
    source = Source("recipe.md", "Basic Test", engine_version=release)
    return replace(SCENARIO, source=source, smoke=Smoke("completion", (PROMPT,), 16, answers))


@pytest.mark.parametrize(
    "answer",
    [
        GOOD,
        replace(GOOD, finish_reason="stop", completion_tokens=9),
        Answer(TEXT),  # of a program that tells the text alone
    ],
)
def test_a_whole_answer(answer: Answer) -> None:
    require_whole(PROMPT, answer, 16)


@each(
    ("answer", "failure", "words"),
    [
        (replace(GOOD, text="!!!!!!!!"), "broken_output", "repeats one character"),
        (replace(GOOD, text=" "), "broken_output", "is empty"),
        (Answer(" Paris", "stop", 6, 1), "broken_output", "single token"),
        (replace(GOOD, completion_tokens=17), "incomplete", "at most 16 requested"),
        (replace(GOOD, completion_tokens=7), "incomplete", "after 7 of 16 tokens"),
        (replace(GOOD, finish_reason=None), "incomplete", "finish_reason None"),
        (replace(GOOD, finish_reason="cancelled"), "incomplete", "'cancelled'"),
    ],
)
def test_an_answer_that_is_not_whole(answer: Answer, failure: str, words: str) -> None:
    error = refused(require_whole, PROMPT, answer, 16, error=RunError, match=words)
    assert (error.failure, error.evidence) == (failure, (repr(answer.text),))


@pytest.mark.parametrize(
    ("known", "words"),
    [
        (DocumentedAnswer(PROMPT, contains=("Paris",)), "does not contain 'Paris'"),
        (DocumentedAnswer(PROMPT, finish_reason="stop"), "reason length, documented is stop"),
        (DocumentedAnswer(PROMPT, prompt_tokens=5), "has prompt_tokens 6, documented is 5"),
        (DocumentedAnswer(PROMPT, completion_tokens=12), "tokens 16, documented is 12"),
    ],
)
def test_what_is_known_and_otherwise(known: DocumentedAnswer, words: str) -> None:
    smoke = Smoke("completion", (PROMPT,), 16, (known,))
    error = refused(require_known, smoke, {PROMPT: GOOD}, error=RunError, match=words)
    assert error.failure == "wrong_answer"


class TestTexts:
    KNOWN = DocumentedAnswer(PROMPT, texts=("Elsewhere.",))
    SAME = DocumentedAnswer(PROMPT, texts=("Elsewhere.", "It is a state in the north."))
    NONE = DocumentedAnswer(PROMPT, contains=("state",))

    @pytest.mark.parametrize("version", ["1.0.0rc6", "1.0.0rc6+abc123"])
    def test_another_text_at_the_documents_release(self, version: str) -> None:
        texts = {PROMPT: TEXT}
        error = refused(compared_with_texts, asking(self.KNOWN), version, texts, error=RunError)
        assert error.failure == "wrong_answer"
        assert error.evidence == (f"found: {TEXT!r}", "documented: 'Elsewhere.'")

    @each(
        ("known", "version", "facts"),
        [
            (KNOWN, "1.0.0rc5", {"not_as_documented": [PROMPT]}),
            (KNOWN, "1.3.0", {"not_as_documented": [PROMPT]}),
            (KNOWN, "main", {"not_as_documented": [PROMPT]}),
            (SAME, "1.0.0rc6", {}),  # white space aside
            (NONE, "1.0.0rc6", {}),
        ],
    )
    def test_another_text_at_another_release_is_reported(
        self, known: DocumentedAnswer, version: str, facts: dict[str, list[str]]
    ) -> None:
        assert compared_with_texts(asking(known), version, {PROMPT: TEXT}) == facts
        assert compared_with_texts(SCENARIO, version, {}) == {}


RECORDED = Path(__file__).parents[1] / "data" / "quickstart"
PROMPTS = (
    "Hello, my name is",
    "The president of the United States is",
    "The capital of France is",
    "The future of AI is",
)
QUICKSTART = Smoke("trtllm-quickstart", PROMPTS)
PLAIN = replace(OFFLINE, engine=EngineChoice("tensorrt-llm", EngineSettings(tp=8)))


def read(text: str, asked: tuple[str, ...] = ()) -> Measurement:
    return parse(lines_of(text), Smoke("trtllm-quickstart", asked) if asked else None)


def answer(text: str, prompt: str = "Hi") -> str:
    return f"[0] Prompt: {prompt!r}, Generated text: {text!r}\n"


@pytest.mark.parametrize(
    "text", ['it\'s "quoted"', "two\nlines", "tab\tand \\ slash", "naïve 東京", "1 1 1 2"]
)
def test_answers_are_read_as_python_wrote_them(text: str) -> None:
    assert read(answer(text)).facts["answer_texts"] == {"Hi": text}


def test_a_prompt_without_an_answer() -> None:
    asked = ("Hi", "And you?")
    error = refused(read, answer("Fine, thanks."), asked, error=RunError, match="'And you\\?'")
    assert error.failure == "incomplete"


@each("text", ["", "  \n", "!!!!!!!!!!!!", "the the the the the", "\n\n\n\n", "...", "no", "Hi"])
def test_no_answer_of_a_working_model(text: str) -> None:
    assert refused(read, answer(text), error=RunError).failure == "broken_output"


def test_a_documented_answer_is_held_to() -> None:
    known = DocumentedAnswer(PROMPTS[2], contains=("Paris",))
    smoke = Smoke("trtllm-quickstart", PROMPTS, answers=(known,))
    documented = (RECORDED / "numbered.txt").read_text()
    assert parse(lines_of(documented), smoke).facts["answers"] == 4
    other, told = lines_of(documented.replace("Paris", "London")), "does not contain 'Paris'"
    assert refused(parse, other, smoke, error=RunError, match=told).failure == "wrong_answer"


class TestQuickstart:
    def test_it_asks_only_for_first_answers(self) -> None:
        """What it asks: tests/data/calls.json."""
        build = EngineBuild("tensorrt-llm", "0.19.0", "abc")
        steps, paper = TrtllmQuickstart().steps, Locations(on_paper=True)
        refused(steps, PLAIN, build, POINT, paper, match="only a smoke test")

    def test_answers_are_in_its_log(self, tmp_path: Path) -> None:
        for text, failure in (
            ("Loading weights\n", "no_metrics"),
            (answer("Fine, thank you.")[:-6], "truncated_output"),
        ):
            (tmp_path / "benchmark.out").write_text(text)
            error = refused(TrtllmQuickstart().parse, PLAIN, QUICKSTART, tmp_path, error=RunError)
            assert error.failure == failure
        (tmp_path / "benchmark.out").write_text((RECORDED / "numbered.txt").read_text())
        assert TrtllmQuickstart().parse(PLAIN, QUICKSTART, tmp_path).facts["answers"] == 4
