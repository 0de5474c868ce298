"""quickstart_advanced.py: answers to all prompts, each whole, and what is known of it.

What the recorded outputs say is in tests/data/values.json.
"""

from dataclasses import replace
from pathlib import Path

import pytest
from refusals import refused
from tables import each
from test_trtllm_bench import OFFLINE, POINT

from perfgate.clients.report_lines import lines_of
from perfgate.clients.trtllm_quickstart import TrtllmQuickstart, parse
from perfgate.core.errors import InputError, RunError
from perfgate.core.locations import Locations
from perfgate.core.measurement import Measurement
from perfgate.engines.base import EngineBuild
from perfgate.scenarios.scenario import DocumentedAnswer, EngineChoice, EngineSettings, Smoke

RECORDED = Path(__file__).parents[1] / "data" / "quickstart"
PROMPTS = (
    "Hello, my name is",
    "The president of the United States is",
    "The capital of France is",
    "The future of AI is",
)
SMOKE = Smoke("trtllm-quickstart", PROMPTS)
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


class TestClient:
    def test_one_call(self) -> None:
        build = EngineBuild("tensorrt-llm", "0.19.0", "abc")
        locations = Locations(on_paper=True)
        (step,) = TrtllmQuickstart().steps(PLAIN, build, SMOKE, locations)
        assert (step.role, step.probe) == ("benchmark", "smoke")
        assert "quickstart_advanced.py" in " ".join(step.command.argv)
        with pytest.raises(InputError, match="only a smoke test"):
            TrtllmQuickstart().steps(PLAIN, build, POINT, locations)

    def test_answers_are_in_its_log(self, tmp_path: Path) -> None:
        for text, failure in (
            ("Loading weights\n", "no_metrics"),
            (answer("Fine, thank you.")[:-6], "truncated_output"),
        ):
            (tmp_path / "benchmark.out").write_text(text)
            error = refused(TrtllmQuickstart().parse, PLAIN, SMOKE, tmp_path, error=RunError)
            assert error.failure == failure
        (tmp_path / "benchmark.out").write_text((RECORDED / "numbered.txt").read_text())
        assert TrtllmQuickstart().parse(PLAIN, SMOKE, tmp_path).facts["answers"] == 4
