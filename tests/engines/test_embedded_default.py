"""The embedded default for real: llama.cpp serves a small model, AIPerf and lm_eval use it.

The server has one thread, so that other tests at the same time slow it only by their share.
"""

import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import psutil
import pytest
from building import SCENARIO

from perfgate.clients.aiperf import AIPerf
from perfgate.clients.base import Target
from perfgate.clients.first_answers import ask as first_answers
from perfgate.core.errors import InputError, MissingProgram, RunError
from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.programs import LLAMA_CPP_PYTHON, LM_EVAL
from perfgate.engines import llama_cpp
from perfgate.engines.base import Endpoint, EngineBuild
from perfgate.engines.llama_cpp import LlamaCpp
from perfgate.evaluators.lm_eval import LmEval
from perfgate.scenarios.scenario import (
    AccuracyTask,
    DocumentedAnswer,
    EngineChoice,
    EngineSettings,
    LoadPoint,
    Model,
    Smoke,
)

pytestmark = [pytest.mark.real, pytest.mark.slow]

SMOLLM2 = replace(
    SCENARIO,
    model=Model("SmolLM2-135M-Instruct", "q4_1"),
    engine=EngineChoice(
        "llama.cpp", EngineSettings(max_batch_size=4, max_seq_len=2048, cpu_threads=1)
    ),
)
BUILD = EngineBuild("llama.cpp", "1.0", "1.0")
TASK = AccuracyTask(
    "lm_eval",
    "perfgate_arithmetic",
    fewshot=5,
    concurrency=4,
    limit=2,
    extra_body={"cache_prompt": True},
)


@pytest.fixture(scope="module", autouse=True)
def versions() -> dict[str, str]:
    """The client's and the evaluator's own; skip where the embedded default is not installed."""
    try:
        LlamaCpp().build(Locations())
        llama_cpp.locate(SMOLLM2, Locations())
        return {one.name: one.version(Locations()) for one in (AIPerf(), LmEval())}
    except (MissingProgram, InputError) as error:
        pytest.skip(f"the embedded default is not installed: {error}")


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A server that is ready, and its tokenizer."""
    folder = tmp_path_factory.mktemp("server")
    endpoint = Endpoint("127.0.0.1", _free_port(), LlamaCpp().served_model(SMOLLM2, Locations()))
    tokenizer = LlamaCpp().tokenizer(SMOLLM2, folder, Locations())
    command = LlamaCpp().serve(SMOLLM2, BUILD, endpoint, Locations())
    with (folder / "log").open("wb") as log:
        server = _start(command, log)
        try:
            _wait_until_healthy(server, endpoint)
            yield Target(endpoint, tokenizer)
        finally:
            server.kill()
            server.wait()


def _start(command: Command, log: BinaryIO) -> subprocess.Popen[bytes]:
    environment = {**os.environ, **command.env}
    return subprocess.Popen(command.argv, env=environment, stdout=log, stderr=log)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_healthy(server: subprocess.Popen[bytes], endpoint: Endpoint) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        assert server.poll() is None
        try:
            with urllib.request.urlopen(f"{endpoint.url}/health", timeout=5):
                return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the server was not healthy in 30 s")


def ask(url: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def run(command: Command, folder: Path) -> int:
    """Run a client or evaluator as a launcher would; its exit status."""
    folder.mkdir(exist_ok=True)
    with (folder / "out").open("wb") as out, (folder / "program.err").open("wb") as err:
        return subprocess.run(
            command.argv,
            env={**os.environ, **command.env},
            cwd=folder,
            stdout=out,
            stderr=err,
            timeout=300,
            check=False,
        ).returncode


def test_a_first_answer_of_the_real_server_is_whole(target: Target, tmp_path: Path) -> None:
    known = DocumentedAnswer("The capital of France is", contains=("Paris",), completion_tokens=16)
    prompts = (known.prompt, "Where is New York?", "def fibonacci(n):", "1, 2, 3, 5, 8,", "北京是")
    smoke = Smoke("completion", prompts, max_tokens=16, answers=(known,))
    assert first_answers(target.endpoint, smoke, tmp_path, 60).facts["answers"] == len(prompts)
    wrong = replace(smoke, prompts=prompts[:1], answers=(replace(known, contains=("London",)),))
    with pytest.raises(RunError, match="does not contain 'London'"):
        first_answers(target.endpoint, wrong, tmp_path, 60)


def texts(count: int) -> list[str]:
    """Texts of many kinds: prose, code, digits, white space, scripts, emoji, control tokens."""
    chance = random.Random(7)
    pieces = [
        *["The", "quick", "brown", "fox", "don't", "can't", "I'll", "we've", "HELLO", "camelCase"],
        *["12345", "3.14", "1,000,000", "2²", "٣٤"],
        *[" ", "  ", "\n", "\n\n", "\t", "\r\n", "    x = [1, 2]", "def f(a):\n    return a"],
        *["naïve café", "Привет", "你好", "مرحبا", "😀👍🏽", "e\u0301", "\u00a0", "\u200b"],
        *["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|im_", "#### 7", "$%&/()=?"],
    ]
    return ["".join(chance.choices(pieces, k=chance.randint(1, 12))) for _ in range(count)]


class TestTokenizer:
    def test_cuts_every_text_as_the_server_does(self, target: Target) -> None:
        asked = texts(150)
        code = (
            "import json, sys; from tokenizers import Tokenizer; "
            "t = Tokenizer.from_file(sys.argv[1]); "
            "print(json.dumps([t.encode(x).ids for x in json.load(sys.stdin)]))"
        )
        argv = [*LLAMA_CPP_PYTHON.find(), "-c", code, f"{target.tokenizer}/tokenizer.json"]
        done = subprocess.run(
            argv, input=json.dumps(asked), capture_output=True, text=True, check=True, timeout=60
        )
        url = f"{target.endpoint.url}/tokenize"
        served = [ask(url, {"content": t, "parse_special": True})["tokens"] for t in asked]
        assert json.loads(done.stdout) == served

    def test_is_made_once_and_anew_where_it_was_cut(self, target: Target, tmp_path: Path) -> None:
        cache = Path(target.tokenizer).parent
        shutil.copytree(cache, tmp_path / cache.name)
        file = tmp_path / cache.name / Path(target.tokenizer).name / "tokenizer.json"
        made, whole = file.stat().st_mtime_ns, file.stat().st_size
        assert LlamaCpp().tokenizer(SMOLLM2, tmp_path, Locations()) == str(file.parent)
        assert file.stat().st_mtime_ns == made
        os.truncate(file, whole // 2)
        assert LlamaCpp().tokenizer(SMOLLM2, tmp_path, Locations()) == str(file.parent)
        assert file.stat().st_size == whole
        assert [path.name for path in file.parents[1].iterdir()] == [file.parent.name]

    @pytest.mark.parametrize("length", [4, 500_000])
    def test_a_cut_file_is_told(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int
    ) -> None:
        cut = tmp_path / "cut.gguf"
        with llama_cpp.locate(SMOLLM2, Locations()).open("rb") as whole:
            cut.write_bytes(whole.read(length))
        monkeypatch.setenv(llama_cpp.known_model(SMOLLM2).variable, str(cut))
        with pytest.raises(RunError, match="not a complete GGUF file") as caught:
            LlamaCpp().tokenizer(SMOLLM2, tmp_path, Locations())
        assert caught.value.failure == "model_file"
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == [cut]


def test_the_server_names_the_model_and_honours_its_settings(target: Target) -> None:
    with urllib.request.urlopen(f"{target.endpoint.url}/v1/models", timeout=5) as answer:
        assert [model["id"] for model in json.load(answer)["data"]] == ["SmolLM2-135M-Instruct"]
    with urllib.request.urlopen(f"{target.endpoint.url}/props", timeout=5) as answer:
        props = json.load(answer)
    assert props["total_slots"] == 4
    assert props["default_generation_settings"]["n_ctx"] == 2048


def test_the_server_takes_every_cache_type_a_small_batch_and_halts(tmp_path: Path) -> None:
    settings = EngineSettings(
        cpu_threads=1,
        max_seq_len=512,
        max_num_tokens=8,
        kv_cache_dtype="q8_0",
        slowed_percent=50,
    )
    scenario = replace(SMOLLM2, engine=EngineChoice("llama.cpp", settings))
    endpoint = Endpoint("127.0.0.1", _free_port(), "m")
    with (tmp_path / "log").open("wb") as log:
        server = _start(LlamaCpp().serve(scenario, BUILD, endpoint, Locations()), log)
        try:
            _wait_until_healthy(server, endpoint)
            body = {"prompt": "The capital of France is", "max_tokens": 4, "temperature": 0}
            answer = ask(f"{endpoint.url}/v1/completions", body)
            (slowing,) = psutil.Process(server.pid).children()
        finally:
            server.terminate()
            status = server.wait(20)
    assert "Paris" in answer["choices"][0]["text"]
    slowing.wait(20)  # what halts the server ends with it
    assert status == 0, "a server that is asked to end does so as if it were done"


def test_the_server_tells_a_damaged_model(tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(llama_cpp.locate(SMOLLM2, Locations()).read_bytes()[:50_000_000])
    script = Path(sys.modules[LlamaCpp.__module__].__file__ or "").with_name("llama_cpp_server.py")
    argv = [*LLAMA_CPP_PYTHON.find(), str(script), "--model", str(cut), "--port", "1"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode != 0
    assert "data is not within the file bounds" in done.stderr


def test_aiperf_measures_the_server(
    target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, versions: dict[str, str]
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert SMOLLM2.workload is not None
    workload = replace(SMOLLM2.workload, osl=8, max_request_rate=100.0)
    point = LoadPoint(concurrency=2, requests=2, warmup_requests=1, seed=3)
    command = AIPerf().command(replace(target, folder=tmp_path / "c2"), workload, point)
    assert run(command, tmp_path / "c2") == 0
    found = AIPerf().parse(workload, point, tmp_path / "c2")
    assert found.facts["client_version"] == versions["aiperf"]
    assert (found.facts["isl"], found.facts["osl"]) == (64.0, 8.0)
    assert found.facts["prompt_tokens_cached"] == 0
    assert 0 < found.metrics["ttft_mean_ms"] < found.metrics["e2el_mean_ms"]


# lm_eval, which takes ten seconds to read those of its 11,000 task files that are not ours.
OUR_TASKS = """\
from functools import partialmethod
from lm_eval.__main__ import cli_evaluate
from lm_eval.tasks import TaskManager
TaskManager.__init__ = partialmethod(TaskManager.__init__, include_defaults=False)
cli_evaluate()
"""


def test_lm_eval_evaluates_the_served_model(
    target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, versions: dict[str, str]
) -> None:
    program = tmp_path / "lm_eval"
    first, *_ = Path(LM_EVAL.find()[0]).read_text().splitlines()
    program.write_text(f"{first}\n{OUR_TASKS}")
    program.chmod(0o755)
    monkeypatch.setenv(LM_EVAL.variable, str(program))
    assert run(LmEval().command(replace(target, folder=tmp_path), TASK), tmp_path) == 0
    found = LmEval().parse(TASK, tmp_path)
    name = "accuracy:perfgate_arithmetic:exact_match:strict-match"
    assert len(found.answers[name]) == 2
    assert found.metrics[name] >= 0.5, "both were right when it was recorded"
    assert found.facts["evaluator_version"] == versions["lm_eval"]
