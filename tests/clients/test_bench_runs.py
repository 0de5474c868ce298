"""Runs of the real load clients, as they left them: whole ones, and those that only look whole.

Recorded: `vllm bench serve` 0.32.0 and ``sglang.bench_serving`` 0.4.6, 0.5.3 and 0.5.23, which
perfgate's own command lines started, at real servers and at one that died in mid-run.
"""

import json
from dataclasses import replace
from pathlib import Path
from shutil import copyfile

import pytest
from tables import each

from perfgate.clients.base import Client
from perfgate.clients.sglang_bench import SglangBench
from perfgate.clients.vllm_bench import VllmBench
from perfgate.core.errors import RunError
from perfgate.core.failures import classify_logs
from perfgate.evaluators.result_formats import parse_file
from perfgate.scenarios.scenario import LoadPoint, Workload

DATA = Path(__file__).parents[1] / "data"
VLLM = DATA / "vllm_bench" / "v0.32.0"
SGLANG = DATA / "sglang_bench" / "v0.5.23"
OLD = DATA / "sglang_bench" / "v0.4.6"
SMALL = Workload("any", "synthetic", 16, 8, (4,), requests=20)
TOO_LONG = replace(SMALL, isl=3000, osl=32, requests=4)


def point(requests: int) -> LoadPoint:
    return LoadPoint(4, requests, 0, seed=7)


def left(folder: Path, result: Path | None = None, log: Path | None = None) -> Path:
    """The folder of a client that left these files."""
    if result is not None:
        copyfile(result, folder / f"concurrency_4{result.suffix}")
    if log is not None:
        copyfile(log, folder / "client.out")
    return folder


def refused(client: Client, workload: Workload, requests: int, folder: Path) -> RunError:
    with pytest.raises(RunError) as caught:
        client.parse(workload, point(requests), folder)
    return caught.value


class TestWhole:
    """Of each, the text says what the result file says, as far as it is printed."""

    @pytest.mark.parametrize(
        ("folder", "suffix", "client"),
        [
            (VLLM, "json", "vllm-bench"),
            (OLD, "jsonl", "sglang-bench"),
            (DATA / "sglang_bench" / "v0.5.3", "jsonl", "sglang-bench"),
            (SGLANG, "jsonl", "sglang-bench"),
        ],
        ids=["vllm 0.32.0", "sglang 0.4.6", "sglang 0.5.3", "sglang 0.5.23"],
    )
    def test_text_and_file_agree(self, folder: Path, suffix: str, client: str) -> None:
        file, text = (parse_file(folder / f"healthy.{one}").measurement for one in (suffix, "out"))
        assert file is not None
        assert text is not None
        assert file.facts["client"] == text.facts["client"] == client
        assert "unknown_labels" not in {**file.facts, **text.facts}
        shown = text.metrics.keys() - {"output_speed_per_user"}
        assert shown <= file.metrics.keys()
        for name in shown:
            assert text.metrics[name] == pytest.approx(file.metrics[name], abs=0.0051), name
        for name in file.facts.keys() & text.facts.keys() - {"mean_concurrency"}:
            assert file.facts[name] == text.facts[name], name

    def own_server(self, path: Path) -> Path:
        """A result whose server has a key, which its recording has not."""
        fields = json.loads((SGLANG / "own_server.jsonl").read_text())
        fields["server_info"]["api_key"] = "made-up"  # pragma: allowlist secret
        path.write_text(json.dumps(fields) + "\n")
        return path

    def test_the_server_s_own_settings_are_no_facts_of_the_client(self, tmp_path: Path) -> None:
        """SGLang puts the server's whole configuration into its result, keys and all."""
        found = parse_file(self.own_server(tmp_path / "own.jsonl")).measurement
        assert found is not None
        assert not [name for name in found.facts if "server" in name or "key" in name]
        assert "unknown_labels" not in found.facts

    def test_they_are_taken_out_of_the_run_folder(self, tmp_path: Path) -> None:
        workload, path = replace(SMALL, isl=64, osl=16), tmp_path / "concurrency_4.jsonl"
        self.own_server(path)
        found = SglangBench().parse(workload, point(4), tmp_path)
        assert "api_key" not in path.read_text()
        assert json.loads(path.read_text())["completed"] == 4
        assert SglangBench().parse(workload, point(4), tmp_path) == found

    def test_speculative_decoding(self, tmp_path: Path) -> None:
        fields = {**json.loads((SGLANG / "healthy.jsonl").read_text()), "accept_length": 1.82}
        (tmp_path / "concurrency_4.jsonl").write_text(json.dumps(fields))
        found = SglangBench().parse(replace(SMALL, isl=64, osl=16), point(8), tmp_path)
        assert found.metrics["acceptance_length"] == 1.82

    def test_a_special_token_that_the_tokenizer_adds(self, tmp_path: Path) -> None:
        folder = left(tmp_path, VLLM / "healthy.json")
        assert VllmBench().parse(replace(SMALL, isl=126, osl=32), point(20), folder)
        error = refused(VllmBench(), replace(SMALL, isl=125, osl=32), 20, folder)
        assert "not the 125 requested" in error.message


class TestAllFailed:
    def test_exit_status_0_and_zeros_are_no_run(self, tmp_path: Path) -> None:
        folder = left(tmp_path, VLLM / "all_failed.json", VLLM / "all_failed.out")
        error = refused(VllmBench(), TOO_LONG, 4, folder)
        assert error.failure == "incomplete"
        assert error.message == (
            "none of 4 requests was completed, though vllm-bench ended with status 0"
        )
        assert error.evidence == (
            '"completed": 0',
            *(f"Error {n}: Bad Request" for n in range(3)),
        )
        assert "a prompt is longer than the server takes" in error.hint


class TestServerDied:
    def test_healthy_looking_numbers_of_vllm(self, tmp_path: Path) -> None:
        fields = json.loads((VLLM / "server_died.json").read_text())
        assert fields["output_throughput"] > 0
        assert fields["mean_tpot_ms"] > 0
        folder = left(tmp_path, VLLM / "server_died.json", VLLM / "server_died.out")
        error = refused(VllmBench(), SMALL, 20, folder)
        assert error.failure == "incomplete"
        assert "15 requests failed, 5 were completed" in error.message
        assert any("Server disconnected" in line for line in error.evidence)
        assert "end of the server's log" in error.hint

    def test_sglang_counts_no_failures_at_all(self, tmp_path: Path) -> None:
        text = (OLD / "server_died.jsonl").read_text()
        assert "failed" not in text
        assert "num_prompts" not in text
        error = refused(SglangBench(), SMALL, 20, left(tmp_path, OLD / "server_died.jsonl"))
        assert error.failure == "incomplete"
        assert error.message == (
            "8 of 20 requests were completed, though sglang-bench ended with status 0"
        )


class TestWhatTheClientSays:
    """Logs of clients that ended with status 1, without a result."""

    @pytest.mark.parametrize(
        ("log", "failure", "says"),
        [
            (SGLANG / "another_engine.err", "config_error", "Warmup failed"),
            (VLLM / "no_such_model.err", "client_failed", "Initial test run failed"),
            (VLLM / "no_tokenizer.err", "model_file", "Repo id must be in the form"),
            (SGLANG / "all_failed.err", "incomplete", "All requests failed"),
            (SGLANG / "server_died.err", "client_failed", "Connection refused"),
        ],
        ids=["another engine's server", "no such model", "no tokenizer", "all failed", "died"],
    )
    def test_the_cause_is_shown(self, log: Path, failure: str, says: str) -> None:
        found, evidence, _ = classify_logs((log,), otherwise="client_failed")
        assert found == failure
        assert says in evidence[0]


class TestSeveralRuns:
    """SGLang adds a line to its file for each run."""

    def twice(self, folder: Path) -> Path:
        path = folder / "concurrency_4.jsonl"
        path.write_text(2 * (SGLANG / "healthy.jsonl").read_text())
        return path

    def test_nobody_can_tell_which_is_meant(self, tmp_path: Path) -> None:
        self.twice(tmp_path)
        error = refused(SglangBench(), replace(SMALL, isl=64, osl=16), 8, tmp_path)
        assert error.failure == "no_metrics"
        assert "concurrency_4.jsonl holds 2 runs" in error.message
        assert "a file of its own" in error.hint

    def test_of_a_file_that_a_person_names(self, tmp_path: Path) -> None:
        found = parse_file(self.twice(tmp_path))
        assert (found.failure, found.message) == (
            "no_metrics",
            "the file holds 2 runs: nobody can tell which is meant",
        )

    @each(
        ("content", "told"),
        [
            ("\n", "is empty"),
            ((SGLANG / "healthy.jsonl").read_text()[:500], "truncated_output"),
            ('{"kind": "other"}\n', "is not a result"),
        ],
        ids=["empty", "cut", "other"],
    )
    def test_what_is_no_run(self, tmp_path: Path, content: str, told: str) -> None:
        (tmp_path / "concurrency_4.jsonl").write_text(content)
        error = refused(SglangBench(), SMALL, 20, tmp_path)
        assert told in f"{error.failure}: {error.message}"


def test_output_tokens_that_are_counted_twice(tmp_path: Path) -> None:
    healthy = json.loads((SGLANG / "healthy.jsonl").read_text())
    fields = {**healthy, "total_output_tokens_retokenized": 100}
    (tmp_path / "concurrency_4.jsonl").write_text(json.dumps(fields))
    workload = replace(SMALL, isl=64, osl=16)
    facts = SglangBench().parse(workload, point(8), tmp_path).facts
    assert facts["output_count_differs"] == "128 tokens reported, 100 in the answers' text"
    error = refused(SglangBench(), replace(workload, ignore_eos=False), 8, tmp_path)
    assert "lengths that were requested were counted" in error.message
