"""First answers of a server or of quickstart_advanced.py: there, whole, and what is known of them.

Broken ones are told, and nothing that a model really says is taken for one. What the recorded
outputs say is in tests/data/values.json.
"""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from building import SCENARIO
from hypothesis import given
from hypothesis import strategies as st
from printed_lines import lines_of
from refusals import refused
from tables import each
from test_trtllm_bench import OFFLINE, POINT

from perfgate.clients.first_answers import (
    Answer,
    ask,
    compared_with_texts,
    fault,
    require_known,
    require_whole,
)
from perfgate.clients.trtllm_offline import TrtllmQuickstart, parse_quickstart
from perfgate.core.errors import RunError
from perfgate.core.measurement import Measurement
from perfgate.core.programs.locations import Locations
from perfgate.engines.base import Endpoint, EngineBuild
from perfgate.scenarios.scenario import (
    DocumentedAnswer,
    EngineChoice,
    EngineSettings,
    Scenario,
    Smoke,
    Source,
)

DATA = Path(__file__).parents[1] / "data"
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
    def test_another_text_at_another_release_is_reported(self, known, version, facts) -> None:
        assert compared_with_texts(asking(known), version, {PROMPT: TEXT}) == facts
        assert compared_with_texts(SCENARIO, version, {}) == {}


QUICKSTARTS = DATA / "quickstart"
PROMPTS = (
    "Hello, my name is",
    "The president of the United States is",
    "The capital of France is",
    "The future of AI is",
)
QUICKSTART = Smoke("trtllm-quickstart", PROMPTS)
PLAIN = replace(OFFLINE, engine=EngineChoice("tensorrt-llm", EngineSettings(tp=8)))


def read(text: str, asked: tuple[str, ...] = ()) -> Measurement:
    return parse_quickstart(lines_of(text), Smoke("trtllm-quickstart", asked) if asked else None)


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


def test_no_answer_of_a_working_model() -> None:
    assert refused(read, answer("!!!!!!!!"), error=RunError).failure == "broken_output"


def test_a_documented_answer_is_held_to() -> None:
    known = DocumentedAnswer(PROMPTS[2], contains=("Paris",))
    smoke = Smoke("trtllm-quickstart", PROMPTS, answers=(known,))
    documented = (QUICKSTARTS / "numbered.txt").read_text()
    assert parse_quickstart(lines_of(documented), smoke).facts["answers"] == 4
    other, told = lines_of(documented.replace("Paris", "London")), "does not contain 'Paris'"
    error = refused(parse_quickstart, other, smoke, error=RunError, match=told)
    assert error.failure == "wrong_answer"


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
            error = refused(TrtllmQuickstart().parse, QUICKSTART, tmp_path, error=RunError)
            assert error.failure == failure
        (tmp_path / "benchmark.out").write_text((QUICKSTARTS / "numbered.txt").read_text())
        assert TrtllmQuickstart().parse(QUICKSTART, tmp_path).facts["answers"] == 4


# SmolLM2-135M-Instruct (4 bit, Apache-2.0) on llama.cpp's server, greedy: 25 prompts of prose,
# code, tables, numbers and five languages, each with 16 and with 64 tokens.
SAID: list[dict[str, Any]] = json.loads(
    (DATA / "first_answers" / "smollm2.json").read_text(encoding="utf-8")
)
# What documents show, and people and models write, with the repetitions that belong to it.
REAL = {
    "a catalogue": " / by Megan Stine ; illustrated by John Hinderliter.\n\nBook | Gross",
    "an answer": "New York is a state located in the northeastern United States. It is bordered by",
    "code": "\n    for i in range(8):\n        print(i)\n    return [0, 0, 0, 0, 0, 0, 0, 0]\n",
    "a matrix": "1 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1",
    "binary digits": "The number is 0b01010101010101010101",
    "hexadecimal digits": "The address is 0x00000000000000000000ff",
    "a table": "|a|b|\n|---|---|\n|1|2|",
    "a heading": "New York\n========",
    "a rule": "See below\n--------------------",
    "a blank to fill in": "My name is ____________",
    "dots": "Chapter 1 ..............",
    "a long vowel": "That is sooooo far away",
    "a shout": "No no!!!!!",
    "laughter": "ha ha ha",
    "an interjection": "Aaaah, in the north, no no no, in the east!!!",
    "Chinese": "纽约位于美国东北部。",
    "Japanese": "ニューヨークはアメリカの北東部にあります。",
    "Thai": "นิวยอร์กอยู่ทางตะวันออกเฉียงเหนือของสหรัฐอเมริกา",
    "Arabic": "تقع نيويورك في شمال شرق الولايات المتحدة.",
    "Russian": "Нью-Йорк находится на северо-востоке США.",
    "Hindi": "न्यूयॉर्क संयुक्त राज्य अमेरिका के उत्तर-पूर्व में है।",
    "emoji among words": "In the USA 🗽🗽🗽🗽",
    "a phrase told twice": "New York is a city. New York is a city. New York is a city.",
    "a number": " 12 + 30 = 42",
    "the prompt and more": "Where is New York? It is in the USA.",
    "a character that the limit cut": "纽约位于\ufffd",
    "three bytes that the limit cut": "In the USA \ufffd\ufffd\ufffd",
    "LaTeX": "\\frac{1}{2} + \\frac{1}{3} = \\boxed{\\frac{5}{6}}",
    "thinking": "<think>\nOkay, the user asks where New York is.",
    "a form feed and tabs": "a\tb\n\x0cc d",
}
BROKEN = {
    "nothing": ("", "is empty"),
    "white space": (" \n\t\n", "is empty"),
    "token 0 of many vocabularies": ("!!!!!!!!", "repeats one character, '!'"),
    "with blanks": ("! ! ! ! ! !", "repeats one character"),
    "digits": ("0000000000000000", "repeats one character, '0'"),
    "a word": (" the the the the the the", "repeats one word, 'the'"),
    "a word in two spellings": ("The the THE the", "repeats one word"),
    "a good beginning": ("New York!!!!!!!!!!!!", "ends in 12 times the character '!'"),
    "a good beginning, words": ("It is in of of of of of of", "ends in 6 times the word 'of'"),
    "two characters": ("abababababababab", "has two different characters, 'a' and 'b'"),
    "two words": ("of the of the of the of the of the of the", "has two different words"),
    "bytes": ("New \ufffd\ufffd York", "no UTF-8"),
    "more bytes than one character": ("New York \ufffd\ufffd\ufffd\ufffd", "no UTF-8"),
    "a null": ("New\x00York", "U+0000"),
    "a private character": ("New \ue000 York", "U+E000"),
    "half a pair": ("New \ud800 York", "U+D800"),
    "signs": ("?.,;:-()", "no letter and no digit"),
    "the prompt": (PROMPT, "is only the prompt"),
    "the prompt again and again": (f" {PROMPT}\n{PROMPT} Where is", "is only the prompt"),
    "one word": (" Paris.", "is a single word"),
}


@each("recorded", SAID, ids=lambda one: f"{one['prompt'][:12]!r}")
def test_what_a_small_model_really_said_is_not_broken(recorded: dict[str, Any]) -> None:
    text, most = recorded["text"], recorded["max_tokens"]
    assert fault(text, recorded["prompt"], most=most) == ""
    assert fault(text, recorded["prompt"], tokens=recorded["completion_tokens"], most=most) == ""


@each("text", REAL.values(), ids=REAL)
def test_real_text_is_not_broken(text: str) -> None:
    assert fault(text, PROMPT) == fault(text, PROMPT, tokens=16, most=16) == ""


@each(("text", "told"), BROKEN.values(), ids=BROKEN)
def test_broken_text_is_told(text: str, told: str) -> None:
    assert told in fault(text, PROMPT)


def test_one_token_is_broken_unless_one_was_asked_for() -> None:
    assert fault(" Paris", PROMPT, tokens=1, most=16) == "is a single token, 'Paris'"
    assert fault(" Paris", PROMPT, tokens=1) == "is a single token, 'Paris'"
    assert fault(" Paris", PROMPT, tokens=1, most=1) == ""
    assert fault(" Paris", PROMPT, most=1) == ""
    assert fault(" Paris.", PROMPT, tokens=2, most=16) == ""


@each("cut", range(20, 400, 7))
def test_prose_may_be_cut_anywhere(cut: int) -> None:
    text = (DATA / "quickstart" / "deepseek_v3.txt").read_text(encoding="utf-8")
    prose = text[text.index("Generated") :]
    assert fault(prose[:cut], PROMPT) == ""


@each("character", ["!", "a", "0", "\n", "é", "東", "\u0301", "😀"])
@each("count", [4, 64])
def test_any_character_repeated_is_broken(character: str, count: int) -> None:
    assert fault(character * count, PROMPT)


@given(st.text(max_size=200), st.text(max_size=40))
def test_any_text_is_decided(text: str, prompt: str) -> None:
    assert isinstance(fault(text, prompt), str)


SMOKE = Smoke("completion", ("Where is New York?",), max_tokens=16)


def completion(text: str, tokens: int = 16, reason: str | None = "length") -> dict[str, Any]:
    """A completion as the recipe shows it, the fields that nobody reads left out."""
    return {
        "choices": [{"index": 0, "text": text, "finish_reason": reason}],
        "usage": {"prompt_tokens": 6, "total_tokens": 6 + tokens, "completion_tokens": tokens},
    }


Serve = Callable[[object, int], Endpoint]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a server that gives one answer to everything."""
    servers: list[HTTPServer] = []

    def start(answer: object, status: int = 200) -> Endpoint:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.end_headers()
                self.wfile.write(body)

        server = HTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return Endpoint("127.0.0.1", server.server_port, "some/model")

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_an_answer_is_kept_and_counted(serve: Serve, tmp_path: Path) -> None:
    text = " / by Megan"
    measured = ask(serve(completion(text), 200), SMOKE, tmp_path, 5)
    texts = {SMOKE.prompts[0]: text}
    assert measured == Measurement({}, {"answers": 1, "first_answer": text, "answer_texts": texts})
    assert json.loads((tmp_path / "answers.json").read_text()) == texts


@pytest.mark.parametrize(
    ("answer", "status", "failure"),
    [
        (completion(" Paris", 1, "stop"), 200, "broken_output"),
        (completion(" / by Megan", 7), 200, "incomplete"),
        (completion(" / by Megan", 16, None), 200, "incomplete"),
        ({"choices": [{"text": " / by Megan", "finish_reason": "stop"}]}, 200, "no_metrics"),
        ({**completion(" / by Megan"), "usage": {"completion_tokens": 16}}, 200, "no_metrics"),
        (completion(7, 16), 200, "no_metrics"),  # type: ignore[arg-type]
        ({"error": "no"}, 200, "no_metrics"),
        ({"choices": []}, 200, "no_metrics"),
        (b"<html>", 200, "no_metrics"),
        ({"error": "overloaded"}, 503, "client_failed"),
    ],
)
def test_anything_else_is_an_error(serve, tmp_path, answer, status, failure) -> None:
    error = refused(ask, serve(answer, status), SMOKE, tmp_path, 5, error=RunError)
    assert error.failure == failure


def test_a_broken_answer_is_kept_to_be_looked_at(serve: Serve, tmp_path: Path) -> None:
    broken, told = serve(completion("!!!!!!!!"), 200), "repeats one character"
    refused(ask, broken, SMOKE, tmp_path, 5, error=RunError, match=told)
    assert json.loads((tmp_path / "answers.json").read_text()) == {SMOKE.prompts[0]: "!!!!!!!!"}


def test_no_server_is_an_error(tmp_path: Path) -> None:
    nobody = Endpoint("127.0.0.1", 9, "m")
    assert refused(ask, nobody, SMOKE, tmp_path, 5, error=RunError).failure == "client_failed"
