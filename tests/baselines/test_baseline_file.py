"""The file of a baseline: read back as saved, and refused once anything in it was changed."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from building import SUMS, baseline, of_commit, with_answers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sizes import sized
from tables import each

from perfgate.baselines import (
    Baseline,
    BaselineRun,
    Entry,
    Retired,
    Store,
    read,
    suite_store,
)
from perfgate.baselines.file import head_of, read_head
from perfgate.core.errors import InputError
from perfgate.core.metrics import METRICS
from perfgate.engines.base import EngineBuild
from perfgate.engines.build_source import BuildSource

SPEED = "output_throughput"
EXAMPLES = sized(25, 100)
BUILD = EngineBuild("llama.cpp", "1.3.0", "x")
NAME = st.from_regex(r"[A-Za-z0-9_+-][A-Za-z0-9_.+-]{0,20}", fullmatch=True)
WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
VALUE = st.floats(0, 1, allow_nan=False)
METRIC = st.sampled_from([*METRICS, SUMS, "accuracy:gsm8k:exact_match:strict-match"])
TIME = st.datetimes().map(lambda time: time.isoformat(timespec="seconds") + "+00:00")
RUN = st.builds(
    BaselineRun,
    WORDS,
    TIME,
    st.dictionaries(METRIC, VALUE, min_size=1, max_size=3),
    st.dictionaries(WORDS, st.dictionaries(WORDS, st.booleans(), min_size=1), max_size=2),
    st.none() | st.floats(0, 1e6),
    st.none() | st.integers(1, 99),
)
ENTRY = st.builds(
    Entry,
    st.dictionaries(WORDS, WORDS, min_size=1, max_size=3),
    st.lists(RUN, min_size=1, max_size=3).map(tuple),
)
SOURCE = st.builds(
    BuildSource,
    image=st.just("") | WORDS,
    digest=st.just("") | WORDS,
    prefix=st.just("") | WORDS,
    programs=st.dictionaries(WORDS, WORDS, max_size=2),
    settings=st.lists(WORDS, max_size=2).map(tuple),
)
BASELINE = st.builds(
    Baseline,
    scenario=NAME,
    hardware=NAME,
    engine=st.builds(EngineBuild, WORDS, WORDS, NAME),
    accepted_by=WORDS,
    accepted_at=TIME,
    reason=WORDS,
    entries=st.dictionaries(WORDS, ENTRY, min_size=1, max_size=2),
    verdicts=st.dictionaries(WORDS, st.sampled_from(["PASS", "REGRESSION"]), max_size=2),
    change=st.sampled_from(["first", "none", "regression", "improvement"]),
    regression=st.just("") | WORDS,
    retired=st.none() | st.builds(Retired, WORDS, TIME, WORDS),
    source=st.none() | SOURCE,
)


@pytest.fixture
def store(suite_root: Path) -> Store:
    return suite_store()


def edit(path: Path, place: str, value: object) -> Path:
    """Set what stands at keys with dots between; `...` takes it out."""
    plain: Any = json.loads(path.read_text())
    *keys, last = [int(key) if key.isdigit() else key for key in place.split(".")]
    inner = plain
    for key in keys:
        inner = inner[key]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    path.write_text(json.dumps(plain))
    return path


@pytest.mark.nightly
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=EXAMPLES)
@given(value=BASELINE)
def test_reads_back_what_was_saved(
    value: Baseline, suite_root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = Store(tmp_path_factory.mktemp("store")).save(value)
    assert read(path) == value
    assert read(path).file == path
    assert read_head(path) == head_of(read(path))


def test_lies_where_its_content_says_one_value_a_line(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = of_commit("abc123", hardware="8xH200", scenario="deepseek-r1-serve")
    path = store.save(value)
    assert path == store.folder / "8xH200" / "deepseek-r1-serve" / "abc123.json"
    lines = [line.strip() for line in path.read_text().splitlines()]
    assert '"output_throughput": 100.0' in lines
    assert lines.index('"accepted": {') < lines.index('"engine": {')
    path.write_text(json.dumps(json.loads(path.read_text())))  # layout alone is no change
    monkeypatch.chdir(path.parent)
    assert read(Path("abc123.json")) == read(Path("../deepseek-r1-serve/abc123.json")) == value


def test_the_hash_is_that_of_everything_else(store: Store) -> None:
    plain = json.loads(store.save(baseline()).read_text())
    said, entries = plain.pop("hash"), plain.pop("entries")

    def digest(value: object) -> str:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    assert said == digest(plain)
    assert plain["probes"] == {label: digest(entry) for label, entry in entries.items()}


@pytest.mark.nightly
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=EXAMPLES)
@given(data=st.data())
def test_cut_anywhere_it_is_refused_with_its_name(data: st.DataObject, store: Store) -> None:
    path = store.save(baseline(entries={"sums": with_answers({"q×": True, "q2": False})}))
    whole = path.read_bytes()
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 2))])
    try:
        with pytest.raises(InputError, match="restore the file from git") as caught:
            read(path)
        assert caught.value.file == path
    finally:
        path.unlink()


FIRST = "entries.c1.runs.0.metrics"
RETIRED = {"by": "x", "at": "2026-11-05T12:00:00Z", "reason": "y"}
BY_HAND = "the baseline was edited by hand"


@each(
    "place, value, field, problem",
    [
        *(("schema_version", n, "schema_version", "written by an older") for n in (1, 2)),
        *(("schema_version", n, "schema_version", "written by a newer") for n in (4, 99)),
        *(
            ("schema_version", n, "schema_version", "unknown schema ver")
            for n in (0, "3", ..., True)
        ),
        ("entries", ..., "entries", ""),
        ("entries", {}, "entries", ""),
        ("entries.c1.runs", [], "entries.c1.runs", ""),
        ("entries.c1.runs.1.metrics.x", "fast", "entries.c1.runs[1].metrics.x", ""),
        (f"{FIRST}.speed", 3.0, "entries.c1.runs[0].metrics.speed", ""),
        (f"{FIRST}.{SUMS}", 66.7, f"entries.c1.runs[0].metrics.{SUMS}", ""),
        (f"{FIRST}.{SPEED}", -1.0, f"entries.c1.runs[0].metrics.{SPEED}", ""),
        *(
            (f"{FIRST}.{SPEED}", value, f"entries.c1.runs[0].metrics.{SPEED}", "not a finite")
            for value in (float("nan"), float("-inf"))
        ),
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
        ("accepted.change", "none", "hash", BY_HAND),
        ("engine.version", "9.9", "hash", BY_HAND),
        ("retired", RETIRED, "hash", BY_HAND),
        ("hash", "0" * 64, "hash", BY_HAND),
    ],
)
def test_edited_it_is_refused_with_the_field(
    place: str, value: object, field: str, problem: str, suite_root: Path, tmp_path: Path
) -> None:
    """Nor is anything chosen beside an edited head: a changed version or date decides which."""
    store = Store(tmp_path)
    path = edit(store.save(baseline(change="first")), place, value)
    store.save(baseline(engine=EngineBuild("llama.cpp", "1.2.5", "nearer")))
    with pytest.raises(InputError, match=problem or None) as caught:
        read(path)
    assert (caught.value.file, caught.value.field) == (path, field)
    if problem == BY_HAND:
        assert caught.value.hint == f"git checkout -- {path}"
        assert "`perfgate baseline record` and `promote`" in str(caught.value.expected)
    if "written by" in problem:
        assert str(caught.value.expected).startswith("3, ")
        assert (caught.value.hint == "update perfgate") == ("newer" in problem)
    if not place.startswith("entries"):
        with pytest.raises(InputError) as caught:
            store.choose("cpu", "small-serve", BUILD)
        assert caught.value.file == path


@each("content", [b"", b"{", b"[]", b"7", b"{}", b"\xff"])
def test_something_else_is_refused(content: bytes, suite_root: Path, tmp_path: Path) -> None:
    path = Store(tmp_path).save(baseline())
    path.write_bytes(content)
    for reads in (read, read_head):
        with pytest.raises(InputError) as caught:
            reads(path)
        assert caught.value.file == path


@each("first", ['"accepted": {"by": "Grace"}', '"hash": "", "entries": {}'])
def test_a_field_twice_is_refused_though_the_hash_is_right(
    first: str, suite_root: Path, tmp_path: Path
) -> None:
    """Readers of a diff see the one, a parser takes the other."""
    path = Store(tmp_path).save(baseline())
    path.write_text(path.read_text().replace("{", "{" + first + ",", 1))
    with pytest.raises(InputError, match="a field twice") as caught:
        read(path)
    assert caught.value.file == path


@each(
    "place, field",
    [
        ("8xH200/small-serve/abc123", "hardware"),
        ("cpu/other/abc123", "scenario"),
        ("cpu/small-serve/f", "engine.commit"),
    ],
)
def test_misplaced_it_is_refused(place: str, field: str, suite_root: Path, tmp_path: Path) -> None:
    moved = tmp_path / f"{place}.json"
    moved.parent.mkdir(parents=True, exist_ok=True)
    Store(tmp_path).save(baseline()).rename(moved)
    with pytest.raises(InputError, match="is not in the folder of its content") as caught:
        read(moved)
    assert (caught.value.found, caught.value.expected) == (place, "cpu/small-serve/abc123")
    assert (caught.value.file, caught.value.field) == (moved, field)
    with pytest.raises(InputError, match=r"none\.json: no such baseline"):
        read(tmp_path / "none.json")


def test_the_committed_baselines_are_sound() -> None:
    found = [read(path) for path in Store(Path(__file__).parents[2] / "baselines").list()]
    assert found
    assert all(one.change == "first" for one in found if one.scenario == "local-smollm2-serve")
