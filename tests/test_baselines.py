import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from building import SUMS, baseline, entry, of_commit, with_answers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfgate.baselines import (
    Baseline,
    BaselineRun,
    Entry,
    Store,
    as_run,
    candidate_store,
    own_store,
    read,
    suite_store,
)
from perfgate.engines.base import EngineBuild
from perfgate.errors import InputError
from perfgate.measurement import Measurement

NAME = st.from_regex(r"[A-Za-z0-9_+-][A-Za-z0-9_.+-]{0,20}", fullmatch=True)
WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
VALUE = st.floats(allow_nan=False, allow_infinity=False)
TIME = st.datetimes().map(lambda time: time.isoformat(timespec="seconds") + "+00:00")
RUN = st.builds(
    BaselineRun,
    WORDS,
    TIME,
    st.dictionaries(WORDS, VALUE, min_size=1, max_size=3),
    st.dictionaries(WORDS, st.dictionaries(WORDS, st.booleans(), min_size=1), max_size=2),
)
ENTRY = st.builds(
    Entry,
    st.dictionaries(WORDS, WORDS, min_size=1, max_size=3),
    st.lists(RUN, min_size=1, max_size=3).map(tuple),
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
)


@pytest.fixture
def store(suite_root: Path) -> Store:
    return suite_store()


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    plain = json.loads(path.read_text())
    change(plain)
    path.write_text(json.dumps(plain))
    return path


class TestOneFile:
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
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
        assert json.loads(path.read_text())["entries"]["sums"]["runs"][0]["answers"] == {
            SUMS: {"q1": 1, "q2": 0}
        }
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

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
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

    @pytest.mark.parametrize("version", [0, 2, "1", None, 1.5])
    def test_an_unknown_schema_version_is_refused(self, store: Store, version: object) -> None:
        path = edit(store.save(baseline()), lambda plain: plain.update(schema_version=version))
        with pytest.raises(InputError, match="baseline of an unknown schema version") as caught:
            read(path)
        assert caught.value.found == version
        assert (caught.value.hint == "update perfgate") == (version == 2)

    @pytest.mark.parametrize("content", ["[]", "null", "7", "{}"])
    def test_something_else_is_refused(self, store: Store, content: str) -> None:
        path = store.save(baseline())
        path.write_text(content)
        with pytest.raises(InputError, match="unknown schema version"):
            read(path)

    @pytest.mark.parametrize(
        ("change", "field"),
        [
            (lambda plain: plain.pop("entries"), None),
            (lambda plain: plain["entries"].clear(), "entries"),
            (lambda plain: plain["entries"]["c1"]["runs"].clear(), "entries.c1.runs"),
            (
                lambda plain: plain["entries"]["c1"]["runs"][1]["metrics"].update(x="fast"),
                "entries.c1.runs.1.metrics.x",
            ),
            (lambda plain: plain["accepted"].update(by=""), "accepted.by"),
            (lambda plain: plain["accepted"].update(at="yesterday"), "accepted.at"),
            (lambda plain: plain["accepted"].update(at="2026-11-05T12:00:00+02:00"), "accepted.at"),
            (lambda plain: plain["engine"].update(colour="red"), "engine"),
            (lambda plain: plain.update(schema_version=True), "schema_version"),
        ],
    )
    def test_edited_amiss_it_is_refused_with_the_field(
        self, store: Store, change: Callable[[dict[str, Any]], object], field: str | None
    ) -> None:
        path = edit(store.save(baseline()), change)
        with pytest.raises(InputError) as caught:
            read(path)
        assert (caught.value.file, caught.value.field) == (path, field)

    def test_a_value_that_is_no_number_is_refused(self, store: Store) -> None:
        path = store.save(baseline())
        path.write_text(path.read_text().replace("100.0", "NaN"))
        with pytest.raises(InputError, match="not a finite number"):
            read(path)

    @pytest.mark.parametrize(
        "place", ["8xH200/small-serve/abc123", "cpu/other/abc123", "cpu/small-serve/f"]
    )
    def test_misplaced_it_is_refused(self, store: Store, place: str) -> None:
        moved = store.folder / f"{place}.json"
        moved.parent.mkdir(parents=True, exist_ok=True)
        store.save(baseline()).rename(moved)
        with pytest.raises(InputError, match="does not lie where its content belongs") as caught:
            read(moved)
        assert (caught.value.found, caught.value.expected) == (place, "cpu/small-serve/abc123")

    def test_a_relative_path_will_do(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        path = store.save(baseline())
        monkeypatch.chdir(path.parent)
        assert read(Path("abc123.json")) == baseline()
        assert read(Path("../small-serve/abc123.json")) == baseline()

    def test_a_missing_file_is_told(self, store: Store) -> None:
        with pytest.raises(InputError, match=r"none\.json: no such baseline"):
            read(store.folder / "none.json")

    def test_the_schema_is_that_of_the_checkout_in_use(
        self, store: Store, suite_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = store.save(baseline())
        read(path)
        other = tmp_path / "other"
        for folder in ("scenarios", "baselines"):
            (other / folder).mkdir(parents=True)
        (other / "scenarios" / "scenario.schema.json").touch()
        (other / "baselines" / "baseline.schema.json").write_text('{"required": ["signed"]}')
        monkeypatch.setenv("PERFGATE_ROOT", str(other))
        with pytest.raises(InputError, match="'signed' is a required property"):
            read(path)


class TestStore:
    def test_one_file_a_commit(self, store: Store) -> None:
        paths = [store.save(of_commit(commit)) for commit in ("bbb", "aaa")]
        assert store.list() == sorted(paths)
        assert [path.name for path in store.list()] == ["aaa.json", "bbb.json"]

    def test_the_same_commit_keeps_its_other_entries(self, store: Store) -> None:
        store.save(baseline(entries={"c1": entry(1.0), "c4": entry(4.0)}))
        newer = baseline(entries={"c4": entry(5.0), "sums": entry(0.5)}, accepted_by="Grace")
        found = read(store.save(newer))
        assert found.entries == {"c1": entry(1.0), "c4": entry(5.0), "sums": entry(0.5)}
        assert found.accepted_by == "Grace"

    def test_a_broken_file_is_not_overwritten(self, store: Store) -> None:
        path = store.save(baseline())
        path.write_text("{")
        with pytest.raises(InputError):
            store.save(baseline())
        assert path.read_text() == "{"

    def test_editors_and_half_written_files_are_not_baselines(self, store: Store) -> None:
        path = store.save(baseline())
        (path.parent / ".abc123.json.x7").write_text("{")
        (path.parent / ".hidden.json").write_text("{")
        (path.parent / "abc123.json~").write_text("{")
        assert store.list() == [path]
        assert store.choose("cpu", "small-serve", "other") == baseline()

    def test_chooses_the_same_commit(self, store: Store) -> None:
        store.save(of_commit("old", accepted_at="2026-01-01T00:00:00+00:00"))
        store.save(of_commit("new", accepted_at="2026-02-01T00:00:00+00:00"))
        assert store.choose("cpu", "small-serve", "old") == of_commit(
            "old", accepted_at="2026-01-01T00:00:00+00:00"
        )

    def test_else_the_newest_accepted_whatever_its_name_or_age(self, store: Store) -> None:
        times = {"bbb": "2026-03-01", "ccc": "2026-01-01", "aaa": "2026-02-01"}
        for commit, day in times.items():
            path = store.save(of_commit(commit, accepted_at=f"{day}T00:00:00+00:00"))
            os.utime(path, (0, 0) if commit == "bbb" else None)
        chosen = store.choose("cpu", "small-serve", "ddd")
        assert chosen is not None
        assert chosen.engine.commit == "bbb"

    def test_else_there_is_none(self, store: Store) -> None:
        store.save(baseline())
        assert store.choose("8xH200", "small-serve", "abc123") is None
        assert store.choose("cpu", "other", "abc123") is None

    @pytest.mark.parametrize("part", ["..", ".", "", "a/b", "/etc", ".hidden", "a b", "a\n", "a\0"])
    def test_a_name_cannot_leave_the_store(self, store: Store, part: str) -> None:
        for place in ((part, "s", "c"), ("h", part, "c"), ("h", "s", part)):
            with pytest.raises(InputError, match="cannot be part of a baseline's file name"):
                store.path(*place)
        with pytest.raises(InputError, match="cannot be part of a baseline's file name"):
            store.save(baseline(scenario=part))
        assert store.list() == []

    @pytest.mark.parametrize("part", ["1.2.0rc3.dev1+cu12", "8xH200", "a_b-c.d", "0"])
    def test_versions_and_labels_can_be_names(self, store: Store, part: str) -> None:
        assert store.path(part, part, part).name == f"{part}.json"

    def test_three_stores(self, suite_root: Path, tmp_path: Path) -> None:
        assert suite_store().folder == suite_root / "baselines"
        assert candidate_store().folder == tmp_path / "home" / "candidates"
        assert own_store().folder == tmp_path / "home" / "baselines"


class TestEntry:
    def test_values_are_one_per_start_that_has_the_metric(self) -> None:
        found = entry(100.0, 101.0)
        other = BaselineRun("run-3", "2026-11-03T08:00:00+00:00", {"duration_s": 9.0})
        assert replace(found, runs=(*found.runs, other)).values("output_throughput") == [
            100.0,
            101.0,
        ]
        assert found.values("ttft_mean_ms") == []

    def test_differences_name_both_sides(self) -> None:
        assert entry(1.0).differences({"content": "0123456789abcdef", "cpu": "Grace"}) == ()
        assert entry(1.0).differences({"cpu": "Xeon", "driver": "570.1"}) == (
            "content: measured unknown, baseline 0123456789abcdef",
            "cpu: measured Xeon, baseline Grace",
            "driver: measured 570.1, baseline unknown",
        )

    def test_a_measurement_becomes_a_run(self) -> None:
        measured = Measurement({SUMS: 0.5}, {"requests": 2}, {SUMS: {"q1": True, "q2": False}})
        run = as_run(measured, "run-9", "2026-11-03T08:00:00+00:00")
        assert run == BaselineRun(
            "run-9",
            "2026-11-03T08:00:00+00:00",
            {SUMS: 0.5},
            {SUMS: {"q1": True, "q2": False}},
        )
