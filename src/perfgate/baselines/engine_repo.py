"""EngineRepo: a git clone of the engine, asked which commit comes before which. Changes nothing."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from perfgate.core.errors import InputError
from perfgate.core.programs.program_query import WITHIN_S, Answer, NoStatus, git_answer

_HASH = re.compile(r"[0-9a-f]{7,64}")


def same_hash(one: str, other: str) -> bool:
    """Whether two names of commits are the same: equal, or one abbreviates the other's hash."""
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    return bool(_HASH.fullmatch(short) and _HASH.fullmatch(long)) and long.startswith(short)


def ask_git(
    folder: Path, *words: str, field: str | None = None, more: Mapping[str, str] | None = None
) -> Answer:
    """`git_answer` where git must be there and answer.

    Args:
        folder: where, as of ``git -C``.
        words: the command and its arguments.
        field: the option that named the folder, for messages.
        more: variables that it is given besides.

    Raises:
        InputError: git is not installed, or gives no answer in time.
    """
    answer = git_answer(folder, *words, seconds=WITHIN_S, more=more)
    if answer.cause is NoStatus.TOO_LONG:
        raise InputError(
            f"git gave no answer within {WITHIN_S:.0f} s",
            field=field,
            found=f"git {' '.join(words)} in {folder}",
            expected="a clone on a disk that answers",
        )
    if answer.status is None:
        raise InputError(
            "git cannot be started", field=field, found=answer.refusal, expected="git on PATH"
        )
    return answer


class EngineRepo:
    """A clone of the engine's repository.

    A commit is named by its hash, whole or abbreviated, or by a release's tag (``1.2.0`` is also
    ``v1.2.0``), since an engine that tells no commit is known by its version.

    Raises:
        InputError: not a git clone, or git is not installed or gives no answer in time.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[str, str | None] = {}
        self._before: dict[tuple[str, str], int | None] = {}
        answer = self._git("rev-parse", "--git-dir")
        if not answer.is_good:
            raise InputError(
                f"{path}: not a git clone that git can read",
                field="--engine-repo",
                found=answer.stderr.strip() or None,
                expected="a folder with a clone of the engine's repository",
            )
        self.is_shallow = self._git("rev-parse", "--is-shallow-repository").stdout.strip() == "true"

    def knows(self, commit: str) -> bool:
        """Whether the clone has `commit`."""
        return self._resolve(commit) is not None

    def ancestors(self, commits: Sequence[str], of: str) -> dict[str, int]:
        """Those of `commits` that are `of` or come before it, with the commits between.

        What the clone does not have is passed over.

        Raises:
            InputError: the clone does not have `of`.
        """
        self._known_hash(of)
        found = {commit: self._distance(commit, of) for commit in commits}
        return {commit: number for commit, number in found.items() if number is not None}

    def nearest(self, commits: Sequence[str], of: str) -> tuple[str, int] | None:
        """The one of `commits` with the fewest commits between it and `of`, and their number.

        Raises:
            InputError: the clone does not have `of`, or is shallow and shows no ancestor of it.
        """
        found = self.ancestors(commits, of)
        if not found and commits and self.is_shallow:
            raise self._too_shallow(of)
        return min(found.items(), key=lambda one: (one[1], one[0]), default=None)

    def _distance(self, older: str, newer: str) -> int | None:
        """Commits of `newer` that `older` does not have; None if it does not come before it."""
        first, last = self._resolve(older), self._resolve(newer)
        if first is None or last is None:
            return None
        if (first, last) not in self._before:
            number = None
            if self._git("merge-base", "--is-ancestor", first, last).is_good:
                number = int(self._git("rev-list", "--count", f"{first}..{last}").stdout)
            self._before[first, last] = number
        return self._before[first, last]

    def _known_hash(self, commit: str) -> str:
        found = self._resolve(commit)
        if found is None:
            raise InputError(
                "the engine clone does not have this commit",
                field="--engine-repo",
                found=f"{commit} in {self.path}",
                expected="a clone with the history of the build under test",
                hint="git fetch --unshallow" if self.is_shallow else "git fetch in that clone",
            )
        return found

    def _resolve(self, commit: str) -> str | None:
        """The full hash; None if the clone does not have it, or knows several of that name."""
        if commit not in self._known:
            tags = [f"refs/tags/{commit}", f"refs/tags/v{commit}"]
            names = [commit] if _HASH.fullmatch(commit) else tags
            answers = (
                self._git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
                for name in names
            )
            found = (answer.stdout.strip() for answer in answers if answer.is_good)
            self._known[commit] = next(found, None)
        return self._known[commit]

    def _too_shallow(self, commit: str) -> InputError:
        return InputError(
            "the engine clone is shallow: the history before this commit is missing",
            field="--engine-repo",
            found=f"{commit} in {self.path}",
            expected="a clone with its history",
            hint="git fetch --unshallow in that clone",
        )

    def _git(self, *words: str) -> Answer:
        return ask_git(self.path, *words, field="--engine-repo")
