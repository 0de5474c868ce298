import ast
import re
from pathlib import Path

import pytest

import perfgate
from perfgate.failures import FAILURES, classify

# Lines as the programs print them: uvicorn, vLLM, llama.cpp, PyTorch, click, argparse, cp.
LINES = {
    "port_in_use": [
        "ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 8000): "
        "address already in use",
        "main: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8080",
    ],
    "model_file": [
        "error: failed to load model: no file /models/x.gguf",
        "llama_model_load: error loading model: tensor 'output.weight' data is not within the "
        "file bounds, model is corrupted or incomplete",
        "gguf_init_from_file_impl: invalid magic characters: 'abcd', expected 'GGUF'",
    ],
    "oom": [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "RuntimeError: CUDA error: out of memory",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "MemoryError",
    ],
    "cli_drift": [
        "Error: No such option: --kv_cache_free_gpu_mem_fraction",
        "aiperf: error: unrecognized arguments: --concurency 4",
    ],
    "disk_full": ["OSError: [Errno 28] No space left on device: '/runs/x'"],
}


@pytest.mark.parametrize(
    ("name", "line"), [(name, line) for name, lines in LINES.items() for line in lines]
)
def test_a_telling_line_gives_class_and_evidence(name: str, line: str) -> None:
    assert classify(["starting", f"{line}  \n", "bye"]) == (name, (line,))


def test_every_class_with_signatures_is_shown_above() -> None:
    assert {one.name for one in FAILURES.values() if one.signatures} == set(LINES)


def test_the_first_cause_wins() -> None:
    lines = [LINES["oom"][0], LINES["port_in_use"][0], LINES["oom"][1]]
    assert classify(lines) == ("oom", (lines[0],))
    assert classify(reversed(lines[:2]))[0] == "port_in_use"


def test_nothing_known() -> None:
    assert classify(["all is well", "a MemoryError in the middle of a line"]) == ("unknown", ())
    assert classify([], otherwise="server_died") == ("server_died", ())


def test_evidence_is_short() -> None:
    _, (line,) = classify(["CUDA out of memory " + "x" * 10_000])
    assert len(line) == 300


@pytest.mark.parametrize("failure", FAILURES.values(), ids=lambda failure: failure.name)
def test_every_class_can_be_told_to_a_person(failure: object) -> None:
    name, meaning, next_step = failure.name, failure.meaning, failure.next_step  # type: ignore[attr-defined]
    assert re.fullmatch("[a-z_]+", name)
    assert meaning
    assert next_step
    assert not next_step.endswith(".")


def test_every_class_that_is_raised_exists() -> None:
    raised = set()
    for path in Path(perfgate.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "RunError":
                first = node.args[0]
                if isinstance(first, ast.Constant):
                    raised.add(first.value)
    assert "disk_full" in raised
    assert raised <= set(FAILURES)
