"""A store of baselines: one file a commit, read back as saved and refused once anything in it was
changed; questions once for all; nothing half-written, and nothing lost by two who change it."""

import base64
import errno
import fcntl
import hashlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from random import Random
from typing import Any

import pytest
from building import SUMS, baseline, entry, of_commit, with_answers
from life import METRIC as SPEED
from refusals import refused
from sizes import sized
from tables import each

from perfgate import baselines
from perfgate.baselines import BaselineRun, Entry, Retired, Store, read, suite_store
from perfgate.baselines.baseline import BuildSource
from perfgate.baselines.decisions import retire
from perfgate.baselines.file import head_of, read_head
from perfgate.baselines.questions import questions_of, unpacked
from perfgate.core.errors import InputError
from perfgate.core.plain import to_plain
from perfgate.engines.base import EngineBuild
from perfgate.judging import acceptance

HERE = Path(__file__).parent
GSM8K = [f"accuracy:gsm8k:exact_match:{name}" for name in ("strict-match", "flexible-extract")]
BUILD = EngineBuild("llama.cpp", "1.3.0", "fed987")
WRONG_CLOCKS = Retired("Ada", "2026-11-06T08:00:00Z", "wrong clocks")


@pytest.fixture
def store(suite_root: Path) -> Store:
    return suite_store()


def chosen(store: Store) -> Any:
    return store.choose("cpu", "small-serve", BUILD)


def digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


# The file. ---------------------------------------------------------------------------------------
ODD = "é\u2028\x00\x1f ' \"\\{}\U0001f600"
AT = "1999-12-31T23:59:59+00:00"
ANSWERS = {ODD: {ODD: True, "q": False}}
ODDLY = BaselineRun(ODD, AT, {SPEED: 5e-324, SUMS: 0.1 + 0.2}, ANSWERS, 1e6, 99)
WITH_ALL = baseline(
    engine=EngineBuild(ODD, ODD, "a-b.c+d_1"),
    accepted_by=ODD,
    accepted_at=AT,
    reason=ODD,
    entries={ODD: Entry({ODD: ODD}, (ODDLY, ODDLY)), "c1": entry(1.0)},
    verdicts={ODD: "PASS", "c1": "REGRESSION"},
    change="regression",
    regression=ODD,
    retired=Retired(ODD, AT, ODD),
    source=BuildSource(ODD, ODD, ODD, ODD, {ODD: ODD}, (ODD,)),
)


@each("value", [baseline(), WITH_ALL], ids=["few fields", "all fields"])
def test_reads_back_what_was_saved_and_cut_anywhere_it_is_refused(value, tmp_path) -> None:
    path = Store(tmp_path).save(value)
    assert (read(path), read(path).file) == (value, path)
    assert read_head(path) == head_of(read(path))
    whole = path.read_bytes()
    for size in (*range(0, len(whole) - 2, 11), len(whole) - 2):
        path.write_bytes(whole[:size])
        assert refused(read, path, match="restore the file from git").file == path


def test_lies_where_its_content_says_one_value_a_line_with_its_hash(store, monkeypatch) -> None:
    value = of_commit("abc123", hardware="8xH200", scenario="deepseek-r1-serve")
    path = store.save(value)
    assert path == store.folder / "8xH200" / "deepseek-r1-serve" / "abc123.json"
    lines = [line.strip() for line in path.read_text().splitlines()]
    assert '"output_throughput": 100.0' in lines
    assert lines.index('"accepted": {') < lines.index('"engine": {')
    plain = json.loads(path.read_text())
    path.write_text(json.dumps(plain))  # layout alone is no change
    monkeypatch.chdir(path.parent)
    assert read(Path("abc123.json")) == read(Path("../deepseek-r1-serve/abc123.json")) == value
    said, entries = plain.pop("hash"), plain.pop("entries")
    assert said == digest(plain)
    assert plain["probes"] == {label: digest(entry) for label, entry in entries.items()}


def edit(path: Path, place: str, value: object) -> Path:
    """Set what stands at keys with dots between; `...` takes it out."""
    plain: Any = json.loads(path.read_text())
    *keys, last = [int(key) if key.isdigit() else key for key in place.split(".")]
    inner = plain
    for key in keys:
        inner = inner[key]
    inner[last] = value
    if value is ...:
        del inner[last]
    path.write_text(json.dumps(plain))
    return path


FIRST, IN_FIRST = "entries.c1.runs.0.metrics", "entries.c1.runs[0].metrics"
RETIRED = {"by": "x", "at": "2026-11-05T12:00:00Z", "reason": "y"}
BY_HAND = "the baseline was edited by hand"
VERSIONS = (
    ("written by an older", (1, 2)),
    ("written by a newer", (4, 99)),
    ("unknown schema ver", (0, "3", ..., True)),
)


@each(
    "place, value, field, problem",
    [
        *(("schema_version", n, "schema_version", text) for text, some in VERSIONS for n in some),
        ("entries", ..., "entries", ""),
        ("entries", {}, "entries", ""),
        ("entries.c1.runs", [], "entries.c1.runs", ""),
        ("entries.c1.runs.1.metrics.x", "fast", "entries.c1.runs[1].metrics.x", ""),
        (f"{FIRST}.speed", 3.0, f"{IN_FIRST}.speed", ""),
        (f"{FIRST}.{SUMS}", 66.7, f"{IN_FIRST}.{SUMS}", ""),
        (f"{FIRST}.{SPEED}", -1.0, f"{IN_FIRST}.{SPEED}", ""),
        (f"{FIRST}.{SPEED}", float("nan"), f"{IN_FIRST}.{SPEED}", "not a finite"),
        ("accepted.by", "", "accepted.by", ""),
        ("accepted.at", "yesterday", "accepted.at", ""),
        ("accepted.at", "2026-11-05T12:00:00+02:00", "accepted.at", ""),
        ("accepted.change", ..., "accepted.change", ""),
        ("accepted.change", "better", "accepted.change", ""),
        ("engine.colour", "red", "engine.colour", ""),
        ("hash", ..., "hash", ""),
        ("verdicts", ..., "verdicts", ""),
        ("verdicts.c1", "ERROR", "verdicts.c1", ""),
        ("retired", {"by": "Ada"}, "retired.at", ""),
        (f"{FIRST}.{SPEED}", 100.1, "entries.c1", BY_HAND),
        ("entries.c1.runs.1", ..., "entries.c1", BY_HAND),
        ("entries.c1.fingerprint.cpu", "Xeon", "entries.c1", BY_HAND),
        ("probes.c1", "0" * 64, "hash", BY_HAND),
        ("accepted.by", "Grace", "hash", BY_HAND),
        ("engine.version", "9.9", "hash", BY_HAND),
        ("retired", RETIRED, "hash", BY_HAND),
        ("hash", "0" * 64, "hash", BY_HAND),
    ],
)
def test_edited_it_is_refused(place, value, field, problem, suite_root, tmp_path) -> None:
    """Nor is anything chosen beside an edited head: a changed version or date decides which."""
    store = Store(tmp_path)
    path = edit(store.save(baseline(change="first")), place, value)
    store.save(baseline(engine=EngineBuild("llama.cpp", "1.2.5", "nearer")))
    error = refused(read, path, match=problem)
    assert (error.file, error.field) == (path, field)
    if problem == BY_HAND:
        assert error.hint == f"git checkout -- {path}"
        assert "`perfgate baseline record` and `promote`" in str(error.expected)
    if "written by" in problem:
        assert str(error.expected).startswith("3, ")
        assert (error.hint == "update perfgate") == ("newer" in problem)
    if not place.startswith("entries"):
        assert refused(chosen, store).file == path


def test_something_else_is_refused(suite_root, tmp_path) -> None:
    path = Store(tmp_path).save(baseline())
    text = path.read_text()
    for content in (b"", b"{", b"[]", b"7", b"{}", b"\xff"):
        path.write_bytes(content)
        for reads in (read, read_head):
            assert refused(reads, path).file == path
    # A field twice, though the hash is right: readers of a diff see the one, a parser the other.
    for first in ('"accepted": {"by": "Grace"}', '"hash": "", "entries": {}'):
        path.write_text(text.replace("{", "{" + first + ",", 1))
        assert refused(read, path, match="a field twice").file == path


@each(
    "place, field",
    [("8xH200/small-serve/abc123", "hardware"), ("cpu/other/abc123", "scenario"),
     ("cpu/small-serve/f", "engine.commit")],
)  # fmt: skip
def test_misplaced_it_is_refused(place, field, suite_root, tmp_path) -> None:
    moved = tmp_path / f"{place}.json"
    moved.parent.mkdir(parents=True, exist_ok=True)
    Store(tmp_path).save(baseline()).rename(moved)
    error = refused(read, moved, match="is not in the folder of its content")
    assert (error.found, error.expected) == (place, "cpu/small-serve/abc123")
    assert (error.file, error.field) == (moved, field)
    refused(read, tmp_path / "none.json", match=r"none\.json: no such baseline")


def test_the_committed_baselines_are_sound() -> None:
    found = [read(path) for path in Store(HERE.parents[1] / "baselines").list()]
    assert found
    assert all(one.change == "first" for one in found if one.scenario == "local-smollm2-serve")


# The store. --------------------------------------------------------------------------------------


def test_one_file_a_commit_and_no_drafts(store, suite_root, tmp_path) -> None:
    paths = [store.save(of_commit(commit)) for commit in ("bbb", "aaa")]
    for name in (".abc123.json.x7", ".hidden.json", "abc123.json~"):
        (paths[0].parent / name).write_text("{")
    assert store.list() == sorted(paths)
    assert store.folder == suite_root / "baselines"
    assert baselines.candidate_store().folder == tmp_path / "home" / "candidates"
    assert baselines.own_store().folder == tmp_path / "home" / "baselines"


def test_the_same_commit_keeps_its_other_entries_and_its_level(store) -> None:
    old = {"c1": entry(1.0), "c4": entry(4.0)}
    store.save(baseline(entries=old, change="regression", regression="safer sampling"))
    newer = {"c4": entry(5.0), "sums": entry(0.5)}
    found = read(store.save(baseline(entries=newer, accepted_by="Grace", change="none")))
    assert found.entries == {"c1": entry(1.0), **newer}
    assert (found.accepted_by, found.change) == ("Grace", "regression")
    assert found.regression == "safer sampling"
    # But nothing of a retired one.
    store.save(of_commit("e", retired=WRONG_CLOCKS, change="regression", regression="x"))
    found = read(store.save(of_commit("e", entries={"c4": entry(9.0)})))
    assert (set(found.entries), found.retired, found.change) == ({"c4"}, None, "none")


def test_an_empty_folder_has_nothing_to_choose(store) -> None:
    store.path("cpu", "small-serve", "x").parent.mkdir(parents=True)
    assert store.list() == []
    assert store.anchor("cpu", "small-serve", BUILD) is chosen(store) is None
    store.save(baseline())
    for place in (("8xH200", "small-serve"), ("cpu", "other")):
        assert store.choose(*place, BUILD) is None


def test_a_broken_file_is_told_and_stays_and_so_is_a_candidate_put_there_by_hand(store) -> None:
    store.save(baseline())
    broken = store.save(of_commit("other"))
    broken.write_text("{")
    assert refused(chosen, store, match="not JSON").file == broken
    refused(store.save, of_commit("other"))
    assert broken.read_text() == "{"
    broken.unlink()
    path = store.save(of_commit("candidate", accepted_by=baselines.NOBODY))
    error = refused(chosen, store, match="no person has accepted")
    assert (error.file, error.field) == (path, "accepted.by")


@each("part", ["..", ".", "", "a/b", "/etc", ".hidden", "a b", "a\n", "a\0"])
def test_a_name_cannot_leave_the_store(store, part) -> None:
    why = "cannot be part of a baseline's file name"
    for place in ((part, "s", "c"), ("h", part, "c"), ("h", "s", part)):
        refused(store.path, *place, match=why)
    for one in (of_commit("anchor"), baseline(scenario=part)):
        refused(store.save, one, match=why)
    assert store.list() == []


def test_only_what_is_compared_with_is_read_in_full(store, monkeypatch) -> None:
    for number in range(40):
        engine = EngineBuild("llama.cpp", f"1.{number}", f"c{number}")
        store.save(baseline(engine=engine, entries={"c1": entry(*map(float, range(1, 6)))}))
    asked: list[str] = []
    monkeypatch.setattr(baselines.store, "read", lambda path: asked.append(path.stem) or read(path))
    found = store.choose("cpu", "small-serve", EngineBuild("llama.cpp", "2.0", "x"))
    assert len(found.window) == 40
    assert len(found.entry("c1").runs) == 30
    assert found.entry("c64") is None
    assert asked == ["c39", "c38", "c37", "c36", "c35", "c34"]


def test_a_file_that_changed_is_read_again_though_size_and_time_are_as_before(store) -> None:
    path = store.save(of_commit("a", reason="first"))
    assert chosen(store) is not None
    seen, content = path.stat(), path.read_text()
    path.write_text(content.replace('"reason": "first"', '"reason": "secon"'))
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert path.stat().st_size == seen.st_size
    refused(chosen, store, match="edited by hand")
    # Edited numbers are refused where they are used.
    path.write_text(content.replace("101.0", "110.0"))
    error = refused(chosen, store, match="edited by hand")
    assert (error.file, error.field) == (path, "entries.c1")


@each(
    "stored, measured, differing",
    [
        ({}, {"boost_slider": "0"}, ()),
        ({"boost_slider": "0"}, {}, ()),
        ({"boost_slider": "0"}, {"boost_slider": "4"}, ("boost_slider: measured 4, baseline 0",)),
        # Baselines without commands are of runs without.
        ({}, {"before": "set it"}, ("before: measured set it, baseline none",)),
        ({"after": "unset it"}, {}, ("after: measured none, baseline unset it",)),
        ({"content": "a", "cpu": "Grace"}, {"cpu": "Xeon", "driver": "570.1"},
         ("content: measured none, baseline a", "cpu: measured Xeon, baseline Grace",
          "driver: measured 570.1, baseline none")),
    ],
)  # fmt: skip
def test_facts_that_differ_are_told_of_both_sides(stored, measured, differing) -> None:
    assert Entry(stored, ()).differences(measured) == differing


# Questions. --------------------------------------------------------------------------------------
TWO = {"sums": with_answers({"q1": True, "q2": False})}


def evaluations(seed: int = 1) -> Entry:
    """Evaluations of GSM8K: its questions by the hashes that lm_eval gives them."""
    random = Random(seed)
    keys = [f"{digest(f'question {one}')}:{digest(f'answer {one}')}" for one in range(1319)]
    random.shuffle(keys)
    runs = []
    for night in (1, 2, 3):
        answers = {metric: {key: random.random() < 0.95 for key in keys} for metric in GSM8K}
        scores = {metric: sum(given.values()) / len(keys) for metric, given in answers.items()}
        started = f"2026-11-{night:02d}T02:00:00+00:00"
        runs.append(BaselineRun(f"nightly-{night}", started, scores, answers, 812.4, 1))
    return Entry({"content": "0123456789abcdef", "evaluator": "lm_eval 0.4.13"}, tuple(runs))


def question_file(store: Store) -> Path:
    (path,) = (store.folder / "questions").glob("*/*.json")
    return path


@each(
    "text, problem",
    [(text, "one bit for each") for text in ("gA==", "gAA=", "/w==", "")]
    + [(text, "not base64") for text in ("g", "gÄ==")],
)
def test_what_is_not_a_bit_a_question_is_refused(text, problem) -> None:
    refused(unpacked, text, tuple("abcdefghi" if text == "gA==" else "abc"), match=problem)


def test_three_evaluations_of_gsm8k_take_little_and_commits_share_them(store) -> None:
    path = store.save(baseline(entries={"gsm8k": evaluations()}))
    store.save(of_commit("b", entries={"gsm8k": evaluations(seed=2)}))
    refused(store.save, baseline(hardware="questions"), match="cannot be a hardware's label")
    assert path.stat().st_size <= 10_000
    found = read(path).entries
    assert found == {"gsm8k": evaluations()}
    answers = found["gsm8k"].runs[0].answers[GSM8K[0]]
    assert list(answers) == sorted(answers)
    assert to_plain(answers) == dict(answers)
    assert all(isinstance(answer, bool) for answer in answers.values())
    shared = question_file(store)
    plain = json.loads(shared.read_text())
    assert (shared.parent.name, plain["questions"]) == ("gsm8k", list(answers))
    assert shared.stem == digest({"questions": plain["questions"], "task": "gsm8k"})


def test_another_version_of_the_task_is_another_file(store) -> None:
    for commit, last in (("a", "q2"), ("b", "q3")):
        one = with_answers({"q1": True, last: False})
        path = store.save(of_commit(commit, entries={"s": one}))
        (told,) = json.loads(path.read_text())["entries"]["s"]["runs"][0]["answers"].values()
        assert (told["task"], told["count"]) == ("sums", 2)
        assert base64.b64decode(told["right"]) == bytes([0b10000000])
        assert read(path).entries["s"].runs[0].answers[SUMS] == {"q1": True, last: False}
    assert len(list((store.folder / "questions" / "sums").iterdir())) == 2


@each("metric", ["x", "../../etc", "accuracy:a/b:c:d", ".", "", "é"])
def test_any_metric_has_a_folder_of_its_own_below_the_store(metric) -> None:
    file = questions_of(metric, ["q"]).file(Path("/store"))
    assert file.parent.parent == Path("/store/questions")
    assert file.parent.name.strip(".")


@each(
    "change, problem",
    [
        (None, "answers belong to are missing"),
        (lambda plain: plain["questions"].append("q3"), "was edited by hand"),
        (lambda plain: plain["questions"].reverse(), "was edited by hand"),
        (lambda plain: plain.update(task="other"), "was edited by hand"),
    ],
)
def test_altered_questions_are_refused(change, problem, suite_root, tmp_path) -> None:
    store = Store(tmp_path)
    path = store.save(baseline(entries=TWO))
    read(path)  # what was read before is not believed
    file = question_file(store)
    plain = json.loads(file.read_text())
    file.unlink()
    if change is not None:
        change(plain)
        file.write_text(json.dumps(plain))
    error = refused(read, path, match=problem)
    assert error.file == file
    assert f"git checkout -- {file}" in str(error.hint)
    assert read(store.save(of_commit("b", entries=TWO))).entries == TWO


# Two at once, and a kill. ------------------------------------------------------------------------


def candidate(label: str, value: float = 50.0) -> Path:
    one = baseline(entries={label: entry(value)}, accepted_by="nobody yet")
    return Store(baselines.candidate_store().folder / label).save(one)


@pytest.mark.parametrize("retires", [False, True])
def test_two_changes_at_once_lose_nothing(retires, suite_root, monkeypatch) -> None:
    """A retirement is of what is there when its turn comes, and keeps what was added."""
    first, second, third = map(candidate, ("c1", "c4", "c8"))
    path = acceptance.promote(third, by="Ada", reason="c8").file
    act, target = (retire, path) if retires else (acceptance.promote, second)
    beside = threading.Thread(target=act, args=(target,), kwargs={"by": "Grace", "reason": "why"})
    unlike = acceptance.unlike_machines

    def pausing(*arguments: Any) -> tuple[str, ...]:
        """Another thread tries when the first has read and not yet written."""
        if beside.ident is None:  # once, and with the time that it takes where nothing waits
            beside.start()
            beside.join(1.0)
        return unlike(*arguments)

    monkeypatch.setattr(acceptance, "unlike_machines", pausing)
    acceptance.promote(first, by="Ada", reason="c1")
    beside.join()
    assert set(read(path).entries) == {"c1", "c8"} | (set() if retires else {"c4"})
    assert (read(path).retired is not None) is retires


def test_one_process_at_a_time(store, monkeypatch) -> None:
    monkeypatch.setattr(baselines.store_lock, "WAIT_S", 0.1)
    accept = {"by": "Ada", "reason": "x"}
    with store.changing():
        path = store.save(baseline())  # who is in it may write
        before = path.read_bytes()
        why = "another process is changing the baselines"
        refused(acceptance.promote, candidate("c4", 110.0), match=why, **accept)
        assert path.read_bytes() == before
    assert acceptance.promote(candidate("c4", 110.0), **accept).written
    assert [one.name for one in store.folder.iterdir()] == ["cpu"]  # git tracks this folder


@pytest.mark.parametrize("code", [errno.EBADF, errno.ENOLCK])
def test_where_a_folder_cannot_be_locked_a_file_of_the_store_is(store, monkeypatch, code) -> None:
    """As NFS answers (flock(2)): a folder cannot be opened to write."""
    flock = fcntl.flock

    def as_nfs(descriptor: int, how: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").is_dir():
            raise OSError(code, os.strerror(code))
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", as_nfs)
    monkeypatch.setattr(baselines.store_lock, "WAIT_S", 0.1)
    here, alone_in = store.folder, baselines.store_lock.alone_in
    with alone_in(here):
        with pytest.raises(InputError, match="another process"), alone_in(here):
            pass
        with alone_in(here.parent):
            pass
    with alone_in(here):
        pass


def test_what_is_no_draft_stays(store) -> None:
    folder = store.save(baseline()).parent
    kept = {".abc123.json.swp", ".gitignore", "note.json.abcdefgh", ".x.json.UPPERCASE", ".x.json."}
    for name in kept | {".abc123.json.k3j_9abz", ".abc123.json.0123456789ab"}:
        (folder / name).touch()
    assert len(store.of_scenario("cpu", "small-serve")) == 1
    with store.changing():
        pass
    assert {one.name for one in folder.iterdir()} == kept | {"abc123.json"}


@pytest.mark.nightly
def test_killed_at_each_step_it_leaves_the_old_or_the_new(suite_root, tmp_path) -> None:
    counts = map(str, (sized(4, 1), sized(5, 20)))
    argv = [sys.executable, HERE / "killed_promotion.py", tmp_path, *counts]
    env = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
