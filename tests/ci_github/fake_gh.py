"""A program `gh` that answers from files and notes its calls."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Gh:
    """A program `gh` that answers from files and notes its calls.

    Attributes:
        folder: `head`, the repository of the code of each workflow run; `open`, the open pull
            requests of the branch that it is asked for; `forbidden`, if it opens none.
    """

    folder: Path

    @property
    def calls(self) -> list[str]:
        """The words of each call, blanks between."""
        noted = self.folder / "calls"
        return noted.read_text().splitlines() if noted.exists() else []

    def answers(self, name: str, text: str) -> None:
        """Have it answer with this text from now on."""
        (self.folder / name).write_text(f"{text}\n")


SCRIPT = """\
#!/bin/sh
printf '%s\\n' "$*" >>FOLDER/calls
case "$1 $2" in
  "api repos/octo/gate/actions/runs/"*) cat FOLDER/head ;;
  "api repos/octo/gate/pulls?state=open&head=octo:perfgate/baselines-nightly") cat FOLDER/open ;;
  "pr create") [ ! -s FOLDER/forbidden ] || { cat FOLDER/forbidden >&2; exit 1; } ;;
  "auth setup-git") ;;
  *) exit 4 ;;
esac
"""
