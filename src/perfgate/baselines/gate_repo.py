"""GateRepo: the git repository that baselines are kept in, changed only by a new branch.

Neither the checked-out tree nor the index is touched: git gets a tree and an index of their own.
The branch is made last, by one change of a ref, so whatever ends perfgate before leaves objects
that nothing refers to, which git removes by itself.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from perfgate.baselines.engine_repo import ask_git
from perfgate.core.errors import InputError
from perfgate.core.files.durable_files import write_text
from perfgate.core.programs.program_query import git_answer
from perfgate.core.redaction import visible

_STATE_WITHIN_S = 20.0
# What settings of a person could change about a patch that another git must take.
_PLAIN_PATCH = (
    *("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--no-signature"),
    *("--no-attach", "--no-thread", "--no-cover-letter", "--no-base", "--no-notes", "--numbered"),
    *("--binary", "--full-index", "--src-prefix=a/", "--dst-prefix=b/", "--subject-prefix=PATCH"),
    *("--no-to", "--no-cc", "--no-add-header", "--no-relative", "--no-from", "--no-stat"),
)


class GateRepo:
    """New commits on the repository's newest; nothing refers to them until `make_branch`.

    Args:
        baselines: the folder of the baselines in the repository, which need not be there.
        scratch: an empty folder of absolute path, for the tree and the index.

    Attributes:
        baselines: the baselines as committed, in a tree of their own; changed files go here.
        last: the newest commit; at first that which is checked out.

    Raises:
        InputError: the folder is in no git repository, or is all of one; there is no commit yet; a
            baseline is a link; or git fails.
    """

    def __init__(self, baselines: Path, scratch: Path) -> None:
        folder = baselines.resolve()
        there = next(one for one in (folder, *folder.parents) if one.is_dir())
        self._root = Path(_git(there, "rev-parse", "--show-toplevel")).resolve()
        if folder == self._root:
            raise InputError(
                "the folder of the baselines is a whole repository",
                file=baselines,
                expected="a folder in one, as `perfgate init` lays it out",
            )
        self._base = self.last = _git(self._root, "rev-parse", "--verify", "HEAD^{commit}")
        self._message = scratch / "message"
        self._tree = scratch / "tree"
        self._own = {
            "GIT_DIR": _git(self._root, "rev-parse", "--absolute-git-dir"),
            "GIT_WORK_TREE": str(self._tree),
            "GIT_INDEX_FILE": str(scratch / "index"),
        }
        name = folder.relative_to(self._root)
        self.baselines = self._tree / name
        self.baselines.mkdir(parents=True)
        self._check_out(name.as_posix())

    @property
    def user(self) -> str:
        """The person that git commits for here, ``Name <address>``.

        Raises:
            InputError: git does not know.
        """
        return self._here("var", "GIT_AUTHOR_IDENT").rsplit(" ", 2)[0]

    def commit(self, files: Sequence[Path], message: str) -> None:
        """Add or change files of the tree in a new commit.

        Raises:
            InputError: git fails, or does not know who commits.
        """
        self._here("read-tree", self.last)
        names = [file.relative_to(self._tree).as_posix() for file in files]
        # Not added from the tree: git would run filters on it whenever it writes the index.
        blobs = self._here("hash-object", "-w", "--no-filters", "--", *names).splitlines()
        for name, blob in zip(names, blobs, strict=True):
            self._here("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}")
        write_text(self._message, message)
        tree = self._here("write-tree")
        self.last = self._here("commit-tree", "-p", self.last, "-F", str(self._message), tree)

    def make_branch(self, name: str) -> None:
        """Make a branch of the commits, at once or not at all.

        Raises:
            InputError: there is one of that name, git takes no such name, or git fails.
        """
        self._here("branch", "--no-track", "--", name, self.last)

    def patch(self) -> str:
        """The commits as `git am` takes them.

        Raises:
            InputError: git fails.
        """
        commits = f"{self._base}..{self.last}"
        return self._here("format-patch", "--stdout", *_PLAIN_PATCH, commits) + "\n"

    def _check_out(self, name: str) -> None:
        """Write the committed baselines into the tree."""
        if not self._here("ls-tree", "-d", self.last, "--", name):
            return  # there are none yet
        self._here("read-tree", f"--prefix={name}/", f"{self.last}:{name}")
        self._here("checkout-index", "--all")
        links = [path for path in self.baselines.rglob("*") if path.is_symlink()]
        if links:
            raise InputError(
                "a baseline that is no regular file",
                file=self._root / name,
                found=visible(links[0].relative_to(self._tree).as_posix()),
                expected="files, as `perfgate baseline promote` writes them",
            )

    def _here(self, *words: str) -> str:
        return _git(self._tree, *words, more=self._own)


def _git(folder: Path, *words: str, more: Mapping[str, str] | None = None) -> str:
    """What git prints.

    Raises:
        InputError: it fails; with what it says.
    """
    answer = ask_git(folder, *words, more=more)
    if not answer.is_good:
        no_name = "ident" in answer.stderr or "tell me who you are" in answer.stderr
        raise InputError(
            f"git {words[0]} failed",
            file=None if more else folder,
            found=visible(answer.trouble)[:300],
            expected="a gate repository that git can add commits and the new branch to",
            hint="git config user.name NAME; git config user.email ADDRESS" if no_name else None,
        )
    return answer.stdout.removesuffix("\n")


def git_state(root: Path) -> dict[str, object]:
    """Commit and dirty flag of the checkout; both None outside of git."""

    def git(*words: str) -> str | None:
        answer = git_answer(root, *words, seconds=_STATE_WITHIN_S)
        return answer.stdout.strip() if answer.is_good else None

    # Of a submodule only its commit: git would look for changes in it by its own settings.
    status = git("status", "--porcelain", "--ignore-submodules=dirty")
    return {"commit": git("rev-parse", "HEAD"), "dirty": None if status is None else bool(status)}
