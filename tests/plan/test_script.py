"""The script of a scenario: run for real, with small programs in place of the engine's."""

import os
import subprocess
import sys
import threading
from dataclasses import replace
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from building import SCENARIO
from hypothesis import example, given
from hypothesis import strategies as st

from perfgate.core.programs.command import Command, Role, Step
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


@pytest.fixture
def ready() -> Readiness:
    return Readiness(f"http://127.0.0.1:{free_port('127.0.0.1')}/health", start_s=20.0)


@pytest.fixture
def server(ready: Readiness) -> Step:
    """A server that is stopped by a signal alone, and writes down its process id."""
    argv = (sys.executable, "server.py", str(urlsplit(ready.url).port))
    return Step("server", Command(argv, {"PYTHONUNBUFFERED": "1"}, {"server.py": SERVER}))


class Desk:
    """An empty folder in which the script of some steps is run."""

    def __init__(self, folder: Path, ready: Readiness) -> None:
        self.folder, self.ready, self.text = folder, ready, ""

    def run(self, *steps: Step, **variables: str) -> "subprocess.CompletedProcess[str]":
        self.text = script(SCENARIO, BUILD, steps, self.ready)
        env = {"PATH": os.environ["PATH"], **variables}
        call = ["bash", "-c", self.text]
        return subprocess.run(
            call, cwd=self.folder, env=env, capture_output=True, text=True, timeout=60
        )

    def passes(self, *steps: Step, **variables: str) -> str:
        """What it prints when it ends well."""
        done = self.run(*steps, **variables)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def fails(self, *steps: Step, status: int = 1) -> str:
        """What it says on standard error when it fails; nothing after the failure was started."""
        done = self.run(*steps, said("not reached", role="client"))
        assert done.returncode == status
        assert "not reached" not in done.stdout
        return done.stderr

    @property
    def work(self) -> Path:
        """The one folder that the script made."""
        (found,) = self.folder.glob("perfgate-small-serve.*")
        return found

    def results(self, name: str, probe: str = "c1") -> str:
        return (self.work / "results" / probe / name).read_text()

    @property
    def is_served(self) -> bool:
        """Whether the server that wrote its process id is still there."""
        return Path("/proc", (self.work / "pid").read_text()).exists()


@pytest.fixture
def desk(tmp_path: Path, ready: Readiness) -> Desk:
    return Desk(tmp_path, ready)


def said(*words: str, role: Role = "benchmark", probe: str | None = "c1", **more: Any) -> Step:
    """A step that prints its words."""
    return Step(role, replace(Command(("printf", "%s\\n", *words)), **more), probe)


class TestOffline:
    def test_each_probe_has_a_folder_and_keeps_what_was_printed(self, desk: Desk) -> None:
        text = desk.passes(said("one"), said("four", probe="c4"))
        assert desk.results("benchmark.log") == "one\n"
        assert desk.results("benchmark.log", "c4") == "four\n"
        assert "one\nfour\n" in text.replace("# ", "")

    def test_a_shared_dataset_is_found_by_every_probe(self, desk: Desk) -> None:
        data = said("prompt", role="prepare_dataset", probe=None, stdout="dataset.txt")
        reads = Command(("cat", "dataset.txt"))
        benchmarks = (Step("benchmark", reads, probe) for probe in ("c1", "c4"))
        desk.passes(replace(data, produces="dataset.txt"), *benchmarks)
        assert {desk.results("benchmark.log", probe) for probe in ("c1", "c4")} == {"prompt\n"}

    def test_files_are_written_as_they_are(self, desk: Desk) -> None:
        files = {
            "plain.yml": "a: '$HOME' `x` \\\n",
            "no_end": "last line",
            "EOF.sh": "#!/bin/sh\nEOF\nEOFF\n",
            "quotes": 'it\'s "so"\n\n',
        }
        desk.passes(said("x", files=files))
        assert {name: desk.results(name) for name in files} == files

    def test_variables_are_of_their_step_alone(self, desk: Desk) -> None:
        asks = Command(("sh", "-c", 'echo "A is ${TRTLLM_A-unset}"'))
        given = replace(asks, env={"TRTLLM_A": "$b 'c'"})
        text = desk.passes(Step("benchmark", given, "c1"), Step("smoke", asks))
        assert "A is $b 'c'\nA is unset\n" in text

    def test_a_failing_step_ends_it_with_its_status(self, desk: Desk) -> None:
        desk.fails(Step("benchmark", Command(("sh", "-c", "exit 7")), "c1"), status=7)

    def test_a_secret_is_asked_for_and_never_written(self, desk: Desk) -> None:
        step = Step("benchmark", Command(("printenv", "HF_TOKEN"), {"HF_TOKEN": "hf_1"}), "c1")
        assert "HF_TOKEN: its value is not written down, set it yourself" in desk.run(step).stderr
        assert "hf_1" not in desk.text
        assert "hf_2" in desk.passes(step, HF_TOKEN="hf_2")  # noqa: S106

    def test_a_persons_dataset_must_be_there_before_anything_starts(self, desk: Desk) -> None:
        step = Step("benchmark", Command(("cat", "YOUR_DATASET.jsonl")), "c1")
        missing = desk.run(said("early", probe="c0"), step)
        assert missing.returncode == 1
        assert "put YOUR_DATASET.jsonl into this folder" in missing.stderr
        assert "early" not in missing.stdout
        (desk.folder / "YOUR_DATASET.jsonl").write_text("real\n")
        assert "real\n" in desk.passes(step)

    def test_programs_of_the_engines_sources_are_taken_from_a_checkout(self, desk: Desk) -> None:
        tool = desk.folder / "my checkout" / "benchmarks" / "cpp" / "prepare_dataset.py"
        tool.parent.mkdir(parents=True)
        tool.write_text("print('made')")
        argv = (sys.executable, "benchmarks/cpp/prepare_dataset.py")
        step = Step("prepare_dataset", Command(argv, stdout="dataset.txt"), "c1", "dataset.txt")
        assert "set it to a checkout of TensorRT-LLM" in desk.run(step).stderr
        desk.passes(step, PERFGATE_TENSORRT_LLM_SOURCE=str(desk.folder / "my checkout"))
        assert desk.results("dataset.txt") == "made\n"

    def test_says_what_a_person_has_to_replace(self, ready: Readiness) -> None:
        text = script(SCENARIO, BUILD, [said("<HOST1>:8,<HOST2>:8")], ready)
        assert "# Replace these first: <HOST1> <HOST2>\n" in text


class TestServer:
    def test_is_ready_before_it_is_asked_and_gone_afterwards(self, desk, server):
        asks = Command(("curl", "-fsS", "--noproxy", "*", desk.ready.url))
        desk.passes(server, Step("client", asks, "c1"))
        assert not desk.is_served

    def test_is_gone_before_an_offline_benchmark(self, desk: Desk, server: Step) -> None:
        looks = Command(("sh", "-c", "! kill -0 $(cat ../../pid) && echo free"))
        benchmark = Step("benchmark", looks, "c4")
        assert "free\n" in desk.passes(server, said("asked", role="client"), benchmark)

    def test_is_gone_after_a_client_failed(self, desk: Desk, server: Step) -> None:
        desk.fails(server, Step("client", Command(("false",)), "c1"))
        assert not desk.is_served

    def test_that_ends_by_itself_is_told_with_its_log(self, desk: Desk) -> None:
        dies = Step("server", Command(("sh", "-c", "echo out of memory; exit 3")))
        error = desk.fails(dies)
        assert "the server ended before it was ready" in error
        assert "out of memory" in error

    def test_that_never_is_ready_is_given_up(self, desk: Desk) -> None:
        desk.ready = replace(desk.ready, start_s=1.0)
        error = desk.fails(Step("server", Command(("sleep", "600"))))
        assert "the server was not ready after 1 s" in error

    def test_a_stranger_at_its_address_is_not_mistaken_for_it(self, desk, server):
        address = ("127.0.0.1", urlsplit(desk.ready.url).port)
        with HTTPServer(address, SimpleHTTPRequestHandler) as stranger:
            threading.Thread(target=stranger.handle_request, daemon=True).start()
            error = desk.fails(server)
        assert "something already answers at" in error


WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


@given(st.lists(WORDS, max_size=6))
@example(["~/mine", "~"])
def test_a_shell_reads_back_the_very_words(words: list[str]) -> None:
    line = call(("printf", r"%s\0", "first", *words))
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == ["first", *words]


@given(st.text(max_size=40))
def test_no_text_leaves_its_comment(text: str) -> None:
    assert comment(text).startswith("#")
    assert len(comment(text).splitlines()) == 1
    assert all(line.startswith("# ") or line == "#" for line in commented(text))


def test_an_option_and_its_values_share_a_line_and_the_caches_tilde_is_meant() -> None:
    assert call(("trtllm-bench", "throughput", "--concurrency", "-1", "-v", "~/.cache:/c d")) == (
        "trtllm-bench throughput \\\n    --concurrency -1 \\\n    -v ~/'.cache:/c d'"
    )
