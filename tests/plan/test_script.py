"""The script of a scenario: run for real, with small programs in place of the engine's."""

import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from building import SCENARIO
from hypothesis import given
from hypothesis import strategies as st

from perfgate.core.command import Command, Role, Step
from perfgate.engines.base import EngineBuild
from perfgate.launchers.local.launcher import free_port
from perfgate.plan.script import Readiness, script
from perfgate.plan.shell_text import call, comment, commented

BUILD = EngineBuild("tensorrt-llm", "1.0.0", "1.0.0")
SERVER = """\
import http.server, pathlib, sys
pathlib.Path("pid").write_text(str(__import__("os").getpid()))
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def port() -> int:
    return free_port("127.0.0.1")


@pytest.fixture
def ready(port: int) -> Readiness:
    return Readiness(f"http://127.0.0.1:{port}/health", start_s=20.0)


@pytest.fixture
def server(port: int) -> Step:
    """A server that is stopped by a signal alone, and writes down its process id."""
    argv = (sys.executable, "server.py", str(port))
    return Step("server", Command(argv, {"PYTHONUNBUFFERED": "1"}, {"server.py": SERVER}))


@pytest.fixture
def run(tmp_path: Path, ready: Readiness) -> Run:
    """Write the script of some steps, and run it in an empty folder."""

    def made(*steps: Step, **variables: str) -> subprocess.CompletedProcess[str]:
        text = script(SCENARIO, BUILD, steps, ready)
        file = tmp_path / "run.sh"
        file.write_bytes(text.encode())
        subprocess.run(["bash", "-n", str(file)], check=True)
        return subprocess.run(
            ["bash", str(file)],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], **variables},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return made


def work(folder: Path) -> Path:
    """The one folder that the script made."""
    (found,) = folder.glob("perfgate-small-serve.*")
    return found


def said(*words: str, role: Role = "benchmark", probe: str | None = "c1", **more: Any) -> Step:
    """A step that prints its words."""
    return Step(role, replace(Command(("printf", "%s\\n", *words)), **more), probe)


class TestOffline:
    def test_each_probe_has_a_folder_and_keeps_what_was_printed(
        self, run: Run, tmp_path: Path
    ) -> None:
        done = run(said("one"), said("four", probe="c4"))
        assert done.returncode == 0, done.stderr
        results = work(tmp_path) / "results"
        assert (results / "c1" / "benchmark.log").read_text() == "one\n"
        assert (results / "c4" / "benchmark.log").read_text() == "four\n"
        assert "one\nfour\n" in done.stdout.replace("# ", "")

    def test_a_shared_dataset_is_found_by_every_probe(self, run: Run, tmp_path: Path) -> None:
        data = said("prompt", role="prepare_dataset", probe=None, stdout="dataset.txt")
        data = replace(data, produces="dataset.txt")
        reads = Command(("cat", "dataset.txt"))
        done = run(data, *(Step("benchmark", reads, probe) for probe in ("c1", "c4")))
        assert done.returncode == 0, done.stderr
        for probe in ("c1", "c4"):
            log = work(tmp_path) / "results" / probe / "benchmark.log"
            assert log.read_text() == "prompt\n"

    def test_files_are_written_as_they_are(self, run: Run, tmp_path: Path) -> None:
        files = {
            "plain.yml": "a: '$HOME' `x` \\\n",
            "no_end": "last line",
            "EOF.sh": "#!/bin/sh\nEOF\nEOFF\n",
            "quotes": 'it\'s "so"\n\n',
        }
        assert run(said("x", files=files)).returncode == 0
        folder = work(tmp_path) / "results" / "c1"
        assert {name: (folder / name).read_text() for name in files} == files

    def test_variables_are_of_their_step_alone(self, run: Run) -> None:
        asks = Command(("sh", "-c", 'echo "A is ${TRTLLM_A-unset}"'))
        done = run(
            Step("benchmark", replace(asks, env={"TRTLLM_A": "$b 'c'"}), "c1"), Step("smoke", asks)
        )
        assert "A is $b 'c'\nA is unset\n" in done.stdout

    def test_a_failing_step_ends_it_with_its_status(self, run: Run) -> None:
        done = run(Step("benchmark", Command(("sh", "-c", "exit 7")), "c1"), said("never"))
        assert done.returncode == 7
        assert "never" not in done.stdout

    def test_a_secret_is_asked_for_and_never_written(self, run: Run, tmp_path: Path) -> None:
        step = Step("benchmark", Command(("printenv", "HF_TOKEN"), {"HF_TOKEN": "hf_1"}), "c1")
        missing = run(step)
        assert missing.returncode != 0
        assert "HF_TOKEN: its value is not written down, set it yourself" in missing.stderr
        assert "hf_1" not in (tmp_path / "run.sh").read_text()
        shutil.rmtree(work(tmp_path))
        assert "hf_2" in run(step, **{"HF_TOKEN": "hf_2"}).stdout

    def test_a_persons_dataset_must_be_there_before_anything_starts(
        self, run: Run, tmp_path: Path
    ) -> None:
        step = Step("benchmark", Command(("cat", "YOUR_DATASET.jsonl")), "c1")
        missing = run(said("early", probe="c0"), step)
        assert missing.returncode == 1
        assert "put YOUR_DATASET.jsonl into this folder" in missing.stderr
        assert "early" not in missing.stdout
        (tmp_path / "YOUR_DATASET.jsonl").write_text("real\n")
        assert "real\n" in run(step).stdout

    def test_programs_of_the_engines_sources_are_taken_from_a_checkout(
        self, run: Run, tmp_path: Path
    ) -> None:
        tool = tmp_path / "my checkout" / "benchmarks" / "cpp" / "prepare_dataset.py"
        tool.parent.mkdir(parents=True)
        tool.write_text("print('made')")
        argv = (sys.executable, "benchmarks/cpp/prepare_dataset.py")
        step = Step("prepare_dataset", Command(argv, stdout="dataset.txt"), "c1", "dataset.txt")
        assert "set it to a checkout of TensorRT-LLM" in run(step).stderr
        done = run(step, PERFGATE_TENSORRT_LLM_SOURCE=str(tmp_path / "my checkout"))
        assert done.returncode == 0, done.stderr
        assert (work(tmp_path) / "results" / "c1" / "dataset.txt").read_text() == "made\n"

    def test_says_what_a_person_has_to_replace(self, ready: Readiness) -> None:
        text = script(SCENARIO, BUILD, [said("<HOST1>:8,<HOST2>:8")], ready)
        assert "# Replace these first: <HOST1> <HOST2>\n" in text


class TestServer:
    def test_is_ready_before_it_is_asked_and_gone_afterwards(
        self, run: Run, server: Step, tmp_path: Path, ready: Readiness
    ) -> None:
        asks = Step("client", Command(("curl", "-fsS", "--noproxy", "*", ready.url)), "c1")
        done = run(server, asks)
        assert done.returncode == 0, done.stderr
        assert not alive(work(tmp_path))

    def test_is_gone_before_an_offline_benchmark(self, run: Run, server: Step) -> None:
        looks = Command(("sh", "-c", "! kill -0 $(cat ../../pid) && echo free"))
        done = run(server, said("asked", role="client"), Step("benchmark", looks, "c4"))
        assert done.returncode == 0, done.stderr
        assert "free\n" in done.stdout

    def test_is_gone_after_a_client_failed(self, run: Run, server: Step, tmp_path: Path) -> None:
        done = run(server, Step("client", Command(("false",)), "c1"))
        assert done.returncode == 1
        assert not alive(work(tmp_path))

    def test_that_ends_by_itself_is_told_with_its_log(self, run: Run) -> None:
        dies = Step("server", Command(("sh", "-c", "echo out of memory; exit 3")))
        done = run(dies, said("never", role="client"))
        assert done.returncode == 1
        assert "the server ended before it was ready" in done.stderr
        assert "out of memory" in done.stderr
        assert "never" not in done.stdout

    def test_that_never_is_ready_is_given_up(self, ready: Readiness, tmp_path: Path) -> None:
        sleeps = Step("server", Command(("sleep", "600")))
        text = script(SCENARIO, BUILD, [sleeps], replace(ready, start_s=1.0))
        done = subprocess.run(
            ["bash", "-c", text], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert "the server was not ready after 1 s" in done.stderr

    def test_a_stranger_at_its_address_is_not_mistaken_for_it(
        self, run: Run, server: Step, port: int
    ) -> None:
        with socket.socket() as stranger:
            stranger.bind(("127.0.0.1", port))
            stranger.listen()

            def answer() -> None:
                connection, _ = stranger.accept()
                connection.recv(1000)
                connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
                connection.close()

            threading.Thread(target=answer, daemon=True).start()
            done = run(server, said("never", role="client"))
        assert done.returncode == 1
        assert "something already answers at" in done.stderr
        assert "never" not in done.stdout


def alive(folder: Path) -> bool:
    """Whether the server that wrote its process id is still there."""
    return Path("/proc", (folder / "pid").read_text()).exists()


WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


@given(st.lists(WORDS.filter(lambda word: not word.startswith("~")), max_size=6))
def test_a_shell_reads_back_the_very_words(words: list[str]) -> None:
    line = call(("printf", r"%s\0", "first", *words))
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == ["first", *words]


@given(st.text(max_size=40))
def test_no_text_leaves_its_comment(text: str) -> None:
    assert comment(text).startswith("#")
    assert len(comment(text).splitlines()) == 1
    assert all(line.startswith("# ") or line == "#" for line in commented(text))


def test_an_option_and_its_values_share_a_line_and_a_tilde_is_meant() -> None:
    assert call(("trtllm-bench", "throughput", "--concurrency", "-1", "-v", "~/.cache:/c d")) == (
        "trtllm-bench throughput \\\n    --concurrency -1 \\\n    -v ~/'.cache:/c d'"
    )
