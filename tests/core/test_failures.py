"""Failure classes: the first cause in a log wins, and healthy lines stay healthy; what a lack of
memory calls for; errors, which name the place, what was found and the next step.
"""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import each, tables_of

import perfgate
from perfgate.core.errors import InputError, MissingProgram, RunError, SeveralInputErrors
from perfgate.core.failures import FAILURES, classify_logs, diagnose, signatures

DATA = Path(__file__).parents[1] / "data"
LOGS = {log.name: log for log in (DATA / "failures").iterdir()}
LOGS |= {f"vllm_cpu/{log.name}": log for log in (DATA / "vllm_cpu").iterdir()}
HEALTHY_LOGS = {name for name in LOGS if "healthy" in name}

# Class → its logs, as [file, number of the telling line, part of it].
TABLE = [(name, *log) for name, logs in tables_of("failure_logs").items() for log in logs]

# Lines of programs by what they tell; of the signatures those that no log of `TABLE` shows.
LINES = tables_of("failure_lines")


def shown(*kinds: str) -> list[tuple[str, str]]:
    tables = [LINES[kind] for kind in kinds]
    return [(name, line) for table in tables for name, lines in table.items() for line in lines]


def read(file: str) -> list[str]:
    return LOGS[file].read_text(encoding="utf-8").splitlines()


def plain(text: str) -> str:
    return re.sub(r"\x1b\[\d+m", "", text)


def diagnosed(lines: list[str]):
    return diagnose(enumerate(lines, start=1))


def shown_by(*lines: str) -> tuple[str, tuple[str, ...]]:
    found = diagnosed(list(lines))
    return found.failure, found.evidence


@each(("failure", "file", "number", "says"), TABLE)
def test_a_whole_log_shows_its_class_and_telling_line(failure, file, number: int, says) -> None:
    lines = read(file)
    found = diagnosed(lines)
    assert (found.failure, found.line) == (failure, number)
    assert says in found.text
    assert found.text.strip() in plain(lines[number - 1])
    assert found.next_step


def test_every_log_is_in_the_table_and_a_healthy_one_with_scary_words_shows_nothing() -> None:
    assert {file for _, file, *_ in TABLE} | HEALTHY_LOGS == set(LOGS)
    for lines in [*map(read, HEALTHY_LOGS), *([line] for line in LINES["healthy"])]:
        assert diagnosed(lines) is None, lines


@each(("name", "line"), shown("causes", "symptoms", "banners"))
def test_a_telling_line_gives_class_and_evidence(name: str, line: str) -> None:
    assert shown_by("starting", f"{line}  \n", "bye") == (name, (line.strip(),))


@each("prefix", LINES["prefixes"])
@each("words", ["MemoryError", "torch.OutOfMemoryError", "srun: error: Node failure on n2"])
def test_lines_are_read_through_their_prefixes(prefix: str, words: str) -> None:
    expected = "mpi" if words.startswith("srun") else "oom"
    failure, (evidence,) = shown_by(prefix + words)
    assert failure == expected
    assert words in evidence
    assert "\x1b" not in evidence


def test_every_signature_is_shown_above() -> None:
    lines = [line for _, line in shown("causes", "symptoms", "banners")]
    lines += [plain(read(file)[number - 1]) for _, file, number, _ in TABLE]
    patterns = [signature.pattern for signature in signatures()]
    assert [one for one in patterns if not any(map(one.search, lines))] == []
    assert {one.failure for one in signatures()} <= set(FAILURES)


OOM = "RuntimeError: CUDA out of memory"


def test_the_first_cause_wins_but_nccl_wraps_a_lack_of_memory() -> None:
    port = LINES["causes"]["port_in_use"][0]
    assert shown_by(OOM, port, OOM) == ("oom", (OOM,))
    assert shown_by(port, OOM)[0] == "port_in_use"
    wrapped = "Executor creation failed with an error which might indicate insufficient GPU memory"
    assert shown_by(wrapped)[0] == "nccl"
    assert shown_by(OOM, wrapped)[0] == "oom"


def test_nothing_known(tmp_path: Path) -> None:
    assert diagnosed(["all is well", "a MemoryError in the middle of a line"]) is None
    assert diagnosed([]) is None
    log = tmp_path / "stderr.log"
    assert classify_logs([log], "server_died") == ("server_died", (), None)
    log.write_text("starting\n" + LINES["banners"]["unknown"][0])
    assert classify_logs([log], "server_died")[0] == "server_died"


def test_evidence_is_short_and_shows_the_telling_part() -> None:
    _, (line,) = shown_by("MemoryError " + "x" * 10_000)
    assert len(line) == 300
    bar = "Requesting API: 3%|###       |\r" * 400
    _, (line,) = shown_by(bar + "RuntimeError: CUDA error: device not ready")
    assert len(line) <= 300
    assert line.endswith("device not ready")


lesser = st.sampled_from([line for _, line in shown("symptoms", "banners")])


@settings(max_examples=20)
@given(st.sampled_from(TABLE), st.data())
def test_healthy_lines_anywhere_change_no_class(log: tuple[str, ...], data: st.DataObject) -> None:
    lines = read(log[1])
    before = diagnosed(lines)
    for line in data.draw(st.lists(st.sampled_from(LINES["healthy"]), max_size=8)):
        lines.insert(data.draw(st.integers(0, len(lines))), line)
    after = diagnosed(lines)
    assert (after.failure, after.evidence) == (before.failure, before.evidence)
    assert after.text in plain(lines[after.line - 1])


@settings(max_examples=30)
@given(st.sampled_from(shown("causes")), st.lists(lesser), st.lists(lesser))
def test_a_symptom_never_wins_over_a_cause(cause, before: list[str], after: list[str]) -> None:
    name, line = cause
    assert shown_by(*before, line, *after) == (name, (line.strip(),))


@settings(max_examples=30)
@given(st.lists(st.text()))
def test_any_text_can_be_read(lines: list[str]) -> None:
    found = diagnosed(lines)
    assert found is None or found.failure in FAILURES


def test_every_class_that_is_raised_exists() -> None:
    files = Path(perfgate.__file__).parent.rglob("*.py")
    calls = re.compile(r'\bRunError\(\s*"(\w+)"')
    raised = {name for file in files for name in calls.findall(file.read_text())}
    assert "disk_full" in raised
    assert raised <= set(FAILURES)


@each("file", ["nccl.one_gpu.log", "nccl.one_gpu_torch.log"])
def test_two_ranks_on_one_gpu_are_told_whether_nccl_says_so_first_or_last(file: str) -> None:
    found = diagnosed(read(file))
    assert "both on CUDA device" in " ".join(found.evidence)
    assert "a GPU of its own" in found.next_step
    assert classify_logs([LOGS[file]]) == (found.failure, found.evidence, found.next_step)
    assert classify_logs([LOGS["healthy.shutdown.log"]], "no_metrics")[2] is None


# The next step after a lack of memory

GENERAL = FAILURES["oom"].next_step
FRACTION = "KV cache fraction"
WORLD = "[TensorRT-LLM][INFO] MPI size: 16, MPI local size: {local}, rank: 0"
USES = "[TensorRT-LLM][INFO] Rank {rank} is using GPU 0"
OWN = "Including non-PyTorch memory, this process has 60.00 GiB memory in use."
OTHER = f"Process 12 has 39.00 GiB memory in use. {OWN}"


def step(*lines: str) -> str:
    found = diagnosed([*lines])
    assert found.failure == "oom"
    return found.next_step


def torch(processes: str, tried: str = "1.00 GiB", prefix: str = "", gpu: int = 3) -> str:
    return (
        f"{prefix}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried}. GPU {gpu} "
        f"has a total capacity of 100.00 GiB of which 0.50 GiB is free. {processes}"
    )


def test_the_documented_advice_for_a_lack_of_memory() -> None:
    for said in ("0.85 to 0.8", "0.7", "max_batch_size", "max_seq_len", "8K/1K on H200"):
        assert said in GENERAL
    assert "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:8192" in GENERAL
    assert "Run time OOM issues" in GENERAL


def test_what_did_not_fit_is_told_with_the_lack_of_memory() -> None:
    found = diagnosed(read("oom.executor.log"))
    assert [number for number, _ in found.details] == [53, 54, 55]
    assert found.evidence[1:] == (
        "The following component could not be created: KV cache",
        "Total GPU memory (GiB): 178.35",
        "Free GPU memory before component creation attempt (GiB): 1.63",
    )


@each("file, begins, says, blames_a_setting", LINES["logs"])
def test_the_advice_for_a_whole_log(file: str, begins: str, says: str, blames_a_setting) -> None:
    said = step(*read(f"oom.{file}.log"))
    assert said.startswith(begins)
    assert says in said
    assert (FRACTION in said) == blames_a_setting
    assert ("shared" in said) == (file == "foreign_process")


@each(
    ("processes", "tried"),
    [
        (OWN, "1.00 GiB"),
        ("Process 12 has 99.00 GiB memory in use.", "1.00 GiB"),  # itself, seen from a container
        (f"Process 12 has 270.00 MiB memory in use. {OWN}", "40.00 MiB"),  # a display
        (f"Process 12 has 4.00 GiB memory in use. {OWN}", "8.00 GiB"),  # not enough to matter
    ],
)
def test_nobody_is_blamed_who_is_not_at_fault(processes: str, tried: str) -> None:
    assert step(torch(processes, tried)) == GENERAL


def test_of_processes_that_are_all_named_by_number_one_is_the_program_itself() -> None:
    both = "Process 7 has 60.00 GiB memory in use. Process 8 has 39.00 GiB memory in use."
    assert step(torch(both)).startswith("GPU 3 is shared: process 8 had 39.00 GiB of it")


@each("prefix", ["[1,{}]<stderr>:", "[rank{}]: ", "{}: ", "[rank2]: ", ""])
def test_ranks_are_known_by_what_the_launcher_puts_before_their_lines(prefix: str) -> None:
    said = step(*(torch(OTHER, prefix=prefix.format(rank)) for rank in (2, 6)))
    assert said.startswith("ranks 2 and 6 are on one GPU") == ("{}" in prefix)
    assert said.startswith("GPU 3 is shared") != ("{}" in prefix)


def test_the_same_number_of_a_gpu_on_two_nodes_is_another_gpu() -> None:
    lines = [torch(OTHER, prefix=f"[rank{rank}]: ", gpu=0) for rank in (0, 8)]
    assert step(WORLD.format(local=8), *lines).startswith("GPU 0 is shared")
    uses = [USES.format(rank=rank) for rank in (0, 8)]
    assert step(WORLD.format(local=8), *uses, OOM) == GENERAL
    assert step(WORLD.format(local=16), *uses, OOM).startswith("ranks 0 and 8")


def test_ranks_that_name_one_gpu_and_find_nobody_on_it_each_have_their_own() -> None:
    """CUDA_VISIBLE_DEVICES may give each rank one GPU, which it then calls GPU 0."""
    uses = [USES.format(rank=rank) for rank in (0, 1)]
    alone = torch("Process 12 has 99.00 GiB memory in use.", gpu=0)
    assert step(WORLD.format(local=8), *uses, alone) == GENERAL


@each(("component", "advice", "is_general_too"), LINES["components"])
def test_the_advice_fits_the_component(component: str, advice: str, is_general_too: bool) -> None:
    cause = "RuntimeError: Executor creation failed due to insufficient GPU memory."
    said = step(cause, "", f"The following component could not be created: {component}")
    assert advice in said.partition("; in general")[0]
    assert said.endswith(GENERAL) == is_general_too
    assert (FRACTION in said) == is_general_too


# Errors

WHOLE = InputError(
    "wrong", file=Path("a"), line=7, field="b[0].c", found="'8'", expected="0 or more", hint="mend"
)


@each(
    ("error", "text"),
    [
        (WHOLE, "a:7: b[0].c: wrong\n  found: '8'\n  expected: 0 or more\n  fix: mend"),
        (InputError("wrong", file=Path("a")), "a: wrong"),
        (InputError("wrong", field="--by"), "--by: wrong"),
        (InputError("wrong", found=0), "wrong\n  found: 0"),
        (InputError("wrong", found=""), "wrong\n  found: "),
    ],
)
def test_an_input_error_names_place_found_expected_and_fix_where_they_apply(error, text) -> None:
    assert str(error) == text


def test_several_errors_are_told_at_once() -> None:
    error = SeveralInputErrors([InputError("one", found=1), InputError("two")])
    assert str(error) == "one\n  found: 1\ntwo"
    assert [one.problem for one in error.errors] == ["one", "two"]


def test_a_run_error_shows_evidence_and_the_next_step_of_its_class() -> None:
    error = RunError("oom", "the server ended", evidence=("CUDA out of memory",))
    assert str(error) == (
        f"oom: the server ended\n  | CUDA out of memory\n  next step: {FAILURES['oom'].next_step}"
    )
    assert str(RunError("oom", "it ended", hint="use 8 GPUs")).endswith("next step: use 8 GPUs")
    with pytest.raises(KeyError):  # a class that does not exist is a bug
        RunError("no_such_class", "it ended")


def test_what_was_found_is_redacted_and_the_sentence_is_not() -> None:
    field, expected = "environment.HF_TOKEN", "password: text\x1b"
    error = InputError("HF_TOKEN: must be text", field=field, found="opaque", expected=expected)
    told = "environment.HF_TOKEN: HF_TOKEN: must be text\n  found: ***\n  expected: password: text"
    assert str(error) == f"{told}\\x1b"
    assert "https://***@hub" in str(InputError("no answer", found="https://a:b@hub"))


def test_message_and_evidence_of_a_run_error_are_redacted() -> None:
    error = RunError("hang", "no answer of https://a:b@hub", evidence=("password=c\x07", "d"))
    assert error.message == "no answer of https://***@hub"
    assert error.evidence == ("password=***", "d")
    assert "password=***" in str(error)
    assert "abc" not in str(MissingProgram("not found on PATH (/bin:TOKEN=abc)"))


def test_an_error_that_keeps_more_can_be_raised_again_for_another_place() -> None:
    class Kept(InputError):
        def __init__(self) -> None:
            self.status = 2
            super().__init__("no such build", found="this", hint="name another")

    again = InputError(**{**Kept().arguments, "field": "--ab"})
    assert str(again) == "--ab: no such build\n  found: this\n  fix: name another"
