"""A name that nothing registered has is refused where its file is read."""

import json

import yaml
from tables import each
from written_files import GOOD, Write, changed, errors_of, line_of, twice

from perfgate.plan.toolchain import registered
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.rules.vocabulary import Vocabulary

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
FULL = GOOD.replace("max_batch_size: 4", "backend: vulkan").replace(
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


def test_scores_of_bands_and_floors_are_known_too(write: Write) -> None:
    wrong = "accuracy:gsm8k:exact_match:strict"
    more = f"      bands: {{{wrong!r}: 0.1}}\n    floors: [{{metric: {wrong!r}, value: 1}}]\n"
    told = errors_of(write(FULL.replace(f"- {SCORE}\n", f"- {SCORE}\n{more}")), KNOWN)
    fields = [error.field for error in told if error.problem.startswith("unknown")]
    assert fields == [f"scenarios[0].gate.bands.{wrong}", "scenarios[0].floors[0].metric"]


def test_an_engine_says_which_extra_options_it_refuses(write: Write) -> None:
    text, line = changed(FULL, ("llama.cpp\n", "llama.cpp\n      extra_yaml: {a: 1}\n"))
    file = write(text)
    assert len(load_scenarios(file, KNOWN)) == 1, "nobody refuses it"
    (told,) = (str(one) for one in errors_of(file, registered()) if "extra_yaml" in str(one))
    assert told.startswith(
        f"{file}:{line}: scenarios[0].engine.extra_yaml: llama.cpp takes no options beyond its "
        "settings\n  found: a\n  expected: not to be set"
    )


def test_the_rules_of_an_engines_documents_are_told_among_the_others(write: Write) -> None:
    text, _ = changed(
        GOOD,
        ("llama.cpp", "tensorrt-llm"),
        ("max_batch_size: 4", "max_num_tokens: 32"),
        ("output_throughput", "throughput"),
        ("600", "100"),
    )
    file = write(json.dumps(yaml.safe_load(text)))  # on one line no line sorts them
    told = [error.field for error in errors_of(file, registered())]
    before, engines, after = (
        f"scenarios[0].{field}"
        for field in ("gate.metrics[0]", "engine.settings.max_num_tokens", "limits.total_s")
    )
    assert told == [before, engines, after]
    assert [error.field for error in errors_of(file)] == [before, after], "rules of nobody"


# What is written, what is wrong of it, its field, what is expected.
WRONG = [
    ("name: llama.cpp", "name: lama.cpp", "engine.name", "llama.cpp, other"),
    ("backend: vulkan", "backend: Vulcan", "engine.settings.backend", "cpu, vulkan"),
    ("client: aiperf", "client: ai-perf", "workload.client", "aiperf, bench"),
    ("client: completion", "client: complete", "smoke.client", "bench, completion"),
    ("evaluator: lm_eval", "evaluator: lm-eval", "accuracy[0].evaluator", "free, lm_eval"),
    (SCORE, SCORE.replace("-", "_"), "gate.metrics[1]",
     f"accuracy:gsm8k:exact_match:flexible-extract, {SCORE}"),
]  # fmt: skip


@each(("right", "wrong", "field", "expected"), WRONG)
def test_an_unknown_name_is_told_with_line_field_and_what_was_meant(
    right: str, wrong: str, field: str, expected: str, write: Write
) -> None:
    text = FULL.replace(right, wrong)
    (error,) = errors_of(write(text), KNOWN)
    assert error.problem.startswith("unknown ")
    assert (error.field, error.line) == (f"scenarios[0].{field}", line_of(text, wrong))
    assert (error.found, error.expected) == (wrong.rpartition(": ")[2], f"one of {expected}")
    assert error.hint == f"did you mean {right.rpartition(': ')[2]}?"


def test_what_is_like_nothing_may_be_ones_own(write: Write) -> None:
    (error,) = errors_of(write(FULL.replace("name: llama.cpp", "name: zzzzzz")), KNOWN)
    assert str(error.hint).startswith("import the module that registers your own engine: ")


def test_all_unknown_names_are_told_at_once(write: Write) -> None:
    text, _ = changed(FULL, *(row[:2] for row in WRONG))
    fields = [str(error.field) for error in errors_of(write(text), KNOWN)]
    told = sorted(field.removeprefix("scenarios[0].") for field in fields)
    # What settings an unknown engine has, and what an unknown evaluator scores, nobody knows.
    unasked = {"engine.settings.backend", "gate.metrics[1]"}
    assert told == sorted({field for _, _, field, _ in WRONG} - unasked)


@each(
    ("changes", "score"),
    [
        ([("task: gsm8k", "task: other")], "accuracy:other:exact_match:anything"),
        ([("evaluator: lm_eval", "evaluator: free")], "accuracy:gsm8k:exact_match:anything"),
    ],
)
def test_scores_that_nobody_knows_before_they_are_measured_are_free(
    changes: list[tuple[str, str]], score: str, write: Write
) -> None:
    text, _ = changed(FULL, *changes, (SCORE, score))
    assert len(load_scenarios(write(text), KNOWN)) == 1


def test_a_name_of_the_defaults_block_is_told_once(write: Write) -> None:
    text = twice(GOOD.replace("      name: llama.cpp\n", ""))
    defaults = "defaults:\n  engine: {name: lama.cpp}\nscenarios:"
    (error,) = errors_of(write(text.replace("scenarios:", defaults)), KNOWN)
    assert (error.field, error.line) == ("defaults.engine.name", 3)
