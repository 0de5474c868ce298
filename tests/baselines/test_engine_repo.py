"""Ancestors are asked of real git repositories."""

from pathlib import Path

import pytest
from life import Clone, clone
from tables import each

from perfgate.baselines.engine_repo import EngineRepo, same_hash
from perfgate.core import git_query
from perfgate.core.errors import InputError

__all__ = ["clone"]  # the fixture


def test_the_nearest_has_the_fewest_commits_between(clone: Clone) -> None:
    commits = [clone.commit(str(number)) for number in range(6)]
    repo = EngineRepo(clone.path)
    assert repo.nearest([commits[0], commits[3], commits[1]], commits[5]) == (commits[3], 2)
    assert repo.nearest([commits[5]], commits[5]) == (commits[5], 0)
    assert repo.nearest([commits[5]], commits[2]) is None
    assert repo.nearest([], commits[2]) is None
    assert repo.nearest(["0" * 40, "9.9.9", commits[4]], commits[5]) == (commits[4], 1)
    assert repo.ancestors(commits, commits[2]) == {commits[0]: 2, commits[1]: 1, commits[2]: 0}


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


def test_abbreviated_hashes_and_tags_name_commits(
    clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = clone.commit()
    clone.git("tag", "-a", "v1.2.0", "-m", "release")
    last = clone.commit()
    # A repository named by the environment is not asked.
    monkeypatch.setenv("GIT_DIR", str(Clone(tmp_path / "other").path / ".git"))
    repo = EngineRepo(clone.path)
    assert repo.nearest([first[:9]], last[:7]) == (first[:9], 1)
    assert repo.nearest(["1.2.0"], last) == ("1.2.0", 1)
    assert [repo.knows(name) for name in ("v1.2.0", "main", "--all")] == [True, False, False]


def test_a_build_that_the_clone_lacks_is_told(clone: Clone) -> None:
    first = clone.commit()
    repo = EngineRepo(clone.path)
    for ask in (repo.nearest, repo.ancestors):
        with pytest.raises(InputError, match="does not have this commit") as caught:
            ask([first], "0" * 40)
        assert "0" * 40 in str(caught.value.found)
        assert caught.value.hint == "git fetch in that clone"


def test_a_shallow_clone_tells_what_it_shows_and_what_it_cannot(
    clone: Clone, tmp_path: Path
) -> None:
    commits = [clone.commit(str(number)) for number in range(4)]
    clone.git("clone", "--quiet", "--depth", "2", f"file://{clone.path}", str(tmp_path / "sh"))
    repo = EngineRepo(tmp_path / "sh")
    assert repo.is_shallow
    assert repo.nearest(commits[:3], commits[3]) == (commits[2], 1)
    for known, build in ((commits[:2], commits[3]), ([commits[3]], commits[2])):
        with pytest.raises(InputError, match="the history before this commit") as caught:
            repo.nearest(known, build)
        assert caught.value.hint == "git fetch --unshallow in that clone"
    with pytest.raises(InputError) as caught:
        repo.nearest(commits, commits[0])
    assert caught.value.hint == "git fetch --unshallow"


def test_no_clone_no_git_and_one_that_hangs(
    clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    (tmp_path / "plain").mkdir()
    for name in ("plain", "missing"):
        with pytest.raises(InputError, match="not a git clone") as caught:
            EngineRepo(tmp_path / name)
        assert caught.value.field == "--engine-repo"
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="git cannot be started") as caught:
        EngineRepo(clone.path)
    assert caught.value.found == "No such file or directory"
    (tmp_path / "git").write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setattr(git_query, "WITHIN_S", 0.2)
    with pytest.raises(InputError, match="no answer within 0"):
        EngineRepo(clone.path)


@each(
    "one, other, same",
    [
        ("abc123", "abc123", True),
        ("1.2.0", "1.2.0", True),
        ("abc1234", "abc1234" + "0" * 33, True),
        ("abc1234" + "0" * 33, "abc1234", True),
        ("abc123", "abc123" + "0" * 34, False),  # too short to be an abbreviation
        ("1.2", "1.2.0", False),
        ("abc1234", "abc1235" + "0" * 33, False),
    ],
)
def test_a_hash_may_be_abbreviated(one: str, other: str, same: bool) -> None:
    assert same_hash(one, other) is same
