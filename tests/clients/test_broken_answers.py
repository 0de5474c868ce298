"""Broken answers are told, and nothing that a model really says is taken for one."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each

from perfgate.clients.first_answers import fault

DATA = Path(__file__).parents[1] / "data"
PROMPT = "Where is New York?"
# SmolLM2-135M-Instruct (4 bit, Apache-2.0) on llama.cpp's server, greedy: 25 prompts of prose,
# code, tables, numbers and five languages, each with 16 and with 64 tokens.
RECORDED: list[dict[str, Any]] = json.loads(
    (DATA / "first_answers" / "smollm2.json").read_text(encoding="utf-8")
)
DOCUMENTED = (
    " / by Megan Stine ; illustrated by John Hinderliter.\n\nBook | Gross",
    "New York is a state located in the northeastern United States. It is bordered by",
    " Paris. Paris is one of the most famous and iconic cities in the world, known for its rich"
    " history, culture, art, fashion, and cuisine. It",
)
# What people and models write, with the repetitions that belong to it.
REAL = {
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


@each("recorded", RECORDED, ids=lambda one: f"{one['prompt'][:12]!r}")
def test_what_a_small_model_really_said_is_not_broken(recorded: dict[str, Any]) -> None:
    text, most = recorded["text"], recorded["max_tokens"]
    assert fault(text, recorded["prompt"], most=most) == ""
    assert fault(text, recorded["prompt"], tokens=recorded["completion_tokens"], most=most) == ""


@pytest.mark.parametrize("text", DOCUMENTED)
def test_what_the_documents_show_is_not_broken(text: str) -> None:
    assert fault(text, PROMPT) == fault(text, PROMPT, tokens=16, most=16) == ""


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
