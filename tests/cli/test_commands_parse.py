import json
import os
from pathlib import Path

import pytest
from command_line import Perfgate
from tables import each

from perfgate.cli.main import main

Capture = pytest.CaptureFixture[str]
DATA = Path(__file__).parents[1] / "data"
GOOD = DATA / "trtllm_bench" / "b200_fp8kv_max_throughput.txt"
BAD = DATA / "benchmark_serving" / "placeholders.txt"


def test_one_file_is_one_object_and_several_are_a_list(perfgate: Perfgate) -> None:
    found = json.loads(perfgate.printed(f"parse {GOOD}"))
    assert (found["outcome"], found["facts"]["client"]) == ("success", "trtllm-bench")
    assert found["metrics"]["output_throughput"] == 43146.2042
    wrong = json.loads(perfgate.printed(f"parse --client benchmark_serving {BAD}", 1))
    assert (wrong["outcome"], wrong["class"]) == ("error", "no_metrics")
    assert wrong["evidence"] == [6, "Request throughput (req/s):               [result]"]
    both = json.loads(perfgate.printed(f"parse {GOOD} {BAD}", 1))
    ends = [(one["file"], one["outcome"]) for one in both]
    assert ends == [(str(GOOD), "success"), (str(BAD), "error")]
    assert perfgate.printed(f"parse {GOOD} {GOOD}")


@pytest.mark.timeout(60)
def test_what_cannot_be_read_is_refused_at_once(tmp_path: Path, perfgate: Perfgate) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("/dev/zero")
    for name, told in (
        ("none.txt", "the file cannot be read"),
        (".", "the file cannot be read"),
        ("fifo", "fifo: not a regular file\n  found: a FIFO"),
        ("link", "link: not a regular file\n  found: a device"),
    ):
        assert told in perfgate.refused(f"parse {GOOD} {tmp_path / name}")
    assert "one of trtllm-bench, " in perfgate.refused(f"parse --client genai-perf {GOOD}")


@pytest.mark.timeout(60)
@each(
    "content, told",
    [
        (bytes(range(256)).decode("latin-1"), "no"),
        ('{"completed": 1, "request_throughput": 1e999}', "a metric is inf"),
        (
            '{"aiperf_version": "0.13", "schema_version": "1.4",'
            ' "request_count": {"avg": NaN, "unit": "requests"}}',
            "request_count is nan",
        ),
        (
            '{"aiperf_version": "0.13", "schema_version": "1.4",'
            ' "error_request_count": {"avg": 1e999, "unit": "requests"}}',
            "error_request_count is inf",
        ),
        ("Average accuracy: 0.5\nFinished in 1.2.3 seconds\n", None),
    ],
)
def test_no_content_is_taken_for_a_bug(
    tmp_path: Path, capsys: Capture, content: str, told: str | None
) -> None:
    file = tmp_path / "a"
    file.write_text(content)
    assert main(["parse", str(file)]) == (0 if told is None else 1)
    answer = capsys.readouterr().out
    assert len(answer) < 2000
    if told is not None:
        assert told in json.loads(answer)["message"]
