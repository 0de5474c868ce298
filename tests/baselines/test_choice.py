"""Which baseline is chosen, why, what else is on its level, and what its anchor is."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from building import baseline, entry
from life import METRIC, Clone, clone
from tables import each

from perfgate.baselines import (
    MOST_RUNS,
    SELF,
    Baseline,
    BaselineRun,
    ChosenBaseline,
    Entry,
    Retired,
    Store,
    candidate_store,
    suite_store,
)
from perfgate.baselines.baseline import Window
from perfgate.baselines.choice import choose, newest_release
from perfgate.baselines.decisions import pin_anchor, retire
from perfgate.baselines.engine_repo import EngineRepo
from perfgate.baselines.file import head_of
from perfgate.core.errors import InputError
from perfgate.engines.base import EngineBuild

__all__ = ["clone"]  # the fixture
MARKS = {
    "first": {"change": "first"},
    "loss": {"change": "regression", "regression": "safer"},
    "self": {"accepted_by": SELF},
    "retired": {"retired": Retired("Ada", "2026-11-06T08:00:00Z", "wrong clocks")},
}


def of(text: str, day: int = 1, **changes: object) -> Baseline:
    """A baseline of ``COMMIT VERSION MARK…``, accepted on a day of November."""
    commit, version, *marks = text.split()
    made = {key: value for mark in marks for key, value in MARKS[mark].items()}
    return baseline(
        engine=EngineBuild("llama.cpp", version, commit),
        accepted_at=f"2026-11-{day:02d}T08:00:00Z",
        **{"entries": {"c1": entry(float(day))}, **made, **changes},
    )


def build(text: str = "x 1.3.0") -> EngineBuild:
    commit, version = text.split()
    return EngineBuild("llama.cpp", version, commit)


def chosen(
    found: Sequence[Baseline], of: EngineBuild, repo: EngineRepo | None = None
) -> ChosenBaseline:
    made = choose(list(found), of, repo)
    assert made is not None
    stored = {Path(one.engine.commit): one for one in made.window}
    heads = tuple(head_of(replace(one, file=file)) for file, one in stored.items())
    window = Window(heads, stored.__getitem__)
    return ChosenBaseline(made.baseline, made.why, window, made.is_newer)


def commits(window: Sequence[Baseline]) -> list[str]:
    return [one.engine.commit for one in window]


OLDER = "newest older version, no baseline of this commit"
NEWER = "newer than the build under test: nothing older exists"
SAME, BY_DATE = "same engine commit", "newest by date, as not every version can be read"


@each(
    "stored, under_test, commit, why",
    [
        (["a 1.2.0", "b 1.2.1"], "a 1.2.0", "a", SAME),
        (["abcdef0 1.2.0", "b 1.2.0"], f"abcdef0{'1' * 33} 1.3.0", "abcdef0", SAME),
        (["b 1.2.0", "c 1.10.0", "a 1.1.0"], "x 1.9.0", "b", OLDER),
        # Versions are ordered as versions.
        (["a 1.2.0rc3", "b 1.2.0"], "x 1.2.0rc4", "a", OLDER),
        (["a 1.2.0rc9", "b 1.2.0rc10"], "x 1.2.0rc11", "b", OLDER),
        (["a 1.2.0.dev1", "b 1.2.0"], "x 1.2.0.post1", "b", OLDER),
        (["a 2026.9.11", "b 2026.10.2"], "x 2026.10.3", "b", OLDER),
        (["c 1.2.0", "b 1.2.0", "a 1.2.0"], "x 1.2.0", "a", "newest of the same version, no base"),
        (["a 1.9.0", "b main-7-gabc"], "x 2.0.0", "b", BY_DATE),
        (["a 1.9.0", "b 1.1.0"], "x nightly", "b", BY_DATE),
        (["a 1.5.0", "b 1.4.0", "c 1.4.0"], "x 1.3.0", "c", NEWER),
        (["a 1.5.0", "b 1.4.0", "d 1.1.0"], "x 1.3.0", "d", OLDER),
        (["a 1.2.0", "b 1.2.0 retired"], "b 1.2.0", "a", "newest of the same version"),
    ],
)
def test_which_is_chosen_without_a_clone(
    stored: list[str], under_test: str, commit: str, why: str
) -> None:
    found = [of(text, day) for day, text in enumerate(stored, 1)]
    one = chosen(found[::-1], build(under_test))
    assert (one.baseline.engine.commit, one.is_newer) == (commit, why == NEWER)
    assert one.why.startswith(why)


@each("stored", [[], ["b 1.2.0 retired"]])
def test_none_is_chosen_of_none(stored: list[str]) -> None:
    assert choose([of(text) for text in stored], build("b 1.2.0"), None) is None


@each(
    "stored, under_test, window",
    [
        (["a 1.0 first", "b 1.1", "c 1.2 loss", "d 1.3", "e 1.4"], "x 1.4", "edc"),
        (["a 1.0 first", "b 1.1", "c 1.2 loss", "d 1.3", "e 1.4"], "b 1.1", "ba"),
        (["a 1.0 first", "b 1.1", "c 1.2 loss", "d 1.3", "e 1.4"], "c 1.2", "c"),
        # A retired one is passed over, but not its level.
        (["a 1.0", "b 1.1 retired", "c 1.2"], "x 1.3", "ca"),
        (["a 1.0", "b 1.1 retired loss", "c 1.2"], "x 1.3", "c"),
        # What a machine measured of itself stands alone.
        (["a 1.0 self", "b 1.1 self"], "x 1.3", "b"),
    ],
)
def test_its_window_reaches_back_to_the_start_of_the_level(
    stored: list[str], under_test: str, window: str
) -> None:
    assert "".join(commits(chosen(list(map(of, stored)), build(under_test)).window)) == window


def test_the_window_gives_the_newest_thirty_starts() -> None:
    runs = tuple(
        BaselineRun("r", f"2026-11-01T08:00:{number:02d}Z", {METRIC: number + 1.0})
        for number in range(20)
    )
    found = [of(f"{n} 1.{n}", entries={"c1": Entry({"cpu": "G"}, runs)}) for n in range(3)]
    merged = chosen(found, build("x 2.0")).entry("c1")
    assert merged is not None
    assert merged.runs == (runs + runs)[:30]
    assert MOST_RUNS == 30


def test_what_was_measured_under_other_facts_is_left_out_probe_by_probe() -> None:
    found = [
        of("a 1.0", entries={"c1": entry(1.0), "c4": entry(4.0), "c8": entry(8.0)}),
        of("b 1.1", entries={"c1": entry(2.0, cpu="Xeon"), "c4": entry(5.0)}),
        of("c 1.2", entries={"c1": entry(3.0), "c4": entry(6.0)}),
    ]
    one = chosen(found, build())
    expected = {"c1": [3.0, 1.0], "c4": [6.0, 5.0, 4.0], "c8": [8.0]}  # c8: only the oldest has it
    entries = {label: one.entry(label) for label in expected}
    assert {label: made.values(METRIC) for label, made in entries.items() if made} == expected
    assert one.entry("c16") is None


def test_with_a_clone_the_nearest_ancestor_whatever_is_newer(clone: Clone) -> None:
    root = clone.commit()
    clone.git("checkout", "--quiet", "-b", "release")
    release = clone.commit("release")
    clone.git("checkout", "--quiet", "main")
    second, head = clone.commit("second"), clone.commit("head")
    repo, under_test = EngineRepo(clone.path), build(f"{head} 1.3.0")
    found = [of(f"{root} 1.1.0"), of(f"{release} 1.2.0", 2)]
    one = chosen(found, under_test, repo)
    assert (one.baseline, one.why) == (found[0], "nearest ancestor, 2 commits before")
    assert chosen(found, under_test).baseline == found[1]
    assert chosen([of(f"{root[:9]} 1.1.0")], under_test, repo).why == one.why
    assert chosen([of("elsewhere 1.2.0")], under_test, repo).why == f"{OLDER} or an ancestor"
    # The window holds ancestors alone.
    found += [of(f"{second} 1.2.0"), of(f"{'f' * 40} 1.2.0")]
    assert commits(chosen(found, under_test, repo).window) == [second, root]
    found.append(of(f"{head} 1.2.0", 9))
    assert commits(chosen(found, under_test, repo).window) == [head, second, root]
    lacking = build(f"{'f' * 40} 1.3.0")
    with pytest.raises(InputError, match="does not have this commit"):
        choose(found[:1], lacking, repo)
    # That very commit's baseline needs no clone.
    assert chosen([of(f"{'f' * 40} 1.2.0")], lacking, repo).why == SAME


def test_the_last_release_is_final_not_newer_than_the_build_and_never_retired() -> None:
    texts = "a 1.1.0,b 1.2.0,c 1.3.0rc1,d 1.2.1.dev3,e 1.2.1+cu13,f 1.4.0,g nightly,h 1.2.5 retired"
    found = [of(text) for text in texts.split(",")]
    for under_test, commit in (("x 1.3.0rc2", "b"), ("x nightly", "f")):
        release = newest_release(found, build(under_test))
        assert release is not None
        assert release.engine.commit == commit
    assert newest_release(found[7:], build()) is None


class TestAnchor:
    @pytest.fixture
    def store(self, suite_root: Path) -> Store:
        return suite_store()

    def anchored(self, store: Store) -> tuple[str, str]:
        found = store.anchor("cpu", "small-serve", build())
        assert found is not None
        assert list(found.window) == [found.baseline]
        return found.baseline.engine.commit, found.why

    def test_is_the_last_release_unless_a_person_pinned_another(self, store: Store) -> None:
        file = store.save(of("a 1.3.0rc1"))
        assert store.anchor("cpu", "small-serve", build()) is None
        for text in ("b 1.1.0", "c 1.2.0", "d 1.4.0"):
            store.save(of(text))
        assert self.anchored(store) == ("c", "newest final release")
        path = pin_anchor(file, by=" Ada ", reason="the loss of 1.3 is accepted")
        assert path == store.folder / "cpu" / "small-serve" / "anchor.json"
        assert path not in store.list()
        commit, why = self.anchored(store)
        assert commit == "a"
        assert why.startswith("pinned by Ada on ")
        assert why.endswith(": the loss of 1.3 is accepted")

    @pytest.mark.parametrize(
        ("version", "why"), [("1.2.0", "was retired"), ("1.4.0", "is newer than the build")]
    )
    def test_a_pinned_one_retired_on_another_branch_or_newer_than_the_build_does_not_count(
        self, store: Store, version: str, why: str
    ) -> None:
        store.save(of("a 1.1.0"))
        file = store.save(of(f"b {version}"))
        path = pin_anchor(file, by="Ada", reason="x")
        if why == "was retired":
            store.save(of(f"b {version} retired"), merge=False)
        told = f"newest final release; the pinned one, b, {why}"
        assert self.anchored(store) == ("a", told)
        file.unlink()
        with pytest.raises(InputError, match="a commit that has no baseline") as caught:
            self.anchored(store)
        assert (caught.value.file, caught.value.found) == (path, "b")

    @each(
        "change, field",
        [
            ({"commit": "c1.1.0"}, "hash"),
            ({"hardware": "8xH200"}, "hardware"),
            ({"schema_version": 2}, "schema_version"),
            ({"by": ""}, "by"),
            ({"colour": "red"}, "colour"),
            (None, None),
        ],
    )
    def test_its_file_edited_or_half_written_is_refused(
        self, store: Store, change: dict[str, object] | None, field: str | None
    ) -> None:
        path = pin_anchor(store.save(of("a 1.2.0")), by="Ada", reason="x")
        whole = path.read_text()
        path.write_text(json.dumps({**json.loads(whole), **change}) if change else whole[:50])
        with pytest.raises(InputError) as caught:
            store.anchor("cpu", "small-serve", build())
        assert (caught.value.file, caught.value.field) == (path, field)
        path.unlink()

    @each(
        "text, by, reason, problem",
        [
            ("a 1.2.0", " ", "x", "--by: "),
            ("a 1.2.0", "x", "", "--reason: "),
            ("a 1.2.0 retired", "Ada", "x", "the baseline is retired\n  found: Ada on 2026-11-06"),
            ("candidate 1.2.0", "Ada", "x", "a candidate is not yet a baseline"),
        ],
    )
    def test_decisions_need_a_person_a_reason_and_a_baseline(
        self, store: Store, text: str, by: str, reason: str, problem: str
    ) -> None:
        if text.startswith("candidate"):
            file = candidate_store().save(of(text, accepted_by="nobody yet"))
        else:
            file = store.save(of(text))
        for decide in (pin_anchor, retire):
            with pytest.raises(InputError) as caught:
                decide(file, by=by, reason=reason)
            assert problem in str(caught.value)

    def test_cannot_be_retired_until_another_is_pinned(self, store: Store) -> None:
        other, file = store.save(of("a 1.1.0")), store.save(of("b 1.2.0"))
        store.save(of("c 1.3.0rc1"))
        before = file.read_bytes()
        with pytest.raises(InputError, match="the anchor cannot be retired") as caught:
            retire(file, by="Grace", reason="x")
        assert caught.value.found == "1.2.0 is the newest final release"
        assert file.read_bytes() == before
        pin_anchor(other, by="Ada", reason="1.2.0 was measured with wrong clocks")
        with pytest.raises(InputError, match="the anchor cannot be retired") as caught:
            retire(other, by="Grace", reason="x")
        assert "1.2.0 was measured with wrong clocks" in str(caught.value.found)
        retire(file, by="Grace", reason="wrong clocks")
        assert self.anchored(store)[0] == "a"

    def test_the_only_one_may_go(self, store: Store) -> None:
        retire(store.save(of("a 1.2.0")), by="Grace", reason="x")
        assert store.choose("cpu", "small-serve", build()) is None
