"""The commands that the documents show: found, checked against what is installed, and run.

A line is run beside what `make setup` installs and must end with status 0, unless a comment before
its block says otherwise, for the whole block or for the lines that begin as it says:

    <!-- status 13: pytest -m b200 --rehearse -->
    <!-- not run, needs GPUs -->

Of a line that is not run, and of a command in the text, the command and its options must exist; a
session of pytest that lacks no file is collected instead. So is a rehearsal whose options and
status other rehearsals show: each option is rehearsed once. Not looked at: what a line prints.

    .venv/bin/python ci/maintenance/documented_lines.py      exit status: 0 all hold, 1 some do not
"""

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Why a line is not run, and whether its session of pytest can be collected all the same.
REASONS = {
    "needs GPUs": True,
    "needs a cluster": True,
    "needs make local": True,
    "needs your files": False,
    "changes the system": False,
    "changes the checkout": False,
    "a step of .ci/run": False,
    "a step of ci/maintenance/wheel.sh": False,
    "shown by other rehearsals": True,
}

_PROGRAMS = ("pytest", "perfgate", "make", "python", "python3", "pip", "docker", "nightly.sh")
_ASSIGNMENT = re.compile(r"[A-Z_]+=")
_COMMAND = re.compile(
    rf"(?:[A-Z_]+=\S* )*(?:\S+/)?(?:{'|'.join(map(re.escape, _PROGRAMS))})(?= |$)"
)
_MARK = re.compile(r"<!-- (?:status (\d+)|not run, ([^:]*?))(?:: (.+))? -->")
_INLINE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
_TIMEOUT_S = 900


Block = list[tuple[int, str]]  # lines of code, each with its number


class DocumentError(Exception):
    """A mark that says nothing, or names what is not there."""


@dataclass(frozen=True)
class Line:
    """A command, where it stands, the status it must end with, or why it is not run."""

    place: str
    command: str
    status: int = 0
    reason: str | None = None

    @cached_property
    def words(self) -> list[str]:
        """The program, without its folder, and its arguments; pytest by itself, not by python."""
        words = self.argv[len(self.variables) :]
        words[0] = Path(words[0]).name
        return words[2:] if words[1:3] == ["-m", "pytest"] else words

    @cached_property
    def variables(self) -> list[str]:
        """The variables before the program."""
        return list(takewhile(_ASSIGNMENT.match, self.argv))

    @cached_property
    def argv(self) -> list[str]:
        """Its words as the shell reads them, variables first; no comment."""
        return shlex.split(self.command, comments=True)

    @property
    def rehearses(self) -> bool:
        """Whether it runs many scenarios with mock programs, for up to some minutes."""
        return any(word.startswith("--rehearse") for word in self.words)

    @property
    def shows(self) -> set[str]:
        """What it is an example of: each of its options, and how it ends."""
        return {*filter(_OPTION.match, self.words), f"status {self.status}"}

    @property
    def harmless(self) -> bool:
        """Whether it can be run anywhere: it measures nothing, installs nothing, takes no node."""
        program, *rest = self.words
        if program == "pytest":
            return self.rehearses or not {"--collect-only", "--help"}.isdisjoint(rest)
        return program == "perfgate"

    @property
    def tried(self) -> str | None:
        """What the shell is given in order to try it; None if it cannot be tried."""
        if self.reason is None:
            return self.command
        if REASONS[self.reason] and self.words[0] == "pytest":
            return shlex.join((*self.variables, *self.words, "--collect-only", "-q"))
        return None


@dataclass(frozen=True)
class _Mark:
    """What a comment says of the next block's lines that begin with `start`."""

    place: str
    status: int
    reason: str | None
    start: str

    @classmethod
    def read(cls, place: str, text: str) -> "_Mark":
        found = _MARK.fullmatch(text.strip())
        if not found:
            raise DocumentError(f"{place}: not understood: {text.strip()}")
        status, reason, start = found.groups()
        if reason is not None and reason not in REASONS:
            raise DocumentError(f"{place}: unknown reason {reason!r}; known: {', '.join(REASONS)}")
        return cls(place, int(status or 0), reason, start or "")


def documents(root: Path) -> list[Path]:
    """The documents whose commands are held to be true."""
    pages = ("README.md", "CONTRIBUTING.md", "SECURITY.md")
    return [*(root / page for page in pages), *sorted((root / "docs").rglob("*.md"))]


def lines(text: str, name: str) -> list[Line]:
    """The commands in the code blocks of a document, with what the marks say of them.

    Raises:
        DocumentError: a mark is not understood, or is about nothing.
    """
    found: list[Line] = []
    marks: list[_Mark] = []
    for place, paragraph in _paragraphs(text, name):
        if isinstance(paragraph, str):
            if paragraph.startswith(("<!-- status", "<!-- not run")):
                marks.append(_Mark.read(place, paragraph))
            elif marks:
                raise DocumentError(f"{marks[0].place}: no block of commands follows")
            continue
        block = [replace(line, place=f"{name}:{line.place}") for line in _commands(paragraph)]
        for mark in marks:
            if not any(line.command.startswith(mark.start) for line in block):
                raise DocumentError(f"{mark.place}: no command in the next block begins so")
        found += [_marked(line, marks) for line in block]
        marks = []
    if marks:
        raise DocumentError(f"{marks[0].place}: no block of commands follows")
    return found


def mentions(text: str, name: str) -> list[Line]:
    """The commands in the running text of a document, each with its number of line."""
    found = []
    for place, paragraph in _paragraphs(text, name):
        if isinstance(paragraph, str):
            spans = (" ".join(span.split()) for span in _INLINE.findall(paragraph))
            found += [Line(place, span) for span in spans if _COMMAND.match(span)]
    return found


def _paragraphs(text: str, name: str) -> Iterator[tuple[str, str | Block]]:
    """Where each paragraph, comment or block of code begins, and what it is."""
    block: Block = []
    prose: Block = []
    fenced = False

    def ended(what: Block) -> Iterator[tuple[str, str | Block]]:
        if what:
            place = f"{name}:{what[0][0]}"
            yield (place, list(what) if what is block else "\n".join(line for _, line in what))
            what.clear()

    for number, line in enumerate(text.splitlines(), 1):
        fence = line.lstrip().startswith("```")
        indented = line.startswith("    ") and not prose
        if fence:
            yield from ended(block if fenced else prose)
            fenced = not fenced
        elif fenced or (indented and line.strip()):
            block.append((number, line))
        elif line.lstrip().startswith("<!--") or not line.strip():
            yield from ended(prose)
            yield from ended(block)
            if line.strip():
                yield f"{name}:{number}", line.strip()
        else:
            yield from ended(block)
            prose.append((number, line))
    yield from ended(block)
    yield from ended(prose)


def _commands(block: Block) -> list[Line]:
    """The commands of a block: its lines with a prompt, else all that name a known program."""
    prompted = any(line.lstrip().startswith("$ ") for _, line in block)
    found: list[Line] = []
    going_on = False
    for number, raw in block:
        line = raw.strip()
        if going_on:
            found[-1] = replace(found[-1], command=found[-1].command[:-1] + line)
        elif line.startswith("$ ") or not prompted:
            command = line.removeprefix("$ ")
            if not _COMMAND.match(command):
                continue
            found.append(Line(str(number), command))
        else:
            continue
        going_on = line.endswith("\\")
    return found


def _marked(line: Line, marks: list[_Mark]) -> Line:
    for mark in marks:
        if line.command.startswith(mark.start):
            line = replace(line, status=mark.status, reason=mark.reason)
    return line


@dataclass(frozen=True)
class Place:
    """A checkout and what is installed for it: the programs first on PATH of `environment`."""

    root: Path
    environment: Mapping[str, str]

    def run(self, command: str) -> tuple[int, str]:
        """The exit status of a line of shell, and what it printed."""
        try:
            done = subprocess.run(
                ("/usr/bin/env", "bash", "-c", command),
                cwd=self.root,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return 124, f"not done after {_TIMEOUT_S} s"
        return done.returncode, done.stdout

    def fault(self, line: Line) -> str | None:
        """Try a line; what is wrong with it, if something is."""
        if line.tried is None:
            return None
        status, said = self.run(line.tried)
        if status == line.status:
            return None
        return (
            f"{line.place}: {line.tried}\nended with {status}, not {line.status}:\n{said[-3000:]}"
        )

    def unknown(self, line: Line) -> str | None:
        """Which command or option of a line does not exist, if one does not."""
        program, *rest = line.words
        if program == "make":
            targets = re.findall(r"^([a-z-]+):", (self.root / "Makefile").read_text(), re.MULTILINE)
            missing = [word for word in rest if word not in targets]
        elif program in ("pytest", "perfgate"):
            options = [word for word in rest if _OPTION.match(word)]
            verb = _verb(rest) if program == "perfgate" else []
            known = self._options(program, *verb)
            if known is None:
                return f"{line.place}: {line.command}: no such command"
            missing = [word for word in options if word.partition("=")[0] not in known]
        else:
            return None
        return f"{line.place}: {line.command}: unknown: {', '.join(missing)}" if missing else None

    def _options(self, *words: str) -> set[str] | None:
        """The options that a program's or a command's `--help` shows; None if it has no help."""
        if words not in self._helps:
            status, said = self.run(shlex.join((*words, "--help")))
            self._helps[words] = set(_OPTION.findall(said)) if status == 0 else None
        return self._helps[words]

    @cached_property
    def _helps(self) -> dict[tuple[str, ...], set[str] | None]:
        return {}


def _verb(words: list[str]) -> list[str]:
    """The command and its command: what comes before options, names and placeholders."""
    verb = []
    for word in words[:2]:
        if not re.fullmatch("[a-z]+", word):
            break
        verb.append(word)
    return verb


def read(root: Path) -> tuple[list[Line], list[Line]]:
    """The lines of all documents, and the commands in their text.

    Raises:
        DocumentError: see `lines`; or a line that is not harmless has no mark.
    """
    shown: list[Line] = []
    mentioned: list[Line] = []
    for path in documents(root):
        text, name = path.read_text(), str(path.relative_to(root))
        shown += lines(text, name)
        mentioned += mentions(text, name)
    for line in shown:
        if line.reason is None and not line.harmless:
            raise DocumentError(f"{line.place}: measures or changes something: mark it as not run")
    return shown, mentioned


def spare_rehearsals(shown: Sequence[Line]) -> list[Line]:
    """The same lines, but rehearsals that show nothing new are collected; most options first."""
    known: set[str] = set()
    spared: set[Line] = set()
    rehearsals = [line for line in shown if line.rehearses and line.reason is None]
    for line in sorted(rehearsals, key=lambda one: -len(one.shows)):
        if line.shows <= known:
            spared.add(line)
        known |= line.shows
    return [
        replace(line, status=0, reason="shown by other rehearsals") if line in spared else line
        for line in shown
    ]


def _to_try(shown: Sequence[Line]) -> list[Line]:
    """The lines that are tried, each once; those that take longest first."""
    different = {(line.status, line.tried): line for line in shown if line.tried is not None}
    return sorted(different.values(), key=lambda line: not (line.rehearses and line.reason is None))


def main() -> int:
    """Try every line; tell what is wrong, and of each line how it went."""
    bare = Path(sys.executable).parent
    path = f"{bare}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    place = Place(ROOT, {**os.environ, "PATH": path})
    try:
        shown, mentioned = read(ROOT)
    except DocumentError as error:
        print(error)
        return 1
    faults = [fault for line in (*shown, *mentioned) if (fault := place.unknown(line))]
    tried = _to_try(spare_rehearsals(shown))

    def attempt(line: Line) -> str | None:
        begin = time.monotonic()
        fault = place.fault(line)
        word = "FAILED" if fault else f"status {line.status}"
        print(f"{word}, {time.monotonic() - begin:.0f} s: {line.place}: {line.tried}", flush=True)
        return fault

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        faults += [fault for fault in pool.map(attempt, tried) if fault]
    print(*faults, f"{len(tried)} lines tried, {len(faults)} faults", sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
