"""lm_eval: its command line, what its files must show to be a measurement, and scores alone."""

import json
import os
import shutil
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from printed_lines import lines_of
from refusals import refused
from tables import each

from perfgate.clients.base import Target
from perfgate.core.errors import InputError, RunError
from perfgate.core.files.paths import packaged
from perfgate.core.files.untrusted_files import UntrustedFile
from perfgate.engines.base import Endpoint
from perfgate.evaluators.lm_eval import LmEval, _scores, folder_of
from perfgate.evaluators.lm_eval_results import (
    diagnose,
    is_results,
    is_table,
    parse,
    parse_results,
    parse_tables,
)
from perfgate.scenarios.scenario import AccuracyTask

RECORDED = Path(__file__).parents[1] / "data" / "lm_eval"
ENDPOINT = Endpoint("127.0.0.1", 8123, "smollm2")
TARGET = Target(ENDPOINT, "/models/tokenizer", folder=Path("/runs/sums"))
TASK = AccuracyTask(
    "lm_eval",
    "perfgate_arithmetic",
    fewshot=5,
    concurrency=4,
    limit=8,
    extra_body={"cache_prompt": True},
)
STRICT = "accuracy:perfgate_arithmetic:exact_match:strict-match"
FLEXIBLE = "accuracy:perfgate_arithmetic:exact_match:flexible-extract"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A copy of what a real run left behind."""
    shutil.copytree(RECORDED / "smollm2", tmp_path / "smollm2")
    return tmp_path


def report_file(folder: Path) -> Path:
    return next(folder.glob("smollm2/results_*.json"))


def samples_file(folder: Path) -> Path:
    return next(folder.glob("smollm2/samples_*.jsonl"))


def change_report(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    report = json.loads(report_file(folder).read_text())
    change(report)
    report_file(folder).write_text(json.dumps(report))


def scored(value: float) -> Callable[[dict[str, Any]], object]:
    score = {"exact_match,strict-match": value}
    return lambda report: report["results"][TASK.task].update(score)


class TestCommand:
    def test_our_own_tasks_need_no_tokenizer_and_no_network_and_give_up_early(self) -> None:
        command = LmEval().command(TARGET, TASK)
        words = command.argv[1:]
        tasks = words[words.index("--include_path") + 1]
        assert (Path(tasks) / "perfgate_arithmetic").is_dir()
        assert " ".join(words) == (
            "--model local-completions --tasks perfgate_arithmetic --batch_size 1"
            " --gen_kwargs temperature=0.0,cache_prompt=True --num_fewshot 5"
            " --model_args model=smollm2,base_url=http://127.0.0.1:8123/v1/completions"
            ",num_concurrent=4,max_retries=2,tokenized_requests=False,tokenizer_backend=None"
            f" --include_path {tasks} --seed 0 --limit 8 --log_samples --output_path /runs/sums"
        )
        assert command.env["HF_HUB_OFFLINE"] == "1"
        assert command.env["HF_HOME"].startswith("/runs/sums/")

    def test_library_tasks_take_a_local_tokenizer(self) -> None:
        """How else they are called: tests/documented_commands.py."""
        command = LmEval().command(TARGET, replace(TASK, task="gsm8k"))
        model = command.argv[command.argv.index("--model_args") + 1].split(",")
        assert "tokenizer=/models/tokenizer" in model
        assert "tokenizer_backend=None" not in model
        assert not {"HF_HUB_OFFLINE", "HF_HOME"} & set(command.env)

    @pytest.mark.parametrize("value", ["a,b", "it's", '{"a": 1}'])
    def test_refuses_what_the_command_line_would_garble(self, value: str) -> None:
        task = replace(TASK, extra_body={"stop": value})
        with pytest.raises(InputError, match="stop: lm_eval cannot be given this value"):
            LmEval().command(TARGET, task)


class TestParse:
    def test_scores_answers_and_facts(self, results: Path) -> None:
        found = LmEval().parse(TASK, results)
        assert found.metrics == {STRICT: 0.75, FLEXIBLE: 0.75}
        assert set(found.answers[STRICT]) == set(found.answers[FLEXIBLE])
        assert sum(found.answers[STRICT].values()) == 6
        first = json.loads(samples_file(results).read_text().splitlines()[0])
        assert f"{first['doc_hash'][:16]}:{first['target_hash'][:16]}" in found.answers[STRICT]
        facts = {
            **{"questions": 8, "fewshot": 5, "evaluator_version": "0.4.13"},
            **{"invalid_share:strict-match": 0.0},
            "stderr:exact_match:strict-match": pytest.approx(0.1637, abs=1e-4),
        }
        assert {name: found.facts[name] for name in facts} == facts

    def test_counts_answers_without_a_number(self, results: Path) -> None:
        lines = [json.loads(line) for line in samples_file(results).read_text().splitlines()]
        wrong = next(row for row in lines if row["exact_match"] == 0.0)
        wrong["filtered_resps"] = ["[invalid]"]
        samples_file(results).write_text("".join(json.dumps(row) + "\n" for row in lines))
        facts = LmEval().parse(TASK, results).facts
        assert facts[f"invalid_share:{wrong['filter']}"] == 1 / 8

    @each(
        ("failure", "change"),
        [
            ("no_metrics", lambda report: report["results"].pop(TASK.task)),
            ("no_metrics", lambda report: report.pop("results")),
            ("no_metrics", lambda report: report["results"].update({TASK.task: {"alias": "x"}})),
            ("no_metrics", lambda report: report.pop("n-samples")),
            ("incomplete", lambda report: report["n-samples"][TASK.task].update(effective=7)),
            ("incomplete", lambda report: report["n-shot"].update({TASK.task: 0})),
            ("incomplete", lambda report: report["config"]["gen_kwargs"].update(temperature=2.0)),
            ("incomplete", lambda report: report["config"]["gen_kwargs"].pop("cache_prompt")),
            ("incomplete", scored(float("nan"))),
            ("no_metrics", scored(0.625)),
        ],
        ids=str,
    )
    def test_refuses_a_report_that_is_not_what_was_asked(self, tmp_path, failure, change) -> None:
        shutil.copytree(RECORDED / "smollm2", tmp_path / "smollm2")
        change_report(tmp_path, change)
        assert refused(LmEval().parse, TASK, tmp_path, error=RunError).failure == failure

    def test_refuses_fewer_or_doubled_answers_and_two_runs(self, results: Path) -> None:
        def told(message: str, **changes: Any) -> None:
            task = replace(TASK, **changes)
            refused(LmEval().parse, task, results, error=RunError, match=message)

        told("8 of 9 questions", limit=9)
        told("8 of 200 questions", limit=None)
        lines = samples_file(results).read_text().splitlines(keepends=True)
        samples_file(results).write_text("".join(lines[:-1]))
        told("7 of 8 answers")
        samples_file(results).write_text("".join([*lines[:-1], lines[-2]]))
        told("appears twice")
        shutil.copy(report_file(results), results / "smollm2" / "results_2026-11-22.json")
        told("2 files are results")

    def test_an_empty_folder_with_a_log_tells_the_cause(self, tmp_path: Path) -> None:
        refused(LmEval().parse, TASK, tmp_path, error=RunError, match="left no results")
        shutil.copy(RECORDED / "dead_server.err", tmp_path / "evaluator.err")
        assert refused(LmEval().parse, TASK, tmp_path, error=RunError).failure == "server_died"


@settings(max_examples=25)
@given(data=st.data())
def test_files_cut_anywhere_are_never_a_measurement(tmp_path_factory, data) -> None:
    folder = tmp_path_factory.mktemp("cut")
    shutil.copytree(RECORDED / "smollm2", folder / "smollm2")
    file = data.draw(st.sampled_from([report_file(folder), samples_file(folder)]))
    whole = file.read_bytes()
    file.write_bytes(whole[: data.draw(st.integers(0, len(whole.rstrip()) - 1))])
    error = refused(LmEval().parse, TASK, folder, error=RunError)
    assert error.failure in {"truncated_output", "incomplete"}


class TestLimits:
    def test_a_samples_file_of_any_size_is_not_held(self, results: Path) -> None:
        file = samples_file(results)
        file.write_bytes(b"{}\n" * 1_000_000)
        tracemalloc.start()
        with pytest.raises(RunError, match="has more than 16 answers"):
            parse(TASK, results)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2**22

    @pytest.mark.parametrize(
        ("line", "told"),
        [
            (b'{"doc": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", "nested too deep"),
            (b'{"doc_id": ' + b"1" * 6000 + b"}", "too many digits"),
            (b'"' + b"x" * 2**24 + b'"', "is too large"),
        ],
    )
    def test_a_line_beyond_a_limit(self, results: Path, line: bytes, told: str) -> None:
        file = samples_file(results)
        file.write_bytes(line + b"\n")
        with pytest.raises(RunError, match=r"samples_.*line \d+ .*" + told):
            parse(TASK, results)

    @pytest.mark.timeout(30)
    def test_what_is_no_file_of_lm_evals_is_not_opened(self, results: Path) -> None:
        file = samples_file(results)
        file.unlink()
        os.mkfifo(file)
        refused(parse, TASK, results, error=UntrustedFile)

    def test_a_million_questions_are_no_tasks(self, results: Path) -> None:
        many = {"effective": 10**12, "original": 10**12}
        change_report(results, lambda report: report["n-samples"][TASK.task].update(many))
        refused(parse, TASK, results, error=RunError, match="n-samples")


DEAD_SERVER = (RECORDED / "dead_server.err").read_text().splitlines()
UNKNOWN_TASK = (RECORDED / "unknown_task.err").read_text().splitlines()
UNKNOWN_MODEL = 'API request failed! Status code: 404, Response text: {"error": "no model"}.'


@each(
    ("log", "failure", "told"),
    [
        ([*DEAD_SERVER, "RuntimeError: Session is closed"], "server_died", "ConnectionRefused"),
        (UNKNOWN_TASK, "config_error", "Tasks not found"),
        ([UNKNOWN_MODEL, "ConnectionRefusedError"], "config_error", "404"),
    ],
    ids=["dead server", "unknown task", "unknown model"],
)
def test_the_first_cause_of_a_log_is_told(log: list[str], failure: str, told: str) -> None:
    found = diagnose(log)
    assert found.failure == failure
    assert told in found.evidence[0]
    assert len(found.evidence[0]) < 300
    assert diagnose(["all is well"]) is None


FP8 = """\
|Tasks|Version|     Filter     |n-shot|  Metric   |   |Value |   |Stderr|
|-----|------:|----------------|-----:|-----------|---|-----:|---|-----:|
|gsm8k|      3|flexible-extract|     5|exact_match|↑  |0.9538|±  |0.0058|
|     |       |strict-match    |     5|exact_match|↑  |0.9500|±  |0.0060|
"""


def refused_table(text: str) -> RunError:
    return refused(parse_tables, lines_of(text), error=RunError)


def test_the_table_of_the_quick_start_recipe() -> None:
    found = parse_tables(lines_of("2025-08-05:10:11:12 INFO saving\n" + FP8 + "\n"))
    assert found.metrics == {
        "accuracy:gsm8k:exact_match:flexible-extract": 0.9538,
        "accuracy:gsm8k:exact_match:strict-match": 0.95,
    }
    assert found.facts["stderr:gsm8k:exact_match:flexible-extract"] == 0.0058
    assert found.facts["fewshot"] == 5


def test_groups_and_indented_tasks() -> None:
    text = FP8.replace("|gsm8k|", "| - gsm8k_cot|") + FP8.replace("Tasks", "Groups")
    assert set(parse_tables(lines_of(text)).metrics) == {
        f"accuracy:{task}:exact_match:{name}"
        for task in ("gsm8k", "gsm8k_cot")
        for name in ("flexible-extract", "strict-match")
    }


@pytest.mark.parametrize("value", ["nan", "0.0000", "95.38", "N/A", ""])
def test_a_score_that_is_no_fraction(value: str) -> None:
    error = refused_table(FP8.replace("0.9538", value))
    assert error.failure == "no_metrics"
    assert "gsm8k" in error.evidence[0]


def test_tables_without_rows() -> None:
    assert refused_table(FP8[:-20]).failure == "truncated_output"
    head = "".join(FP8.splitlines(keepends=True)[:2])
    assert is_table(lines_of(head))
    assert refused_table(head).failure == "no_metrics"
    assert not is_table(lines_of("|Name|Value|\n|---|---|\n|a|1|\n"))


class TestResults:
    def results(self, **changes: Any) -> dict[str, Any]:
        scores = {
            "alias": "gsm8k",
            "exact_match,strict-match": 0.95,
            "exact_match_stderr,strict-match": 0.006,
        }
        return {
            "results": {"gsm8k": {**scores, **changes}},
            "n-shot": {"gsm8k": 5},
            "n-samples": {"gsm8k": {"original": 1319, "effective": 1319}},
            "lm_eval_version": "0.4.9",
        }

    def test_scores_and_errors(self) -> None:
        assert is_results(self.results())
        found = parse_results(self.results())
        assert found.metrics == {"accuracy:gsm8k:exact_match:strict-match": 0.95}
        assert found.facts["stderr:gsm8k:exact_match:strict-match"] == 0.006
        assert found.facts["questions:gsm8k"] == 1319

    @pytest.mark.parametrize("value", [0, 1.5, "N/A", None])
    def test_a_score_that_is_no_fraction(self, value: object) -> None:
        scores = self.results(**{"exact_match,strict-match": value})
        assert refused(parse_results, scores, error=RunError).failure == "no_metrics"
        none = {"results": {}, "configs": {}}
        refused(parse_results, none, error=RunError, match="no scores")


BOTH = {"exact_match:strict-match", "exact_match:flexible-extract"}
OWN = """
task: mine
custom_dataset: !function dataset.load
metric_list: [{metric: f1}, {metric: exact}]
"""


def test_the_task_that_perfgate_brings_along() -> None:
    assert folder_of("perfgate_arithmetic") == packaged() / "fixtures" / "lm_eval_tasks"
    assert folder_of("gsm8k") is None
    assert LmEval.scores()["perfgate_arithmetic"] == BOTH


def test_the_scores_of_gsm8k_are_those_of_lm_evals_file() -> None:
    found = find_spec("lm_eval")
    if found is None or found.origin is None:
        pytest.skip("lm_eval is not installed")
    file = Path(found.origin).parent / "tasks" / "gsm8k" / "gsm8k.yaml"
    assert LmEval.scores()["gsm8k"] == _scores(file) == BOTH


def write(root: Path, task: str, text: str) -> Path:
    file = root / "fixtures" / "lm_eval_tasks" / task / f"{task}.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


def test_a_gate_repositorys_own_task_is_scored_as_its_file_says(suite_root: Path) -> None:
    write(suite_root, "mine", OWN)
    write(suite_root, "gsm8k", OWN + "filter_list: [{name: last}]")
    assert LmEval.scores()["mine"] == {"f1:none", "exact:none"}
    assert LmEval.scores()["gsm8k"] == {"f1:last", "exact:last"}
    assert LmEval.scores()["perfgate_arithmetic"] == BOTH


@pytest.mark.parametrize("text", ["include: other.yaml", "[", "- a", "metric_list: 7"])
def test_scores_that_the_file_does_not_tell_are_not_known(suite_root: Path, text: str) -> None:
    write(suite_root, "gsm8k", text)
    assert "gsm8k" not in LmEval.scores()


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "text",
    [
        "[" * 50_000,
        "- " * 50_000,
        "x0: &x0 [a, a, a, a, a, a, a, a, a, a]\n"
        + "".join(f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 10)}]\n" for n in range(1, 12))
        + "metric_list: [{metric: *x11}]\n",
        "metric_list: [" + "{metric: a}, " * 10_000 + "]\nfilter_list: ["
        "" + "{name: a}, " * 10_000 + "]\n",
        "metric_list: [{metric: a}]\n" + "x" * 2**20,
    ],
    ids=["brackets", "dashes", "aliases", "product", "size"],
)
def test_a_file_that_would_end_the_process_tells_no_scores(suite_root: Path, text: str) -> None:
    write(suite_root, "mine", text)
    assert "mine" not in LmEval.scores()
