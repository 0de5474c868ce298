"""Which baseline is chosen, why, what else is on its level, its anchor, and ancestors in git."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from building import baseline, entry
from life import METRIC, Clone, clone
from refusals import refused
from tables import each

from perfgate import baselines
from perfgate.baselines import Baseline, ChosenBaseline, engine_repo, suite_store
from perfgate.baselines.baseline import Window
from perfgate.baselines.choice import choose, newest_release
from perfgate.baselines.decisions import pin_anchor, retire
from perfgate.baselines.engine_repo import EngineRepo, same_hash
from perfgate.baselines.file import head_of
from perfgate.engines.base import EngineBuild

__all__ = ["clone"]  # the fixture
MARKS = {
    "first": {"change": "first"},
    "loss": {"change": "regression", "regression": "safer"},
    "self": {"accepted_by": baselines.SELF},
    "retired": {"retired": baselines.Retired("Ada", "2026-11-06T08:00:00Z", "wrong clocks")},
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


def chosen(found: Sequence[Baseline], of: EngineBuild, repo: Any = None) -> ChosenBaseline:
    made = choose(list(found), of, repo)
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
        # Versions are ordered as versions.
        (["b 1.2.0", "c 1.10.0", "a 1.1.0"], "x 1.9.0", "b", OLDER),
        (["a 1.2.0rc3", "b 1.2.0"], "x 1.2.0rc4", "a", OLDER),
        (["a 1.2.0rc9", "b 1.2.0rc10"], "x 1.2.0rc11", "b", OLDER),
        (["c 1.2.0", "b 1.2.0", "a 1.2.0"], "x 1.2.0", "a", "newest of the same version, no base"),
        (["a 1.9.0", "b main-7-gabc"], "x 2.0.0", "b", BY_DATE),
        (["a 1.9.0", "b 1.1.0"], "x nightly", "b", BY_DATE),
        (["a 1.5.0", "b 1.4.0", "c 1.4.0"], "x 1.3.0", "c", NEWER),
        (["a 1.5.0", "b 1.4.0", "d 1.1.0"], "x 1.3.0", "d", OLDER),
        (["a 1.2.0", "b 1.2.0 retired"], "b 1.2.0", "a", "newest of the same version"),
    ],
)
def test_which_is_chosen_without_a_clone(stored, under_test, commit, why) -> None:
    found = [of(text, day) for day, text in enumerate(stored, 1)]
    one = chosen(found[::-1], build(under_test))
    assert (one.baseline.engine.commit, one.is_newer) == (commit, why == NEWER)
    assert one.why.startswith(why)


FIVE = ["a 1.0 first", "b 1.1", "c 1.2 loss", "d 1.3", "e 1.4"]


@each(
    "stored, under_test, window",
    [
        *((FIVE, *one) for one in (("x 1.4", "edc"), ("b 1.1", "ba"), ("c 1.2", "c"))),
        # A retired one is passed over, but not its level.
        (["a 1.0", "b 1.1 retired", "c 1.2"], "x 1.3", "ca"),
        (["a 1.0", "b 1.1 retired loss", "c 1.2"], "x 1.3", "c"),
        # What a machine measured of itself stands alone.
        (["a 1.0 self", "b 1.1 self"], "x 1.3", "b"),
    ],
)
def test_its_window_reaches_back_to_the_start_of_the_level(stored, under_test, window) -> None:
    assert "".join(commits(chosen(list(map(of, stored)), build(under_test)).window)) == window


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
    refused(choose, found[:1], lacking, repo, match="does not have this commit")
    # That very commit's baseline needs no clone.
    assert chosen([of(f"{'f' * 40} 1.2.0")], lacking, repo).why == SAME


def test_the_last_release_is_final_not_newer_than_the_build_and_never_retired() -> None:
    texts = "a 1.1.0,b 1.2.0,c 1.3.0rc1,d 1.2.1.dev3,e 1.2.1+cu13,f 1.4.0,g nightly,h 1.2.5 retired"
    found = [of(text) for text in texts.split(",")]
    for under_test, commit in (("x 1.3.0rc2", "b"), ("x nightly", "f")):
        assert newest_release(found, build(under_test)).engine.commit == commit
    assert newest_release(found[7:], build()) is None


# The anchor. -------------------------------------------------------------------------------------
ADA = {"by": "Ada", "reason": "x"}


@pytest.fixture
def store(suite_root: Path) -> baselines.Store:
    return suite_store()


def anchored(store: baselines.Store) -> tuple[str, str]:
    found = store.anchor("cpu", "small-serve", build())
    assert list(found.window) == [found.baseline]
    return found.baseline.engine.commit, found.why


def test_it_is_the_last_release_unless_a_person_pinned_another(store) -> None:
    file = store.save(of("a 1.3.0rc1"))
    assert store.anchor("cpu", "small-serve", build()) is None
    for text in ("b 1.1.0", "c 1.2.0", "d 1.4.0"):
        store.save(of(text))
    assert anchored(store) == ("c", "newest final release")
    path = pin_anchor(file, by=" Ada ", reason="the loss of 1.3 is accepted")
    assert path == store.folder / "cpu" / "small-serve" / "anchor.json"
    assert path not in store.list()
    commit, why = anchored(store)
    assert (commit, why[:17]) == ("a", "pinned by Ada on ")
    assert why.endswith(": the loss of 1.3 is accepted")


@pytest.mark.parametrize("why", ["was retired", "is newer than the build"])
def test_a_pinned_one_retired_on_another_branch_or_newer_does_not_count(store, why) -> None:
    retired = why == "was retired"
    text = "b 1.2.0" if retired else "b 1.4.0"
    store.save(of("a 1.1.0"))
    file = store.save(of(text))
    path = pin_anchor(file, **ADA)
    if retired:
        store.save(of(f"{text} retired"), merge=False)
    assert anchored(store) == ("a", f"newest final release; the pinned one, b, {why}")
    file.unlink()
    error = refused(anchored, store, match="a commit that has no baseline")
    assert (error.file, error.found) == (path, "b")


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
def test_its_file_edited_or_half_written_is_refused(store, change, field) -> None:
    path = pin_anchor(store.save(of("a 1.2.0")), **ADA)
    whole = path.read_text()
    path.write_text(json.dumps({**json.loads(whole), **change}) if change else whole[:50])
    error = refused(anchored, store)
    assert (error.file, error.field) == (path, field)
    path.unlink()


@each(
    "text, named, problem",
    [
        ("a 1.2.0", {"by": " "}, "--by: "),
        ("a 1.2.0", {"reason": ""}, "--reason: "),
        ("a 1.2.0 retired", {}, "the baseline is retired\n  found: Ada on 2026-11-06"),
        ("candidate 1.2.0", {}, "a candidate is not yet a baseline"),
    ],
)
def test_decisions_need_a_person_a_reason_and_a_baseline(store, text, named, problem) -> None:
    by = {"accepted_by": "nobody yet"} if text.startswith("candidate") else {}
    file = (baselines.candidate_store() if by else store).save(of(text, **by))
    for decide in (pin_anchor, retire):
        refused(decide, file, match=problem, **{**ADA, **named})


def test_it_cannot_be_retired_until_another_is_pinned(store) -> None:
    other, file = store.save(of("a 1.1.0")), store.save(of("b 1.2.0"))
    store.save(of("c 1.3.0rc1"))
    before, why = file.read_bytes(), "the anchor cannot be retired"
    assert refused(retire, file, match=why, **ADA).found == "1.2.0 is the newest final release"
    pin_anchor(other, by="Ada", reason="1.2.0 had wrong clocks")
    assert "1.2.0 had wrong clocks" in refused(retire, other, match=why, **ADA).found
    assert file.read_bytes() == before
    retire(file, **ADA)
    assert anchored(store)[0] == "a"


def test_the_only_one_may_go(store) -> None:
    retire(store.save(of("a 1.2.0")), **ADA)
    assert store.choose("cpu", "small-serve", build("a 1.2.0")) is None


# Ancestors are asked of real git repositories. ---------------------------------------------------


def test_the_nearest_has_the_fewest_commits_between(clone: Clone) -> None:
    commits = [clone.commit(str(number)) for number in range(6)]
    repo = EngineRepo(clone.path)
    assert repo.nearest([commits[0], commits[3], commits[1]], commits[5]) == (commits[3], 2)
    assert repo.nearest([commits[5]], commits[5]) == (commits[5], 0)
    assert repo.nearest([commits[5]], commits[2]) is repo.nearest([], commits[2]) is None
    assert repo.nearest(["0" * 40, "9.9.9", commits[4]], commits[5]) == (commits[4], 1)
    assert repo.ancestors(commits, commits[2]) == {commits[0]: 2, commits[1]: 1, commits[2]: 0}
    for ask in (repo.nearest, repo.ancestors):
        error = refused(ask, commits, "0" * 40, match="does not have this commit")
        assert (error.found[:40], error.hint) == ("0" * 40, "git fetch in that clone")


def test_commits_of_both_sides_of_a_merge_count(clone: Clone) -> None:
    root = clone.commit()
    clone.git("checkout", "--quiet", "-b", "side")
    side = [clone.commit(f"side {number}") for number in range(3)]
    clone.git("checkout", "--quiet", "main")
    main = clone.commit("main")
    clone.git("merge", "--quiet", "--no-ff", "-m", "merge", "side")
    merge = clone.git("rev-parse", "HEAD")
    # From the side's end: the merge and the one of main. From main: the merge and three.
    found = EngineRepo(clone.path).ancestors([root, side[2], main], merge)
    assert found == {root: 5, side[2]: 2, main: 4}


def test_abbreviated_hashes_and_tags_name_commits(clone, tmp_path, monkeypatch) -> None:
    first = clone.commit()
    clone.git("tag", "-a", "v1.2.0", "-m", "release")
    last = clone.commit()
    # A repository named by the environment is not asked.
    monkeypatch.setenv("GIT_DIR", str(Clone(tmp_path / "other").path / ".git"))
    repo = EngineRepo(clone.path)
    assert repo.nearest([first[:9]], last[:7]) == (first[:9], 1)
    assert repo.nearest(["1.2.0"], last) == ("1.2.0", 1)
    assert [repo.knows(name) for name in ("v1.2.0", "main", "--all")] == [True, False, False]
    for one, other, same in (
        ("abc1234", "abc1234" + "0" * 33, True),
        ("abc1234" + "0" * 33, "abc1234", True),
        ("abc123", "abc123" + "0" * 34, False),  # too short to be an abbreviation
        ("1.2", "1.2.0", False),
        ("abc1234", "abc1235" + "0" * 33, False),
    ):
        assert same_hash(one, other) is same


def test_a_shallow_clone_tells_what_it_shows_and_what_it_cannot(clone, tmp_path) -> None:
    commits = [clone.commit(str(number)) for number in range(4)]
    clone.git("clone", "--quiet", "--depth", "2", f"file://{clone.path}", str(tmp_path / "sh"))
    repo = EngineRepo(tmp_path / "sh")
    assert repo.is_shallow
    assert repo.nearest(commits[:3], commits[3]) == (commits[2], 1)
    for known, build in ((commits[:2], commits[3]), ([commits[3]], commits[2])):
        error = refused(repo.nearest, known, build, match="the history before this commit")
        assert error.hint == "git fetch --unshallow in that clone"
    assert refused(repo.nearest, commits, commits[0]).hint == "git fetch --unshallow"


def test_no_clone_no_git_and_one_that_hangs(clone, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    (tmp_path / "plain").mkdir()
    for name in ("plain", "missing"):
        refused(EngineRepo, tmp_path / name, match="--engine-repo: .*: not a git clone")
    monkeypatch.setenv("PATH", str(tmp_path))
    error = refused(EngineRepo, clone.path, match="git cannot be started")
    assert error.found == "No such file or directory"
    (tmp_path / "git").write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setattr(engine_repo, "WITHIN_S", 0.2)
    refused(EngineRepo, clone.path, match="no answer within 0")
