"""GateRepo: the git repository that baselines are kept in, changed only by a new branch.

Neither the checked-out tree nor the index is touched: files go into git's objects through an index
of their own. The branch is made last, by one change of a ref, so whatever ends perfgate before
leaves objects that nothing refers to, which git removes by itself.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from perfgate.core.durable_files import write_text
from perfgate.core.errors import InputError
from perfgate.core.git_query import ask_git
from perfgate.core.program_query import Answer
from perfgate.core.redaction import visible

_FILE = "100644"
# What settings of a person could change about a patch that another git must take.
_PLAIN_PATCH = (
    *("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--no-signature"),
    *("--no-attach", "--no-thread", "--no-cover-letter", "--no-base", "--no-notes", "--numbered"),
    *("--binary", "--full-index", "--src-prefix=a/", "--dst-prefix=b/", "--subject-prefix=PATCH"),
    *("--no-to", "--no-cc", "--no-add-header", "--no-relative", "--no-from", "--no-stat"),
)


@dataclass(frozen=True)
class GateRepo:
    """The repository at one commit.

    Attributes:
        root: the folder that is checked out.
        baselines: the folder of the baselines, from there.
        commit: what a proposal is built on.
    """

    root: Path
    baselines: PurePosixPath
    commit: str

    def export(self, scratch: Path) -> Path:
        """The baselines of the commit as files, in a new folder of `scratch`.

        Raises:
            InputError: one of them is a link, or git fails.
        """
        folder = scratch / "tree" / self.baselines
        folder.mkdir(parents=True)
        tree = f"{self.commit}:{self.baselines}"
        if not self._told("ls-tree", "-d", "-z", self.commit, "--", str(self.baselines)):
            return folder  # there are none yet
        for entry in self._told("ls-tree", "-r", "-z", tree).split("\0"):
            mode, _, rest = entry.partition(" ")
            if mode and mode not in (_FILE, "100755"):
                raise InputError(
                    "a baseline that is no regular file",
                    file=self.root / self.baselines,
                    found=visible(f"mode {mode} of {rest.partition(chr(9))[2]}"),
                    expected="files, as `perfgate baseline promote` writes them",
                )
        index = {"GIT_INDEX_FILE": str(scratch / "baselines.index")}
        self._told("read-tree", "--empty", more=index)
        self._told("read-tree", f"--prefix={self.baselines}/", tree, more=index)
        target = f"{scratch / 'tree'}{os.sep}"
        self._told("checkout-index", "--all", "--force", f"--prefix={target}", more=index)
        return folder

    def committed(
        self, parent: str, files: Sequence[Path], tree: Path, message: str, scratch: Path
    ) -> str:
        """A commit that nothing refers to yet; its hash.

        Args:
            parent: the commit before it.
            files: what it adds or changes, below `tree`.
            tree: a folder that stands for the repository's.
            message: all of the commit's message.
            scratch: a folder for what git needs meanwhile.

        Raises:
            InputError: git fails, or does not know who commits.
        """
        index = {"GIT_INDEX_FILE": str(scratch / "commit.index")}
        self._told("read-tree", parent, more=index)
        for file in files:
            name = file.relative_to(tree).as_posix()
            blob = self._told("hash-object", "-w", f"--path={name}", "--", str(file))
            told = f"{_FILE},{blob},{name}"
            self._told("update-index", "--add", "--cacheinfo", told, more=index)
        text = scratch / "message"
        write_text(text, message)
        made = self._told("write-tree", more=index)
        return self._told("commit-tree", "-p", parent, "-F", str(text), made)

    def require_free(self, branch: str) -> None:
        """Check that `branch` can be the name of a new branch.

        Raises:
            InputError: git takes no such name, or has that branch.
        """
        ref = f"refs/heads/{branch}"
        is_name = self._git("check-ref-format", ref).is_good
        if not is_name or branch.startswith("-") or branch == "HEAD" or "@{" in branch:
            raise InputError(
                "not a name of a branch",
                field="--branch",
                found=repr(branch)[:120],
                expected="a name that git takes for a new branch, as perfgate/baseline-1",
            )
        if self._git("rev-parse", "--verify", "--quiet", ref).is_good:
            raise InputError(
                "the branch exists already",
                field="--branch",
                found=branch,
                expected="a new one: a proposal changes no branch",
                hint=f"give another name, or remove it: git branch -D -- {branch}",
            )

    def make_branch(self, branch: str, commit: str) -> None:
        """Make a branch at once or not at all.

        Raises:
            InputError: it was made meanwhile, or git fails.
        """
        # An empty old value: the ref must not exist.
        self._told(
            "update-ref", "-m", "perfgate baseline propose", f"refs/heads/{branch}", commit, ""
        )

    def patch(self, last: str) -> str:
        """The commits after this one until `last`, as `git am` takes them.

        Raises:
            InputError: git fails.
        """
        words = ("format-patch", "--stdout", *_PLAIN_PATCH, f"{self.commit}..{last}")
        return self._said(*words).stdout

    def who(self) -> str:
        """Who uses git here, ``Name <address>``; empty: git does not know."""
        found = self._git("var", "GIT_AUTHOR_IDENT")
        told = re.fullmatch(r"(.+ <.*>) \d+ [+-]\d{4}", found.stdout.strip())
        return told[1] if found.is_good and told else ""

    def _git(self, *words: str, more: Mapping[str, str] | None = None) -> Answer:
        return ask_git(self.root, *words, more=more)

    def _said(self, *words: str, more: Mapping[str, str] | None = None) -> Answer:
        answer = self._git(*words, more=more)
        if not answer.is_good:
            no_name = "ident" in answer.stderr or "tell me who you are" in answer.stderr
            raise InputError(
                f"git {words[0]} failed",
                file=self.root,
                found=visible(answer.trouble)[:300],
                expected="a repository that git can add commits to",
                hint="git config user.name NAME; git config user.email ADDRESS"
                if no_name
                else None,
            )
        return answer

    def _told(self, *words: str, more: Mapping[str, str] | None = None) -> str:
        return self._said(*words, more=more).stdout.strip()


def gate_repo(baselines: Path) -> GateRepo:
    """The repository that a folder of baselines is in.

    Args:
        baselines: the folder, which need not be there.

    Raises:
        InputError: it is in no git repository, is all of one, or there is no commit yet.
    """
    folder = baselines.resolve()
    there = next(one for one in (folder, *folder.parents) if one.is_dir())
    answer = ask_git(there, "rev-parse", "--show-toplevel")
    if not answer.is_good:
        raise InputError(
            "the baselines are in no git repository, so nobody can be asked to review a change",
            file=baselines,
            found=visible(answer.trouble)[:300],
            expected="a gate repository that is kept in git",
            hint="git init, or `perfgate baseline promote`, which writes the file alone",
        )
    root = Path(answer.stdout.removesuffix("\n")).resolve()
    if folder == root:
        raise InputError(
            "the folder of the baselines is a whole repository",
            file=baselines,
            expected="a folder in one, as `perfgate init` lays it out",
        )
    head = ask_git(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if not head.is_good:
        raise InputError(
            "the repository has no commit yet",
            file=root,
            expected="one that a proposal can be built on",
            hint="git commit first",
        )
    return GateRepo(root, PurePosixPath(folder.relative_to(root).as_posix()), head.stdout.strip())
