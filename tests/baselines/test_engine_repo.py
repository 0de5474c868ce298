"""Ancestors are asked of real git repositories."""

import os
import stat
from pathlib import Path

import pytest
from engine_clone import Clone
from tables import each

from perfgate.baselines.engine_repo import EngineRepo, same_hash
from perfgate.core import git_query
from perfgate.core.errors import InputError


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path / "engine")


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
    assert EngineRepo(clone.path).ancestors([root, side[2], main], merge) == {
        root: 5,
        side[2]: 2,
        main: 4,
    }


def test_abbreviated_hashes_and_tags_name_commits(clone: Clone) -> None:
    first = clone.commit()
    clone.git("tag", "-a", "v1.2.0", "-m", "release")
    last = clone.commit()
    repo = EngineRepo(clone.path)
    assert repo.nearest([first[:9]], last[:7]) == (first[:9], 1)
    assert repo.nearest(["1.2.0"], last) == ("1.2.0", 1)
    assert repo.knows("v1.2.0")
    assert not repo.knows("main")
    assert not repo.knows("--all")


def test_a_build_that_the_clone_lacks_is_told(clone: Clone) -> None:
    first = clone.commit()
    repo = EngineRepo(clone.path)
    for ask in (repo.nearest, repo.ancestors):
        with pytest.raises(InputError, match="does not have this commit") as caught:
            ask([first], "0" * 40)
        assert "0" * 40 in str(caught.value.found)
        assert caught.value.hint == "git fetch in that clone"


class TestShallow:
    @pytest.fixture
    def shallow(self, clone: Clone, tmp_path: Path) -> tuple[list[str], EngineRepo]:
        commits = [clone.commit(str(number)) for number in range(4)]
        clone.git("clone", "--quiet", "--depth", "2", f"file://{clone.path}", str(tmp_path / "sh"))
        return commits, EngineRepo(tmp_path / "sh")

    def test_what_it_shows_is_used(self, shallow: tuple[list[str], EngineRepo]) -> None:
        commits, repo = shallow
        assert repo.is_shallow
        assert repo.nearest(commits[:3], commits[3]) == (commits[2], 1)

    def test_that_it_cannot_tell_is_told(self, shallow: tuple[list[str], EngineRepo]) -> None:
        commits, repo = shallow
        with pytest.raises(InputError, match="the history before this commit") as caught:
            repo.nearest(commits[:2], commits[3])
        assert caught.value.hint == "git fetch --unshallow in that clone"
        with pytest.raises(InputError, match="the history before this commit"):
            repo.nearest([commits[3]], commits[2])
        with pytest.raises(InputError) as caught:
            repo.nearest(commits, commits[0])
        assert caught.value.hint == "git fetch --unshallow"


@pytest.mark.parametrize("make", [True, False])
def test_no_clone(tmp_path: Path, make: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    folder = tmp_path / "plain"
    if make:
        folder.mkdir()
    with pytest.raises(InputError, match="not a git clone") as caught:
        EngineRepo(folder)
    assert caught.value.field == "--engine-repo"


def test_no_git(clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="git cannot be started") as caught:
        EngineRepo(clone.path)
    assert caught.value.found == "No such file or directory"


def test_git_that_hangs(clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(slow.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{slow.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(git_query, "WITHIN_S", 0.2)
    with pytest.raises(InputError, match="no answer within 0"):
        EngineRepo(clone.path)


def test_a_repository_named_by_the_environment_is_not_asked(
    clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = clone.commit()
    monkeypatch.setenv("GIT_DIR", str(Clone(tmp_path / "other").path / ".git"))
    assert EngineRepo(clone.path).knows(head)


@each(
    ("one", "other", "same"),
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
