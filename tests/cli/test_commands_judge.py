"""`perfgate judge`: options and lines say the same, at once; tests/data/cli has its answers."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import Perfgate
from plain_values import judge_performance
from tables import each

from perfgate.cli.main import main

Capture = pytest.CaptureFixture[str]
BASE = [101.0, 99.7, 100.4]


def line(**changes: Any) -> str:
    fields = {"metric": "output_throughput", "baseline": BASE, "new": [100.1]}
    return json.dumps({**fields, **changes})


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


class TestOptions:
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
        self, words: str, fields: dict[str, Any], stream: Stream, perfgate: Perfgate
    ) -> None:
        new = [97.1, 97.4, 97.2]
        status, (of_line,) = stream(line(new=new, **fields))
        call = "judge --metric output_throughput --baseline 101,99.7,100.4 --new"
        assert perfgate.plain([*call.split(), "97.1, 97.4,97.2", *words.split()], status) == of_line
        assert stream(line(new=new))[1] != [of_line]


class TestLines:
    def test_say_the_same_as_the_gate(self, stream: Stream) -> None:
        _, (found,) = stream(line(new=[98.7, 98.9]))
        judged = judge_performance("output_throughput", BASE, [98.7, 98.9])
        assert found["interval"] == list(judged.interval or ())
        assert (found["change"], found["band"]) == (judged.change, judged.band)
        assert found["reason"].startswith(judged.reason)

    def test_what_need_not_be_there_may_be_null_blank_or_one_number(self, stream: Stream) -> None:
        assert stream(line(band=None, sigma=None)) == stream(line())
        assert stream(line(baseline=100, new=100)) == stream(line(baseline=[100], new=[100]))
        status, found = stream("\ufeff" + line(), "", "   ", line())
        assert (status, len(found)) == (0, 2)
        for nothing in ([], ["", "  "]):
            assert stream(*nothing) == (2, [])

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
