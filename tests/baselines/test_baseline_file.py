import base64
import hashlib
import json
from collections.abc import Callable
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
from perfgate.core.errors import InputError
from perfgate.core.metrics import METRICS
from perfgate.engines.base import EngineBuild
from perfgate.engines.build_source import BuildSource

SPEED = "output_throughput"
EXAMPLES = sized(25, 100)
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


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    plain = json.loads(path.read_text())
    change(plain)
    path.write_text(json.dumps(plain))
    return path


def at(place: str, value: object) -> Callable[[dict[str, Any]], object]:
    """Sets what stands at keys with dots between; `...` takes it out."""
    *keys, last = [int(key) if key.isdigit() else key for key in place.split(".")]

    def change(plain: Any) -> None:
        for key in keys:
            plain = plain[key]
        if value is ...:
            del plain[last]
        else:
            plain[last] = value

    return change


@pytest.mark.nightly
class TestOneFile:
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=EXAMPLES)
    @given(value=BASELINE)
    def test_reads_back_what_was_saved(
        self, value: Baseline, suite_root: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        path = Store(tmp_path_factory.mktemp("store")).save(value)
        assert read(path) == value
        assert read(path).file == path

    def test_answers_are_truth_values_again(self, store: Store) -> None:
        value = baseline(entries={"sums": with_answers({"q1": True, "q2": False})})
        path = store.save(value)
        (told,) = json.loads(path.read_text())["entries"]["sums"]["runs"][0]["answers"].values()
        assert (told["task"], told["count"]) == ("sums", 2)
        assert base64.b64decode(told["right"]) == bytes([0b10000000])
        answers = read(path).entries["sums"].runs[0].answers[SUMS]
        assert (answers["q1"], answers["q2"]) == (True, False)
        assert all(isinstance(answer, bool) for answer in answers.values())

    def test_lies_where_hardware_scenario_and_commit_say(self, store: Store) -> None:
        value = of_commit("abc123", hardware="8xH200", scenario="deepseek-r1-serve")
        assert store.save(value) == store.folder / "8xH200" / "deepseek-r1-serve" / "abc123.json"

    def test_has_one_value_a_line_in_a_fixed_order(self, store: Store) -> None:
        lines = [line.strip() for line in store.save(baseline()).read_text().splitlines()]
        assert '"output_throughput": 100.0' in lines
        assert lines.index('"accepted": {') < lines.index('"engine": {')

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=EXAMPLES)
    @given(data=st.data())
    def test_cut_anywhere_it_is_refused_with_its_name(
        self, data: st.DataObject, store: Store
    ) -> None:
        path = store.save(baseline(entries={"sums": with_answers({"q×": True, "q2": False})}))
        whole = path.read_bytes()
        path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 2))])
        try:
            with pytest.raises(InputError, match="restore the file from git") as caught:
                read(path)
            assert caught.value.file == path
        finally:
            path.unlink()

    @each(("version", "writer"), [(1, "older"), (2, "older"), (4, "newer"), (99, "newer")])
    def test_one_of_another_perfgate_is_refused(
        self, store: Store, version: int, writer: str
    ) -> None:
        path = edit(store.save(baseline(), merge=False), at("schema_version", version))
        for reads in (lambda: read(path), lambda: store.heads("cpu", "small-serve")):
            with pytest.raises(InputError, match=f"baseline written by an? {writer}") as caught:
                reads()
            assert caught.value.found == version
            assert str(caught.value.expected).startswith("3, ")
            assert (caught.value.hint == "update perfgate") == (writer == "newer")

    @each("content", [[], 7, {}, {"schema_version": 0}, {"schema_version": "3"}])
    def test_something_else_is_refused(self, store: Store, content: object) -> None:
        path = store.save(baseline(), merge=False)
        path.write_text(json.dumps(content))
        with pytest.raises(InputError, match="baseline of an unknown schema version"):
            read(path)

    @each(
        ("place", "value", "field"),
        [
            ("entries", ..., "entries"),
            ("entries", {}, "entries"),
            ("entries.c1.runs", [], "entries.c1.runs"),
            ("entries.c1.runs.1.metrics.x", "fast", "entries.c1.runs[1].metrics.x"),
            ("entries.c1.runs.0.metrics.speed", 3.0, "entries.c1.runs[0].metrics.speed"),
            (f"entries.c1.runs.0.metrics.{SUMS}", 66.7, f"entries.c1.runs[0].metrics.{SUMS}"),
            (f"entries.c1.runs.0.metrics.{SPEED}", -1.0, f"entries.c1.runs[0].metrics.{SPEED}"),
            ("accepted.by", "", "accepted.by"),
            ("accepted.at", "yesterday", "accepted.at"),
            ("accepted.at", "2026-11-05T12:00:00+02:00", "accepted.at"),
            ("accepted.change", ..., "accepted.change"),
            ("accepted.change", "better", "accepted.change"),
            ("engine.colour", "red", "engine.colour"),
            ("schema_version", True, "schema_version"),
            ("hash", ..., "hash"),
            ("verdicts", ..., "verdicts"),
            ("verdicts.c1", "ERROR", "verdicts.c1"),
            ("retired", {"by": "Ada"}, "retired.at"),
        ],
    )
    def test_edited_amiss_it_is_refused_with_the_field(
        self, store: Store, place: str, value: object, field: str
    ) -> None:
        path = edit(store.save(baseline(), merge=False), at(place, value))
        with pytest.raises(InputError) as caught:
            read(path)
        assert (caught.value.file, caught.value.field) == (path, field)

    @each("word", ["NaN", "-Infinity", "1e999"])
    def test_a_value_that_is_not_finite_is_refused_with_its_field(
        self, store: Store, word: str
    ) -> None:
        path = store.save(baseline(), merge=False)
        path.write_text(path.read_text().replace("101.0", word))
        with pytest.raises(InputError, match="not a finite number") as caught:
            read(path)
        assert caught.value.file == path
        assert caught.value.field == "entries.c1.runs[1].metrics.output_throughput"
        assert word in str(caught.value.found)

    @each(
        ("place", "field"),
        [
            ("8xH200/small-serve/abc123", "hardware"),
            ("cpu/other/abc123", "scenario"),
            ("cpu/small-serve/f", "engine.commit"),
        ],
    )
    def test_misplaced_it_is_refused(self, store: Store, place: str, field: str) -> None:
        moved = store.folder / f"{place}.json"
        moved.parent.mkdir(parents=True, exist_ok=True)
        store.save(baseline()).rename(moved)
        with pytest.raises(InputError, match="is not in the folder of its content") as caught:
            read(moved)
        assert (caught.value.found, caught.value.expected) == (place, "cpu/small-serve/abc123")
        assert (caught.value.file, caught.value.field) == (moved, field)

    def test_a_relative_path_will_do(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        path = store.save(baseline())
        monkeypatch.chdir(path.parent)
        assert read(Path("abc123.json")) == baseline()
        assert read(Path("../small-serve/abc123.json")) == baseline()

    def test_a_missing_file_is_told(self, store: Store) -> None:
        with pytest.raises(InputError, match=r"none\.json: no such baseline"):
            read(store.folder / "none.json")


class TestEditedByHand:
    @each(
        ("place", "value", "field"),
        [
            (f"entries.c1.runs.0.metrics.{SPEED}", 100.1, "entries.c1"),
            ("entries.c1.runs.1", ..., "entries.c1"),
            ("entries.c1.fingerprint.cpu", "Xeon", "entries.c1"),
            ("probes.c1", "0" * 64, "hash"),
            ("accepted.by", "Grace", "hash"),
            ("accepted.change", "none", "hash"),
            ("engine.version", "1.2.1", "hash"),
            ("retired", {"by": "x", "at": "2026-11-05T12:00:00Z", "reason": "y"}, "hash"),
            ("hash", "0" * 64, "hash"),
        ],
    )
    def test_any_change_is_noticed_and_git_mends_it(
        self, store: Store, place: str, value: object, field: str
    ) -> None:
        path = edit(store.save(baseline(change="first"), merge=False), at(place, value))
        with pytest.raises(InputError, match="the baseline was edited by hand") as caught:
            read(path)
        assert (caught.value.file, caught.value.field) == (path, field)
        assert caught.value.hint == f"git checkout -- {path}"
        assert "`perfgate baseline record` and `promote`" in str(caught.value.expected)

    def test_an_entry_that_was_added_is_noticed(self, store: Store) -> None:
        def add(plain: dict[str, Any]) -> None:
            plain["entries"]["c4"] = plain["entries"]["c1"]

        path = edit(store.save(baseline()), add)
        with pytest.raises(InputError, match=r"entries\.c4: the baseline was edited by hand"):
            read(path)

    def test_layout_alone_is_no_change(self, store: Store) -> None:
        path = edit(store.save(baseline()), lambda plain: None)
        assert len(path.read_text().splitlines()) == 1
        assert read(path) == baseline()

    def test_the_hash_is_that_of_everything_else(self, store: Store) -> None:
        plain = json.loads(store.save(baseline()).read_text())
        said, entries = plain.pop("hash"), plain.pop("entries")

        def digest(value: object) -> str:
            text = json.dumps(value, sort_keys=True, separators=(",", ":"))
            return hashlib.sha256(text.encode()).hexdigest()

        assert said == digest(plain)
        assert plain["probes"] == {label: digest(entry) for label, entry in entries.items()}


@each("first", ['"accepted": {"by": "Grace"}', '"hash": "", "entries": {}'])
def test_a_field_twice_is_refused_though_the_hash_is_right(store: Store, first: str) -> None:
    """Readers of a diff see the one, a parser takes the other."""
    path = store.save(baseline(), merge=False)
    path.write_text(path.read_text().replace("{", "{" + first + ",", 1))
    with pytest.raises(InputError, match="a field twice") as caught:
        read(path)
    assert caught.value.file == path


def test_the_committed_baselines_are_sound() -> None:
    store = Store(Path(__file__).parents[2] / "baselines")
    found = [read(path) for path in store.list()]
    assert found
    assert all(one.change == "first" for one in found if one.scenario == "local-smollm2-serve")
