"""A real git repository that stands for the engine's."""

import os
import subprocess
from pathlib import Path

_WHO = {
    f"GIT_{role}_{what}": text
    for role in ("AUTHOR", "COMMITTER")
    for what, text in (("NAME", "Tests"), ("EMAIL", "tests@localhost"))
}


class Clone:
    """A repository to make commits, branches and tags in."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch", "main")

    def git(self, *words: str) -> str:
        """Run git here; what it prints."""
        # Whatever runs these tests may itself be a git hook, or sign its commits.
        kept = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
        done = subprocess.run(
            ["git", "-C", str(self.path), "-c", "commit.gpgsign=false", *words],
            check=True,
            capture_output=True,
            text=True,
            env={**kept, **_WHO, "GIT_CONFIG_GLOBAL": os.devnull},
        )
        return done.stdout.strip()

    def commit(self, message: str = "more") -> str:
        """An empty commit on the current branch; its hash."""
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")
