from dataclasses import replace
from pathlib import Path

import pytest
from building import baseline, entry, of_commit
from tables import each

from perfgate.baselines import (
    NOBODY,
    BaselineRun,
    Entry,
    Retired,
    Store,
    candidate_store,
    own_store,
    read,
    suite_store,
)
from perfgate.core.errors import InputError
from perfgate.engines.base import EngineBuild

BUILD = EngineBuild("llama.cpp", "1.3.0", "fed987")


@pytest.fixture
def store(suite_root: Path) -> Store:
    return suite_store()


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

    def test_a_candidate_put_there_by_hand_is_refused(self, store: Store) -> None:
        path = store.save(baseline(accepted_by=NOBODY))
        with pytest.raises(InputError, match="no person has accepted") as caught:
            store.choose("cpu", "small-serve", BUILD)
        assert (caught.value.file, caught.value.field) == (path, "accepted.by")

    def test_an_empty_folder_has_nothing_to_choose(self, store: Store) -> None:
        store.path("cpu", "small-serve", "x").parent.mkdir(parents=True)
        assert store.list() == []
        assert store.choose("cpu", "small-serve", BUILD) is None
        assert store.anchor("cpu", "small-serve", BUILD) is None
        store.save(baseline())
        assert store.choose("8xH200", "small-serve", BUILD) is None
        assert store.choose("cpu", "other", BUILD) is None

    def test_one_broken_file_is_told_though_another_would_do(self, store: Store) -> None:
        store.save(baseline())
        broken = store.save(of_commit("other"))
        broken.write_text(broken.read_text()[:-40])
        with pytest.raises(InputError, match="not JSON") as caught:
            store.choose("cpu", "small-serve", BUILD)
        assert caught.value.file == broken

    @each("part", ["..", ".", "", "a/b", "/etc", ".hidden", "a b", "a\n", "a\0"])
    def test_a_name_cannot_leave_the_store(self, store: Store, part: str) -> None:
        for place in ((part, "s", "c"), ("h", part, "c"), ("h", "s", part)):
            with pytest.raises(InputError, match="cannot be part of a baseline's file name"):
                store.path(*place)
        with pytest.raises(InputError, match="cannot be part"):
            store.save(of_commit("anchor"))
        with pytest.raises(InputError, match="cannot be part of a baseline's file name"):
            store.save(baseline(scenario=part))
        assert store.list() == []

    def test_three_stores(self, suite_root: Path, tmp_path: Path) -> None:
        assert suite_store().folder == suite_root / "baselines"
        assert candidate_store().folder == tmp_path / "home" / "candidates"
        assert own_store().folder == tmp_path / "home" / "baselines"

    def test_a_new_level_outlives_a_later_promotion_of_the_same_commit(self, store: Store) -> None:
        store.save(baseline(change="regression", regression="safer sampling"))
        path = store.save(baseline(entries={"c4": entry(9.0)}, change="none"))
        found = read(path)
        assert (found.change, found.regression) == ("regression", "safer sampling")
        assert set(found.entries) == {"c1", "c4"}
        store.save(of_commit("e", change="first"))
        worse = store.save(of_commit("e", change="regression", regression="a fix"))
        assert read(worse).change == "regression"

    def test_nothing_of_a_retired_baseline_is_kept(self, store: Store) -> None:
        retired = Retired("Ada", "2026-11-06T08:00:00Z", "wrong clocks")
        store.save(baseline(retired=retired, change="regression", regression="x"))
        found = read(store.save(baseline(entries={"c4": entry(9.0)})))
        assert (set(found.entries), found.retired, found.change) == ({"c4"}, None, "none")


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
            "content: measured none, baseline 0123456789abcdef",
            "cpu: measured Xeon, baseline Grace",
            "driver: measured 570.1, baseline none",
        )

    @each(
        ("stored", "measured", "differing"),
        [
            ({}, {"boost_slider": "0"}, ()),
            ({"boost_slider": "0"}, {}, ()),
            (
                {"boost_slider": "0"},
                {"boost_slider": "4"},
                ("boost_slider: measured 4, baseline 0",),
            ),
            ({}, {"before": "set it"}, ("before: measured set it, baseline none",)),
            ({"after": "unset it"}, {}, ("after: measured none, baseline unset it",)),
        ],
    )
    def test_baselines_without_commands_are_of_runs_without(
        self, stored: dict[str, str], measured: dict[str, str], differing: tuple[str, ...]
    ) -> None:
        assert Entry(stored, ()).differences(measured) == differing
