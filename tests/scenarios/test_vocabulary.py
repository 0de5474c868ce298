"""A name that nothing registered has is refused where its file is read."""

from pathlib import Path

import pytest
from written_files import GOOD, Write, line_of

from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.plan.registered import registered
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.vocabulary import Vocabulary

KNOWN = Vocabulary(
    engines={"llama.cpp": {"backend": ("cpu", "vulkan")}, "other": {}},
    clients=("aiperf", "bench"),
    smoke_clients=("completion", "bench"),
    evaluators={
        "lm_eval": {"gsm8k": ("exact_match:strict-match", "exact_match:flexible-extract")},
        "free": {},
    },
)
SCORE = "accuracy:gsm8k:exact_match:strict-match"
FULL = GOOD.replace("max_batch_size: 4", "backend: cpu").replace(
    "    gate: {metrics: [output_throughput]}\n",
    f"""\
    accuracy:
      - {{task: gsm8k, fewshot: 5, evaluator: lm_eval}}
    smoke: {{prompts: [Who?], client: completion}}
    gate:
      metrics:
        - output_throughput
        - {SCORE}
""",
)


def refused(file: Path) -> list[InputError]:
    with pytest.raises(SeveralInputErrors) as caught:
        load_scenarios(file, KNOWN)
    return list(caught.value.errors)


def test_scores_of_bands_and_floors_are_known_too(write: Write) -> None:
    wrong = "accuracy:gsm8k:exact_match:strict"
    text = FULL.replace(
        f"        - {SCORE}\n", f"        - {SCORE}\n      bands: {{{wrong!r}: 0.1}}\n"
    )
    text += f"    floors: [{{metric: {wrong!r}, value: 0.9}}]\n"
    fields = [error.field for error in refused(write(text)) if error.problem.startswith("unknown")]
    assert fields == [f"scenarios[0].gate.bands.{wrong}", "scenarios[0].floors[0].metric"]


def test_an_engine_says_which_extra_options_it_refuses(write: Write) -> None:
    text = FULL.replace(
        "      name: llama.cpp\n", "      name: llama.cpp\n      extra_yaml: {a: 1}\n"
    )
    file = write(text)
    assert len(load_scenarios(file, KNOWN)) == 1, "nobody refuses it"
    with pytest.raises(SeveralInputErrors) as caught:
        load_scenarios(file, registered())
    line = next(n for n, row in enumerate(text.splitlines(), 1) if "extra_yaml" in row)
    assert (
        f"{file}:{line}: scenarios[0].engine.extra_yaml: llama.cpp takes no options beyond its "
        "settings\n  found: a\n  expected: not to be set"
    ) in str(caught.value)


WRONG = {
    "engine": ("name: llama.cpp", "name: lama.cpp", "engine.name", "llama.cpp, other"),
    "backend": ("backend: cpu", "backend: Vulcan", "engine.settings.backend", "cpu, vulkan"),
    "client": ("client: aiperf", "client: ai-perf", "workload.client", "aiperf, bench"),
    "smoke": (
        "client: completion",
        "client: complete",
        "smoke.client",
        "bench, completion",
    ),
    "evaluator": (
        "evaluator: lm_eval",
        "evaluator: lm-eval",
        "accuracy[0].evaluator",
        "free, lm_eval",
    ),
    "filter": (
        SCORE,
        "accuracy:gsm8k:exact_match:strict_match",
        "gate.metrics[1]",
        f"accuracy:gsm8k:exact_match:flexible-extract, {SCORE}",
    ),
}


@pytest.mark.parametrize("kind", WRONG)
def test_an_unknown_name_is_told_with_line_field_and_what_was_meant(
    kind: str, write: Write
) -> None:
    right, wrong, field, expected = WRONG[kind]
    text = FULL.replace(right, wrong)
    (error,) = refused(write(text))
    assert error.problem.startswith("unknown ")
    assert (error.field, error.line) == (f"scenarios[0].{field}", line_of(text, wrong))
    assert (error.found, error.expected) == (wrong.rpartition(": ")[2], f"one of {expected}")
    meant = {"backend": "vulkan"}.get(kind, right.rpartition(": ")[2])
    assert error.hint == f"did you mean {meant}?"


def test_what_is_like_nothing_may_be_ones_own(write: Write) -> None:
    (error,) = refused(write(FULL.replace("name: llama.cpp", "name: zzzzzz")))
    assert str(error.hint).startswith("import the module that registers your own engine: ")


def test_all_unknown_names_are_told_at_once(write: Write) -> None:
    text = FULL
    for right, wrong, _, _ in WRONG.values():
        text = text.replace(right, wrong)
    fields = [str(error.field) for error in refused(write(text))]
    told = sorted(field.removeprefix("scenarios[0].") for field in fields)
    # What settings an unknown engine has, and what an unknown evaluator scores, nobody knows.
    unasked = {"engine.settings.backend", "gate.metrics[1]"}
    assert told == sorted({field for _, _, field, _ in WRONG.values()} - unasked)


@pytest.mark.parametrize("wrong", ["task: other", "evaluator: free"])
def test_scores_that_nobody_knows_before_they_are_measured_are_free(
    wrong: str, write: Write
) -> None:
    key = wrong.partition(":")[0]
    old = {"task": "task: gsm8k", "evaluator": "evaluator: lm_eval"}[key]
    score = SCORE.replace("gsm8k", "other") if key == "task" else SCORE
    text = FULL.replace(SCORE, score.replace("strict-match", "anything")).replace(old, wrong)
    assert len(load_scenarios(write(text), KNOWN)) == 1


def test_a_name_of_the_defaults_block_is_told_once(write: Write) -> None:
    defaults = "  engine: {name: lama.cpp}\n"
    body = GOOD[GOOD.index("  - id: small") :].replace("      name: llama.cpp\n", "")
    text = (
        f"schema_version: 1\ndefaults:\n{defaults}scenarios:\n"
        + body
        + body.replace("id: small", "id: other")
    )
    (error,) = refused(write(text))
    assert (error.field, error.line) == ("defaults.engine.name", 3)
