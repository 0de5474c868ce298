from pathlib import Path

import pytest
from command_line import Perfgate
from sides_made import run, throughputs
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
        self, values, changes, status, verdict, a: Path, tmp_path: Path, perfgate: Perfgate
    ) -> None:
        b = throughputs(tmp_path / "b", *values, **changes)
        assert f"\nexit status {status}: " in perfgate.printed(["compare", a, b], status)
        plain = perfgate.plain(["compare", a, b], status)
        assert (plain["exit_status"], plain["verdict"]) == (status, verdict)

    def test_of_a_probe_that_failed(self, a: Path, tmp_path: Path, perfgate: Perfgate) -> None:
        b = run(tmp_path / "b", [], failed=["c1"])
        printed = perfgate.printed(["compare", a, b], 11)
        assert "ERROR: small-serve-c1\nB failed: oom: out of memory\n" in printed

    @each(
        "words, problem",
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
        self, words, problem, a: Path, tmp_path: Path, perfgate: Perfgate
    ) -> None:
        b = throughputs(tmp_path / "b", 100.0)
        assert problem in perfgate.refused(["compare", a, b, *words])

    def test_of_what_is_no_result(self, a: Path, tmp_path: Path, perfgate: Perfgate) -> None:
        for b in (tmp_path / "none", a):
            assert perfgate.refused(["compare", a, b]).startswith(f"perfgate: {b}:")


class TestOptions:
    @each(
        "words, status",
        [
            ("--across cpu", 12),
            ("--across cpu,driver", 1),
            ("--across cpu --across driver", 1),
            ("--across cpu,driver --band output_throughput=0.1", 0),
            ("--across cpu,driver --metric output_throughput,tpot_mean_ms", 2),
        ],
    )
    def test_reach_the_comparison(self, words, status, a: Path, tmp_path: Path) -> None:
        fingerprint = {"content": "0123456789abcdef", "cpu": "EPYC", "driver": "580"}
        b = throughputs(tmp_path / "b", 96.0, 96.2, fingerprint=fingerprint)
        assert compare(a, b, *words.split()) == status

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
