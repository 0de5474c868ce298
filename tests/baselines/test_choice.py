"""Which baseline is chosen, why, and what else is on its level."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from building import baseline, entry
from engine_clone import Clone
from tables import each

from perfgate.baselines import (
    MOST_RUNS,
    SELF,
    Baseline,
    BaselineRun,
    ChosenBaseline,
    Entry,
    Retired,
)
from perfgate.baselines.baseline import Window
from perfgate.baselines.choice import choose, newest_release
from perfgate.baselines.engine_repo import EngineRepo
from perfgate.baselines.file import head_of
from perfgate.core.errors import InputError
from perfgate.engines.base import EngineBuild

RETIRED = Retired("Ada", "2026-11-06T08:00:00Z", "wrong clocks")


def of(commit: str, version: str = "1.2.0", day: int = 1, **changes: object) -> Baseline:
    """A baseline of a commit and version, accepted on a day of November."""
    return baseline(
        engine=EngineBuild("llama.cpp", version, commit),
        accepted_at=f"2026-11-{day:02d}T08:00:00Z",
        **{"entries": {"c1": entry(float(day))}, **changes},
    )


def build(commit: str = "x", version: str = "1.3.0") -> EngineBuild:
    return EngineBuild("llama.cpp", version, commit)


def chosen(
    found: list[Baseline], of: EngineBuild, repo: EngineRepo | None = None
) -> ChosenBaseline:
    made = choose(found, of, repo)
    assert made is not None
    stored = {Path(one.engine.commit): one for one in made.window}
    heads = tuple(head_of(replace(one, file=file)) for file, one in stored.items())
    window = Window(heads, stored.__getitem__)
    return ChosenBaseline(made.baseline, made.why, window, made.is_newer)


def commits(window: Sequence[Baseline]) -> list[str]:
    return [one.engine.commit for one in window]


class TestWithoutClone:
    def test_the_same_commit_whatever_is_newer(self) -> None:
        found = [of("a", "1.2.0", 1), of("b", "1.2.1", 2)]
        one = chosen(found, build("a", "1.2.0"))
        assert (one.baseline, one.why) == (found[0], "same engine commit")

    def test_the_same_commit_abbreviated(self) -> None:
        found = [of("abcdef0"), of("b", day=2)]
        assert chosen(found, build("abcdef0" + "1" * 33)).baseline == found[0]

    def test_else_the_newest_older_version_though_accepted_earlier(self) -> None:
        found = [of("a", "1.1.0", 9), of("b", "1.2.0", 2), of("c", "1.10.0", 3)]
        one = chosen(found, build(version="1.9.0"))
        assert one.baseline == found[1]
        assert one.why == "newest older version, no baseline of this commit"

    @each(
        ("known", "under_test", "older"),
        [
            (("1.2.0rc3", "1.2.0"), "1.2.0rc4", "1.2.0rc3"),
            (("1.2.0rc9", "1.2.0rc10"), "1.2.0rc11", "1.2.0rc10"),
            (("1.2.0.dev1", "1.2.0"), "1.2.0.post1", "1.2.0"),
            (("2026.9.11", "2026.10.2"), "2026.10.3", "2026.10.2"),
        ],
    )
    def test_versions_are_ordered_as_versions(
        self, known: tuple[str, str], under_test: str, older: str
    ) -> None:
        found = [of("a", known[0]), of("b", known[1])]
        assert chosen(found, build(version=under_test)).baseline.engine.version == older

    def test_two_commits_of_one_version_go_by_date(self) -> None:
        found = [of("b", day=3), of("a", day=4), of("c", day=2)]
        one = chosen(found, build(version="1.2.0"))
        assert one.baseline == found[1]
        assert one.why == "newest of the same version, no baseline of this commit"

    def test_a_version_that_is_none_leaves_the_date(self) -> None:
        found = [of("a", "1.9.0", 1), of("b", "main-7-gabc", 2)]
        one = chosen(found, build(version="2.0.0"))
        assert one.baseline == found[1]
        assert one.why.startswith("newest by date, as not every version can be read")
        one = chosen([of("a", "1.9.0", 3), of("b", "1.1.0", 5)], build(version="nightly"))
        assert one.baseline.engine.commit == "b"

    def test_a_newer_one_only_where_nothing_older_exists_and_says_so(self) -> None:
        found = [of("a", "1.5.0", 1), of("b", "1.4.0", 2), of("c", "1.4.0", 3)]
        one = chosen(found, build(version="1.3.0"))
        assert one.baseline == found[2]
        assert one.why.startswith("newer than the build under test: nothing older exists")
        assert one.is_newer
        one = chosen([*found, of("d", "1.1.0")], build(version="1.3.0"))
        assert (one.baseline.engine.commit, one.is_newer) == ("d", False)

    def test_a_retired_one_never(self) -> None:
        found = [of("a", day=1), of("b", day=2, retired=RETIRED)]
        assert chosen(found, build("b", "1.2.0")).baseline == found[0]
        assert choose([found[1]], build("b", "1.2.0")) is None
        assert choose([], build()) is None


class TestWithClone:
    @pytest.fixture
    def clone(self, tmp_path: Path) -> Clone:
        return Clone(tmp_path / "engine")

    def test_the_nearest_ancestor_whatever_is_newer(self, clone: Clone) -> None:
        root = clone.commit()
        clone.git("checkout", "--quiet", "-b", "release")
        release = clone.commit("release")
        clone.git("checkout", "--quiet", "main")
        clone.commit("between")
        head = clone.commit("head")
        found = [of(root, "1.1.0", 1), of(release, "1.2.0", 2)]
        repo = EngineRepo(clone.path)
        one = chosen(found, build(head), repo)
        assert (one.baseline, one.why) == (found[0], "nearest ancestor, 2 commits before")
        assert chosen(found, build(head)).baseline == found[1]
        one = chosen([of(root[:9])], build(head), repo)
        assert one.why == "nearest ancestor, 2 commits before"

    def test_no_ancestor_leaves_the_version(self, clone: Clone) -> None:
        head = clone.commit()
        one = chosen([of("elsewhere")], build(head), EngineRepo(clone.path))
        assert one.why == "newest older version, no baseline of this commit or an ancestor"

    def test_a_commit_that_the_clone_lacks_is_told(self, clone: Clone) -> None:
        first = clone.commit()
        lacking, repo = build("f" * 40), EngineRepo(clone.path)
        with pytest.raises(InputError, match="does not have this commit"):
            choose([of(first)], lacking, repo)
        # that very commit's baseline needs no clone
        assert chosen([of("f" * 40)], lacking, repo).why == "same engine commit"

    def test_the_window_holds_ancestors_alone(self, clone: Clone) -> None:
        root = clone.commit()
        clone.git("checkout", "--quiet", "-b", "side")
        side = clone.commit("side")
        clone.git("checkout", "--quiet", "main")
        second, head = clone.commit("second"), clone.commit("head")
        found = [of(root, day=1), of(side, day=2), of(second, day=1), of("f" * 40, day=1)]
        repo = EngineRepo(clone.path)
        assert commits(chosen(found, build(head), repo).window) == [second, root]
        with_head = chosen([*found, of(head, day=9)], build(head), repo)
        assert commits(with_head.window) == [head, second, root]


class TestWindow:
    def test_reaches_back_to_the_start_of_the_level(self) -> None:
        found = [
            of("a", "1.0", change="first"),
            of("b", "1.1"),
            of("c", "1.2", change="regression", regression="safer"),
            of("d", "1.3"),
            of("e", "1.4"),
        ]
        assert commits(chosen(found, build(version="1.4")).window) == ["e", "d", "c"]
        assert commits(chosen(found, build("b", "1.1")).window) == ["b", "a"]
        assert commits(chosen(found, build("c", "1.2")).window) == ["c"]

    def test_passes_over_a_retired_one_but_not_over_its_level(self) -> None:
        found = [of("a", "1.0"), of("b", "1.1", retired=RETIRED), of("c", "1.2")]
        assert commits(chosen(found, build()).window) == ["c", "a"]
        found[1] = of("b", "1.1", retired=RETIRED, change="regression", regression="x")
        assert commits(chosen(found, build()).window) == ["c"]

    def test_what_a_machine_measured_of_itself_stands_alone(self) -> None:
        found = [of("a", "1.0", accepted_by=SELF), of("b", "1.1", accepted_by=SELF)]
        assert commits(chosen(found, build()).window) == ["b"]

    def test_takes_the_newest_thirty(self) -> None:
        runs = tuple(
            BaselineRun("r", f"2026-11-01T08:00:{number:02d}Z", {"output_throughput": number + 1.0})
            for number in range(20)
        )
        facts = {"cpu": "Grace"}
        found = [of(name, f"1.{name}", entries={"c1": Entry(facts, runs)}) for name in "012"]
        merged = chosen(found, build(version="2.0")).entry("c1")
        assert merged is not None
        assert len(merged.runs) == MOST_RUNS == 30
        assert merged.runs == (runs + runs)[:30]

    def test_leaves_out_what_was_measured_under_other_facts(self) -> None:
        found = [
            of("a", "1.0", entries={"c1": entry(1.0), "c4": entry(4.0)}),
            of("b", "1.1", entries={"c1": entry(2.0, cpu="Xeon"), "c4": entry(5.0)}),
            of("c", "1.2", entries={"c1": entry(3.0), "c4": entry(6.0)}),
        ]
        one = chosen(found, build())
        merged, other = one.entry("c1"), one.entry("c4")
        assert merged is not None
        assert other is not None
        assert merged.values("output_throughput") == [3.0, 1.0]
        assert other.values("output_throughput") == [6.0, 5.0, 4.0]

    def test_a_probe_that_only_an_older_one_has_is_found_there(self) -> None:
        found = [
            of("a", "1.0", entries={"c1": entry(1.0), "c4": entry(4.0)}),
            of("b", "1.1", entries={"c1": entry(2.0)}),
        ]
        one = chosen(found, build())
        assert one.entry("c4") == entry(4.0)
        assert one.entry("c8") is None


class TestLastRelease:
    def test_is_final_and_not_newer_than_the_build(self) -> None:
        versions = ("1.1.0", "1.2.0", "1.3.0rc1", "1.2.1.dev3", "1.2.1+cu13", "1.4.0", "nightly")
        found = [of(letter, version) for letter, version in zip("abcdefg", versions, strict=True)]
        release = newest_release(found, build(version="1.3.0rc2"))
        assert release is not None
        assert release.engine.commit == "b"
        newest = newest_release(found, build(version="nightly"))
        assert newest is not None
        assert newest.engine.commit == "f"

    def test_is_never_retired(self) -> None:
        found = [of("a", "1.1.0"), of("b", "1.2.0", retired=RETIRED)]
        assert newest_release(found, build()) == found[0]
        assert newest_release(found[1:], build()) is None
