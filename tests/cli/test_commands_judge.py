import io
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import Perfgate
from plain_values import judge_performance
from sizes import sized
from tables import each

from perfgate.cli.main import main

Capture = pytest.CaptureFixture[str]
KEYS = {"verdict", "change", "interval", "band", "runs_used", "controls_used", "needs_more_runs",
        "needs_control", "mark", "reason"}  # fmt: skip
GSM8K = "accuracy:gsm8k:exact_match:strict-match"
BASE = [101.0, 99.7, 100.4]


def line(**changes: Any) -> str:
    fields = {"metric": "output_throughput", "baseline": BASE, "new": [100.1], **changes}
    return json.dumps({name: value for name, value in fields.items() if value != "LEFT OUT"})


Stream = Callable[..., tuple[int, list[dict[str, Any]]]]


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> Stream:
    """`perfgate judge` with lines on standard input: its status, and what it answers."""

    def judged(*lines: str) -> tuple[int, list[dict[str, Any]]]:
        raw = "".join(f"{one}\n" for one in lines).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
        status = main(["judge"])
        return status, [json.loads(one) for one in capsys.readouterr().out.splitlines()]

    return judged


def options(*words: str) -> list[str]:
    return ["judge", "--metric", "output_throughput", "--baseline", "101,99.7,100.4", *words]


class TestOptions:
    @each(
        "new, verdict, status",
        [
            ("100.1", "PASS", 0),
            ("106.1,106.2", "IMPROVEMENT", 0),
            ("96.1,96.0", "REGRESSION", 1),
            ("96.1", "INCONCLUSIVE", 10),
        ],
    )
    def test_each_verdict_has_its_status(
        self, capsys: Capture, new: str, verdict: str, status: int
    ) -> None:
        assert main(options("--new", new)) == status
        out = capsys.readouterr().out
        assert out.startswith(f"{verdict}: output_throughput ")
        assert main(options("--new", new, "--format", "json")) == status
        found = json.loads(capsys.readouterr().out)
        assert set(found) == KEYS
        assert found["verdict"] == verdict

    @each(
        "words, fields",
        [
            ("--band 0.05", {"band": 0.05}),
            ("--sigma 0.02", {"sigma": 0.02}),
            ("--max-runs 2", {"max_runs": 2}),
            ("--sessions 1", {"sessions": 1}),
            ("--controls none", {"controls": []}),
            ("--controls 97.2,97.3", {"controls": [97.2, 97.3]}),
        ],
    )
    def test_every_option_is_the_field_of_a_line(
        self, words: str, fields: dict[str, Any], stream: Stream, capsys: Capture
    ) -> None:
        new = [97.1, 97.4, 97.2]
        _, (of_line,) = stream(line(new=new, **fields))
        main([*options("--new", "97.1, 97.4,97.2", *words.split()), "--format", "json"])
        assert json.loads(capsys.readouterr().out) == of_line
        assert stream(line(new=new))[1] != [of_line]

    def test_an_accuracy_by_its_questions(self, perfgate: Perfgate) -> None:
        words = ["judge", "--metric", GSM8K, "--questions", "1319", "--baseline"]
        assert "-5.0 points" in perfgate.printed([*words, "0.95", "--new", "0.90"], 10)
        pooled = perfgate.plain([*words, "0.99,0.91", "--new", "0.90"], 10)
        assert pooled["change"] == pytest.approx(-0.05, abs=1e-3)
        again = [*words, "0.95", "--new", "0.90,0.91"]
        assert "2 evaluations" in perfgate.printed(again, 1)
        assert main([*again, "--max-runs", "1"]) == 10

    @each(
        "words, problem",
        [
            (["--new", "96,"], "--new: value 2 is not a number"),
            (["--new", "100", "--band", "2%"], "--band: it cannot be used"),
            (["--new", "100", "--max-runs", "0"], "--max-runs: it cannot be used"),
            (["--new", "100", "--max-runs", "9" * 5000], "--max-runs: it cannot be used"),
            (["--new", "96", "--controls", "96,0"], "control value 2 of output_throughput"),
            (["--new", "96", "--sessions", "99"], "--sessions: more sessions than baseline values"),
            ([], "--new: it is missing"),
        ],
    )
    def test_bad_ones_are_refused(self, words: list[str], problem: str, perfgate: Perfgate) -> None:
        assert problem in perfgate.refused(options(*words))
        assert "--new: the option needs --metric" in perfgate.refused("judge --new 96.1")


class TestLines:
    @each(
        "lines, status",
        [
            ([line(), line(new=[106.1, 106.2])], 0),
            ([line(), line(new=[96.1])], 10),
            ([line(new=[96.1]), line(new=[96.1, 96.0]), line()], 1),
            ([line(new=[96.1, 96.0]), "x"], 2),
        ],
    )
    def test_status(self, stream: Stream, lines: list[str], status: int) -> None:
        assert stream(*lines)[0] == status

    def test_say_the_same_as_the_gate_with_its_notes(self, stream: Stream) -> None:
        _, (found,) = stream(line(new=[98.7, 98.9]))
        judged = judge_performance("output_throughput", BASE, [98.7, 98.9])
        assert found["interval"] == list(judged.interval or ())
        assert (found["change"], found["band"]) == (judged.change, judged.band)
        assert found["reason"].startswith(judged.reason)
        _, (found,) = stream(line(baseline=100, new=[100, 1e-3]))
        # A value after the one that decides is not used.
        assert (found["verdict"], found["runs_used"]) == ("PASS", 1)
        assert found["reason"].endswith(
            "(the band is below the noise floor: 5 fresh starts resolve 2.9 %)"
        )

    def test_controls_decide_what_two_starts_suspect(self, stream: Stream) -> None:
        slow, seen = [96.1, 96.4, 96.2], []
        for controls in ([], [96.2, 96.3], [100.1, 100.2]):
            _, (found,) = stream(line(new=slow, controls=controls, sessions=3))
            seen.append((found["verdict"], found["mark"], found["needs_control"]))
        assert seen == [
            ("INCONCLUSIVE", "", True),
            ("PASS", "HOST_SHIFT", False),
            ("REGRESSION", "", False),
        ]

    def test_what_need_not_be_there_may_be_null_blank_or_one_number(self, stream: Stream) -> None:
        assert stream(line(band=None, sigma=None)) == stream(line())
        assert stream(line(baseline=100, new=100)) == stream(line(baseline=[100], new=[100]))
        status, found = stream("\ufeff" + line(), "", "   ", line())
        assert (status, len(found)) == (0, 2)
        for nothing in ([], ["", "  "]):
            assert stream(*nothing) == (2, [])

    @each(
        "bad, problem",
        [
            (line()[:-3], "the line is not JSON"),
            (line(metric="speed"), "unknown metric"),
            (line(metric=5), "metric: it cannot be used"),
            (line(new="LEFT OUT"), "new: it is missing"),
            (line(new=None), "new: value 1 is not a number"),
            (line(sigmas=0.1), "sigmas: unknown field"),
            (line()[:-1] + ', "new": [5]}', "the line has a field twice\n  found: 'new'"),
            (line(new=[float("nan")]), "not a finite number: NaN"),
            (line(baseline=[]), "baseline: it cannot be used"),
            (line(new=[96.1, True]), "value 2 is not a number"),
            (line(max_runs=1.5), "max_runs: it cannot be used"),
            (line(metric="ttft_p99_ms"), "has no band of its own"),
            (line(metric=GSM8K, baseline=0.9, new=0.9), "questions: how far a score"),
            (line(metric=GSM8K, baseline=95, new=0.9, questions=9), "divide percentages by 100"),
            (line(metric=GSM8K, baseline=0.9, new=-0.1, questions=9), "no share"),
            (
                line(metric=GSM8K, baseline=0.9, new=0.9, questions=9, sigma=0.1),
                "sigma means nothing",
            ),
        ],
    )
    def test_a_bad_one_tells_where_and_does_not_stop_the_others(
        self, stream: Stream, bad: str, problem: str
    ) -> None:
        status, (first, wrong, last) = stream(line(), bad, line())
        assert status == 2
        assert first["verdict"] == last["verdict"] == "PASS"
        assert set(wrong) == {"error", "line"}
        assert wrong["line"] == 2
        assert wrong["error"].startswith("<standard input>:2: ")
        assert problem in wrong["error"]

    @pytest.mark.timeout(60)
    def test_is_answered_before_the_next_is_asked(self) -> None:
        words = [sys.executable, "-m", "perfgate.cli.main", "judge"]
        env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        with subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        ) as program:
            assert program.stdin is not None
            assert program.stdout is not None
            for _ in range(2):
                program.stdin.write(line() + "\n")
                program.stdin.flush()
                assert json.loads(program.stdout.readline())["verdict"] == "PASS"
            program.stdin.close()
            assert program.wait(timeout=60) == 0

    @pytest.mark.timeout(60)
    def test_a_line_without_end_is_refused(self) -> None:
        with Path("/dev/zero").open("rb") as endless:
            done = subprocess.run(
                [sys.executable, "-m", "perfgate.cli.main", "judge"],
                stdin=endless,
                capture_output=True,
                text=True,
                check=False,
            )
        assert done.returncode == 2
        assert "<standard input>:1: the line is too large" in done.stderr

    @pytest.mark.nightly
    def test_a_line_takes_less_than_a_millisecond(self) -> None:
        number = sized(1_000, 10_000)
        text = "\n".join(
            line(baseline=[100 + 0.01 * (n % 7)] * (n % 30 + 1), new=[97.0 + n % 5, 99, 98, 97, 97])
            for n in range(number)
        )
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, "-m", "perfgate.cli.main", "judge"],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        # Its own time: what else the machine is busy with is not its fault.
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        assert spent < 4 + number / 1000
        assert done.returncode in (0, 1, 10)
        assert len(done.stdout.splitlines()) == number
