"""The calls of TensorRT-LLM's programs inside a command, whatever launcher stands before them."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from perfgate.core.locations import Locations
from perfgate.core.programs import BENCHMARK_SERVING as BENCHMARK_SERVING_PROGRAM
from perfgate.core.programs import (
    TENSORRT_LLM_PYTHON,
    TRTLLM_BENCH,
    TRTLLM_EVAL,
    TRTLLM_SERVE,
    Program,
)
from perfgate.engines.installed_programs import program_words, shell_words
from perfgate.engines.option_check import Call
from perfgate.engines.tensorrt_llm.programs import TASKS
from perfgate.engines.tensorrt_llm.table import (
    BENCH,
    BENCHMARK_SERVING,
    EVAL,
    GPQA,
    PREPARE,
    PREPARE_SCRIPT,
    QUICKSTART,
    SERVE,
    THROUGHPUT,
)

_SUBCOMMANDS = {"throughput": THROUGHPUT, "prepare-dataset": PREPARE}
_SCRIPTS = (PREPARE_SCRIPT, QUICKSTART, GPQA)
_GENERATOR = "token-norm-dist"
_HERE = Locations()


def calls(argv: Sequence[str], locations: Locations = _HERE) -> tuple[Call, ...]:
    """The calls of known programs in `argv`, whatever launcher stands before them.

    Args:
        argv: a command's words.
        locations: where programs are, which says how they are spelled.
    """
    for position, word in enumerate(argv):
        if " " in word and any(name in word for name in _executables()):
            return calls(shell_words(word), locations)
        found = _call(argv, position, locations)
        if found:
            return tuple(found)
    return ()


def _call(argv: Sequence[str], position: int, locations: Locations) -> list[Call]:
    word = Path(argv[position]).name
    if word in _SCRIPTS:
        asked = (*_interpreter(argv, position, locations), argv[position], "--help")
        return list(_with_generator(word, asked, argv[position + 1 :]))
    for name, program in _PROGRAMS:
        prefix = program_words(argv[position:], program, locations)
        if prefix is not None:
            rest = tuple(argv[position + len(prefix) :])
            return list(_split(name, prefix, rest))
    return []


def _split(name: str, prefix: tuple[str, ...], rest: tuple[str, ...]) -> Iterator[Call]:
    """`trtllm-bench` and `trtllm-eval` have options before and behind their subcommands."""
    if name == SERVE:
        yield Call(SERVE, (*prefix, "serve", "--help"), rest, f"{SERVE} serve")
        return
    if name == BENCHMARK_SERVING:
        yield Call(name, (*prefix, "--help"), rest, name)
        return
    if name == EVAL:
        at = next((at for at, word in enumerate(rest) if word in TASKS), len(rest))
        yield Call(EVAL, (*prefix, "--help"), rest[:at], EVAL)
        if at < len(rest):
            task = f"{EVAL} {rest[at]}"
            yield Call(task, (), rest[at + 1 :], task)
        return
    at = next((at for at, word in enumerate(rest) if word in _SUBCOMMANDS), len(rest))
    yield Call(BENCH, (*prefix, "--help"), rest[:at], BENCH)
    if at < len(rest):
        # click wants --model before it shows the help of a subcommand.
        asked = (*prefix, "--model", "any", rest[at], "--help")
        yield from _with_generator(_SUBCOMMANDS[rest[at]], asked, rest[at + 1 :])


def _with_generator(name: str, asked: tuple[str, ...], words: Sequence[str]) -> Iterator[Call]:
    """A program, and the generator of prompts behind its own options, where there is one."""
    at = words.index(_GENERATOR) if _GENERATOR in words else len(words)
    yield Call(name, asked, tuple(words[:at]), name)
    if at < len(words):
        generator = f"{name} {_GENERATOR}"
        yield Call(generator, (), tuple(words[at + 1 :]), generator)


def _interpreter(argv: Sequence[str], position: int, locations: Locations) -> tuple[str, ...]:
    """The words before a script that run it: as found where it is, else the one before it."""
    for before in range(position):
        found = program_words(argv[before:], TENSORRT_LLM_PYTHON, locations)
        if found is not None and before + len(found) == position:
            return found
    return tuple(argv[max(0, position - 1) : position])


_PROGRAMS: tuple[tuple[str, Program], ...] = (
    (BENCH, TRTLLM_BENCH),
    (SERVE, TRTLLM_SERVE),
    (EVAL, TRTLLM_EVAL),
    (BENCHMARK_SERVING, BENCHMARK_SERVING_PROGRAM),
)


def _executables() -> tuple[str, ...]:
    return (
        TRTLLM_BENCH.executable,
        TRTLLM_SERVE.executable,
        TRTLLM_EVAL.executable,
        BENCHMARK_SERVING_PROGRAM.arguments[-1],
        *_SCRIPTS,
    )
