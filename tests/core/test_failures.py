"""Failure classes: the first cause in a log wins, and healthy lines stay healthy."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tables import each

import perfgate
from perfgate.core.failures import (
    FAILURES,
    SIGNATURES,
    Diagnosis,
    class_of_status,
    classify_logs,
    diagnose,
)

DATA = Path(__file__).parents[1] / "data"
LOGS = {log.name: log for log in (DATA / "failures").iterdir()}
LOGS |= {f"vllm_cpu/{log.name}": log for log in (DATA / "vllm_cpu").iterdir()}
HEALTHY_LOGS = {name for name in LOGS if "healthy" in name}


@dataclass(frozen=True)
class Log:
    """A log file of `LOGS`, with the class, number and part of its telling line."""

    file: str
    failure: str
    line: int
    says: str


# Class → its logs, as [file, number of the telling line, part of it].
CLASSES = tomllib.loads((DATA / "failure_logs.toml").read_text(encoding="utf-8"))
TABLE = [Log(file, name, *rest) for name, logs in CLASSES.items() for file, *rest in logs]

# Lines of programs by what they tell; of the signatures those that no log of `TABLE` shows.
LINES = tomllib.loads((DATA / "failure_lines.toml").read_text(encoding="utf-8"))
CAUSES, SYMPTOMS, BANNERS = LINES["causes"], LINES["symptoms"], LINES["banners"]
HEALTHY: list[str] = LINES["healthy"]


def shown(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(name, line) for name, lines in table.items() for line in lines]


def read(file: str) -> list[str]:
    return LOGS[file].read_text(encoding="utf-8").splitlines()


def plain(text: str) -> str:
    return re.sub(r"\x1b\[\d+m", "", text)


def diagnosed(lines: list[str]) -> Diagnosis:
    found = diagnose(lines)
    assert found is not None
    return found


def shown_by(*lines: str) -> tuple[str, tuple[str, ...]]:
    found = diagnosed(list(lines))
    return found.failure, found.evidence


@each("log", TABLE, ids=lambda log: log.file)
def test_a_whole_log_shows_its_class_and_telling_line(log: Log) -> None:
    lines = read(log.file)
    found = diagnosed(lines)
    assert (found.failure, found.line) == (log.failure, log.line)
    assert log.says in found.text
    assert found.text.strip() in plain(lines[log.line - 1])
    assert found.next_step


@each("file", HEALTHY_LOGS)
def test_a_healthy_log_with_scary_words_shows_nothing(file: str) -> None:
    assert diagnose(read(file)) is None


def test_every_log_is_in_the_table() -> None:
    assert {log.file for log in TABLE} | HEALTHY_LOGS == set(LOGS)


@each(("name", "line"), shown(CAUSES))
def test_a_telling_line_gives_class_and_evidence(name: str, line: str) -> None:
    assert shown_by("starting", f"{line}  \n", "bye") == (name, (line.strip(),))


@each(("name", "line"), [*shown(SYMPTOMS), *shown(BANNERS)])
def test_a_symptom_tells_where_nothing_else_does(name: str, line: str) -> None:
    assert shown_by("starting", line) == (name, (line.strip(),))


@each("line", HEALTHY)
def test_a_healthy_line_shows_nothing(line: str) -> None:
    assert diagnose([line]) is None


@each(
    "prefix",
    [
        "[1,3]<stderr>:",
        "[prterun-b200-07-812@1,3]<stderr>:",
        "3: ",
        "(EngineCore_DP0 pid=65064) ",
        "ERROR 08-15 03:15:55 async_llm_engine.py:56] ",
        "(RayWorkerWrapper pid=812, ip=10.0.0.2) ",
        "[rank3]: ",
        "model_server-1  | ",
        "2026-07-06 23:18:23,723 - ",
        "[09/17/2025-21:24:19] [TRT-LLM] [RANK 2] [E] ",
        "[TensorRT-LLM][ERROR] ",
        "[2026-11-23 06:45:25 DP0 TP3] ",
        "\x1b[31m[1,3]<stderr>:\x1b[0m[09/17/2025-21:24:19] [TRT-LLM] [E] \x1b[1m",
    ],
)
@each("words", ["MemoryError", "torch.OutOfMemoryError", "srun: error: Node failure on n2"])
def test_lines_are_read_through_their_prefixes(prefix: str, words: str) -> None:
    expected = "mpi" if words.startswith("srun") else "oom"
    failure, (evidence,) = shown_by(prefix + words)
    assert failure == expected
    assert words in evidence
    assert "\x1b" not in evidence


def test_every_signature_is_shown_above() -> None:
    lines = [line for table in (CAUSES, SYMPTOMS, BANNERS) for _, line in shown(table)]
    lines += [plain(read(log.file)[log.line - 1]) for log in TABLE]
    patterns = [signature.pattern for signature in SIGNATURES]
    assert [one for one in patterns if not any(map(one.search, lines))] == []


OOM = "RuntimeError: CUDA out of memory"


def test_the_first_cause_wins() -> None:
    port = CAUSES["port_in_use"][0]
    assert shown_by(OOM, port, OOM) == ("oom", (OOM,))
    assert shown_by(port, OOM)[0] == "port_in_use"


def test_nccl_wraps_a_lack_of_memory_unless_that_was_told_before() -> None:
    wrapped = "Executor creation failed with an error which might indicate insufficient GPU memory"
    assert shown_by(wrapped)[0] == "nccl"
    assert shown_by(OOM, wrapped)[0] == "oom"


def test_nothing_known(tmp_path: Path) -> None:
    assert diagnose(["all is well", "a MemoryError in the middle of a line"]) is None
    assert diagnose([]) is None
    log = tmp_path / "stderr.log"
    assert classify_logs([log], "server_died") == ("server_died", (), None)
    log.write_text("starting\n" + next(line for name, line in shown(BANNERS) if name == "unknown"))
    assert classify_logs([log], "server_died")[0] == "server_died"


def test_evidence_is_short_and_shows_the_telling_part() -> None:
    _, (line,) = shown_by("MemoryError " + "x" * 10_000)
    assert len(line) == 300
    bar = "Requesting API: 3%|###       |\r" * 400
    _, (line,) = shown_by(bar + "RuntimeError: CUDA error: device not ready")
    assert len(line) <= 300
    assert line.endswith("device not ready")


def test_what_did_not_fit_is_told_with_the_lack_of_memory() -> None:
    found = diagnosed(read("oom.executor.log"))
    assert [number for number, _ in found.details] == [53, 54, 55]
    assert found.evidence[1:] == (
        "The following component could not be created: KV cache",
        "Total GPU memory (GiB): 178.35",
        "Free GPU memory before component creation attempt (GiB): 1.63",
    )
    assert found.next_step.startswith(
        "KV cache did not fit: lower the KV cache fraction; in general"
    )


def test_the_documented_advice_for_a_lack_of_memory() -> None:
    step = FAILURES["oom"].next_step
    for said in ("0.85 to 0.8", "0.7", "max_batch_size", "max_seq_len", "8K/1K on H200"):
        assert said in step
    assert "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:8192" in step
    assert "Run time OOM issues" in step


causes = st.sampled_from(shown(CAUSES))
lesser = st.sampled_from([line for _, line in [*shown(SYMPTOMS), *shown(BANNERS)]])
healthy = st.sampled_from(HEALTHY)


@settings(max_examples=20)
@given(st.sampled_from(TABLE), st.data())
def test_healthy_lines_anywhere_change_no_class(log: Log, data: st.DataObject) -> None:
    lines = read(log.file)
    before = diagnosed(lines)
    for line in data.draw(st.lists(healthy, max_size=8)):
        lines.insert(data.draw(st.integers(0, len(lines))), line)
    after = diagnosed(lines)
    assert (after.failure, after.evidence) == (before.failure, before.evidence)
    assert after.text in plain(lines[after.line - 1])


@settings(max_examples=30)
@given(causes, st.lists(lesser), st.lists(lesser))
def test_a_symptom_never_wins_over_a_cause(
    cause: tuple[str, str], before: list[str], after: list[str]
) -> None:
    name, line = cause
    assert shown_by(*before, line, *after) == (name, (line.strip(),))


@settings(max_examples=30)
@given(st.lists(st.text()))
def test_any_text_can_be_read(lines: list[str]) -> None:
    found = diagnose(lines)
    assert found is None or found.failure in FAILURES


def test_the_signatures_are_of_classes_that_exist() -> None:
    assert {one.failure for one in SIGNATURES} <= set(FAILURES)


def test_every_class_that_is_raised_exists() -> None:
    files = Path(perfgate.__file__).parent.rglob("*.py")
    calls = re.compile(r'\bRunError\(\s*"(\w+)"')
    raised = {name for file in files for name in calls.findall(file.read_text())}
    assert "disk_full" in raised
    assert raised <= set(FAILURES)


def test_two_ranks_on_one_gpu_are_told_whether_nccl_says_so_first_or_last() -> None:
    for file in ("nccl.one_gpu.log", "nccl.one_gpu_torch.log"):
        found = diagnosed(read(file))
        assert "both on CUDA device" in " ".join(found.evidence)
        assert "a GPU of its own" in found.next_step


def test_the_advice_reaches_those_who_read_a_log_as_a_file() -> None:
    shown = classify_logs([LOGS["oom.two_ranks.log"]])
    assert (shown.failure, len(shown.evidence)) == ("oom", 4)
    assert shown.hint is not None
    assert "KV cache fraction" not in shown.hint
    assert classify_logs([LOGS["healthy.shutdown.log"]], "no_metrics").hint is None


@each(
    ("status", "failure"),
    [(-11, "crash"), (-6, "crash"), (139, "crash"), (134, "crash"), (-9, "killed"), (137, None)]
    + [(-15, "killed"), (0, None), (1, None), (3, None), (None, None)],
)
def test_the_class_of_a_status(status: int | None, failure: str | None) -> None:
    assert class_of_status(status) == failure
