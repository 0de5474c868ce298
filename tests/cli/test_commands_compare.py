import json
from pathlib import Path

import pytest
from sides_made import aiperf, measurement, run, throughputs
from tables import each

from perfgate.cli.main import main

Capture = pytest.CaptureFixture[str]
DATA = Path(__file__).parents[1] / "data"


def compare(*words: object) -> int:
    return main(["compare", *map(str, words)])


@pytest.fixture
def a(tmp_path: Path) -> Path:
    return throughputs(tmp_path / "a", 100.0, 101.0, 99.5)


class TestStatus:
    @each(
        "values, changes, status, verdict",
        [
            ((100.1,), {}, 0, "PASS"),
            ((106.0, 106.2), {}, 0, "IMPROVEMENT"),
            ((96.0, 96.2), {}, 1, "REGRESSION"),
            ((96.0,), {}, 10, "INCONCLUSIVE"),
            ((100.1,), {"fingerprint": {"cpu": "EPYC"}}, 12, "NOT_COMPARABLE"),
            ((100.1,), {"scenario": "other"}, 12, "NOT_COMPARABLE"),
            ((100.1,), {"synthetic": True}, 13, "PASS"),
            ((96.0, 96.2), {"synthetic": True}, 1, "REGRESSION"),
        ],
    )
    def test_of_each_verdict(
        self,
        a: Path,
        tmp_path: Path,
        capsys: Capture,
        values: tuple[float, ...],
        changes: dict[str, object],
        status: int,
        verdict: str,
    ) -> None:
        b = throughputs(tmp_path / "b", *values, **changes)
        assert compare(a, b) == status
        assert f"\nexit status {status}: " in capsys.readouterr().out
        assert compare(a, b, "--format", "json") == status
        found = json.loads(capsys.readouterr().out)
        assert (found["exit_status"], found["verdict"]) == (status, verdict)

    def test_of_a_probe_that_failed(self, a: Path, tmp_path: Path, capsys: Capture) -> None:
        assert compare(a, run(tmp_path / "b", [], failed=["c1"])) == 11
        assert "ERROR: small-serve-c1\nB failed: oom: out of memory\n" in capsys.readouterr().out

    def test_one_probe_that_cannot_be_compared_is_no_pass(
        self, tmp_path: Path, capsys: Capture
    ) -> None:
        lines = [measurement({"output_throughput": 100.0}, probe=probe) for probe in ("c1", "c4")]
        a = run(tmp_path / "a", lines)
        b = run(tmp_path / "b", [lines[0], {**lines[1], "fingerprint": {"cpu": "EPYC"}}])
        assert compare(a, b) == 12
        assert "PASS: small-serve-c1\n" in capsys.readouterr().out

    @each(
        "words, said",
        [
            (["--band", "output_throughput"], "unknown metric"),
            (["--band", "output_throughput=nan"], "--band: the band of output_throughput"),
            (["--band", "output_throughput=5"], "--band: the band of output_throughput"),
            (["--band", "output_throughput=0.1"] * 2, "two bands for one metric"),
            (["--band", "tpot_mean_ms=0.1"], "do not share this metric"),
            (["--metric", "speed"], "unknown metric"),
            (["--across", "drivers"], "no such fact"),
            (["--across", "driver,"], "--across: a name is empty"),
            (["--probe", "c9"], "no such probe"),
        ],
    )
    def test_of_wrong_usage(
        self, a: Path, tmp_path: Path, capsys: Capture, words: list[str], said: str
    ) -> None:
        assert compare(a, throughputs(tmp_path / "b", 100.0), *words) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert said in captured.err

    def test_of_what_is_no_result(self, a: Path, tmp_path: Path, capsys: Capture) -> None:
        (tmp_path / "cut.json").write_text('{"schema_version": "1.4", "aiperf_ver')
        for b in (tmp_path / "none", tmp_path / "cut.json", a):
            assert compare(a, b) == 2
            captured = capsys.readouterr()
            assert captured.out == ""
            assert captured.err.startswith(f"perfgate: {b}:")


class TestOptions:
    def test_facts_that_are_meant_to_differ(self, a: Path, tmp_path: Path, capsys: Capture) -> None:
        fingerprint = {"content": "0123456789abcdef", "cpu": "EPYC", "driver": "580"}
        b = throughputs(tmp_path / "b", 100.0, fingerprint=fingerprint)
        assert compare(a, b, "--across", "cpu") == 12
        assert compare(a, b, "--across", "cpu,driver") == 0
        assert compare(a, b, "--across", "cpu", "--across", "driver") == 0
        assert "meant to differ: cpu: A Grace, B EPYC" in capsys.readouterr().out
        slower = throughputs(tmp_path / "slower", 96.0, 96.2)
        assert compare(a, slower, "--band", "output_throughput=0.1") == 0

    def test_logs_of_the_gb200_recipe_beside_their_err_files(
        self, tmp_path: Path, capsys: Capture
    ) -> None:
        name = "DeepSeek-R1_TP4_EP4_PP1_CON-1_chat"
        report = (DATA / "trtllm_bench" / "whole_0.21_streaming.txt").read_text()
        iteration = "[TRT-LLM] [I] iter = 7, global_rank = 0, rank = 0, elapsed_time = 0.02s\n"
        for side, job in (("a", 4711), ("b", 4712)):
            folder = tmp_path / side / name
            folder.mkdir(parents=True)
            (folder / f"{name}_streaming-on_{job}.out").write_text(iteration + report)
            (folder / f"{name}_streaming-on_{job}.err").write_text("Loading weights: 100%\n")
            assert main(["parse", *map(str, folder.glob("*.out"))]) == 0
        assert compare(tmp_path / "a", tmp_path / "b" / name) == 0
        assert "PASS: trtllm-bench" in capsys.readouterr().out

    def test_results_of_other_tools(self, tmp_path: Path, capsys: Capture) -> None:
        a, b = aiperf(tmp_path / "a", 1.0, 1.002, 0.999), aiperf(tmp_path / "b", 1.05, 1.049)
        assert compare(a, b, "--metric", "output_throughput,ttft_mean_ms") == 1
        out = capsys.readouterr().out
        assert "REGRESSION: aiperf\n" in out
        assert compare(a, b, "--metric", "output_throughput", "--format", "markdown") == 1
        assert capsys.readouterr().out.startswith("# perfgate compare\n")
        assert compare(a, b, "--metric", "ttft_mean_ms") == 0
