"""The commands that the documents show: found, checked against what is installed, and run.

A line is run beside what `make setup` installs and must end with status 0, unless a comment before
its block says otherwise, for the whole block or for the lines that begin as it says:

    <!-- status 13: pytest -m b200 --rehearse -->
    <!-- not run, needs GPUs -->

Of a line that is not run, and of a command in the text, the command and its options must exist; a
session of pytest that lacks no file is collected instead. So is a rehearsal whose options and
status other rehearsals show: each option is rehearsed once.

What stands below a line with a prompt must be what it prints, line by line, but for numbers,
folders and what "…" leaves out. Of a line that is not run, a record in `tests` must have the words.
Names of tests, markers, files, variables and fields must exist, but for those of others:

    <!-- not perfgate's: launch.sh -->

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
from fnmatch import filter as matching
from functools import cached_property
from itertools import pairwise, takewhile
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

_HARDWARE = "a100|h20|h100|h200|b200|gb200|local"
_FIELDS = "disturbance|docker|engine|gate|hardware|launch|limits|model|mpirun|slurm|smoke|workload"
# What a word in a document names, if all of it is like this.
_NAMES = {
    "test": re.compile(rf"(?:{_HARDWARE})-[a-z0-9*…-]+"),
    "file": re.compile(r"[a-z0-9_./-]*[a-z0-9_]\.(?:html|jsonl?|md|sbatch|sh|toml|txt|xml|ya?ml)"),
    "variable": re.compile(r"PERFGATE_[A-Z_]+"),
    "field": re.compile(rf"(?:{_FIELDS})(?:\.[a-z_]+)+"),
}
_MARKER = re.compile(r"[a-z_][a-z0-9_]*")
_FOREIGN = re.compile(r"<!-- not perfgate's: (.+) -->")
_BETWEEN = re.compile(r"(?:\\n|[\s(),:;|*\"'`])+")
_WORD = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{3,}(?:_[A-Z]+)*")
# Where names are made or read, and tests of that.
_SOURCES = ("src", "ci", "scenarios", "perf_tests", "requirements", "tests", "benchmarks")
_LISTS = (
    *("perfgate scenarios list", "pytest --markers"),
    "pytest --collect-only -q -m 'opt_in or not opt_in'",
)
# Where output stands that a test compares with what is printed, or that a template makes.
_RECORDS = (
    *("tests/data/cli/*.txt", "tests/data/reports/**/*.txt", "tests/data/reports/**/*.md"),
    *("tests/*/**/*.py", "src/**/templates/*.*"),
)
_OWN_ID = re.compile(r"^ *- id: (\S+)$", re.MULTILINE)
# What differs from run to run: folders, names of runs, commits, numbers, the width of a table.
_FREE = (
    (r"\S*/(?=\S)", ""),
    (r"\b\d{8}-\d{6}(?:-\d+)?\b|\b[0-9a-f]{7,40}\b", "#"),
    (r"(?<![\w-])(?<!status )[<>+-]?\s?\d[\d.,:]*(?:rc\d+)?(?!\w)", "#"),
    ("─+", "─"),
)


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
    output: tuple[str, ...] = ()

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

    @cached_property
    def markers(self) -> list[str]:
        """The markers that it selects by, unless it shows how wrong ones are refused."""
        pairs = pairwise(self.words) if self.status in (0, 13) else ()
        texts = [word for option, word in pairs if option == "-m"]
        return sorted({*_MARKER.findall(" ".join(texts))} - {"and", "or", "not"})

    @property
    def of_perfgate(self) -> bool:
        """Whether it calls perfgate or its suite."""
        return self.words[0] in ("pytest", "perfgate")

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
class Name:
    """A word of a document, and what sort of thing it names."""

    place: str
    kind: str
    word: str


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
    below = False  # whether nothing but a sentence stands between a command and this
    for place, paragraph, language in _paragraphs(text, name):
        if isinstance(paragraph, str):
            below = below and paragraph.endswith(":")
            if paragraph.startswith(("<!-- status", "<!-- not run")):
                marks.append(_Mark.read(place, paragraph))
            elif marks:
                raise DocumentError(f"{marks[0].place}: no block of commands follows")
            continue
        if below and language == "text":
            raise DocumentError(f"{place}: show what a command prints below it, behind a prompt")
        block = [replace(line, place=f"{name}:{line.place}") for line in _commands(paragraph)]
        below = bool(block)
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
    for place, span in _spans(text, name):
        if _COMMAND.match(span):
            found.append(Line(place, span))
    return found


def names(text: str, name: str) -> list[Name]:
    """What the text and the commands of a document name, without what is not perfgate's."""
    foreign = {word for words in _FOREIGN.findall(text) for word in words.split(", ")}
    called = [line for line in (*lines(text, name), *mentions(text, name)) if line.of_perfgate]
    words = [*_spans(text, name)]
    words += [(line.place, word) for line in called for word in line.words if "." not in word]
    found = [Name(line.place, "marker", word) for line in called for word in line.markers]
    for place, word in words:
        kinds = (kind for kind, pattern in _NAMES.items() if pattern.fullmatch(word))
        if (kind := next(kinds, None)) and word not in foreign:
            parts = {"field": word.split(".")[1:], "file": [Path(word).name]}
            found += [Name(place, kind, part) for part in parts.get(kind, [word])]
    return found


def _spans(text: str, name: str) -> Iterator[tuple[str, str]]:
    """Where in the running text of a document something stands as code, and what it is."""
    for place, paragraph, _ in _paragraphs(text, name):
        if isinstance(paragraph, str):
            for span in _INLINE.findall(paragraph):
                yield place, " ".join(span.split())


def _paragraphs(text: str, name: str) -> Iterator[tuple[str, str | Block, str]]:
    """Where each paragraph, comment or block of code begins, what it is, and a block's language."""
    block: Block = []
    prose: Block = []
    fenced = False
    language = ""

    def ended(what: Block) -> Iterator[tuple[str, str | Block, str]]:
        if what:
            content = list(what) if what is block else "\n".join(line for _, line in what)
            yield f"{name}:{what[0][0]}", content, language
            what.clear()

    for number, line in enumerate(text.splitlines(), 1):
        fence = line.lstrip().startswith("```")
        indented = line.startswith("    ") and not prose
        if fence:
            yield from ended(block if fenced else prose)
            fenced = not fenced
            language = line.strip().removeprefix("```")
        elif fenced or (indented and line.strip()):
            block.append((number, line))
        elif line.lstrip().startswith("<!--") or not line.strip():
            yield from ended(prose)
            yield from ended(block)
            if line.strip():
                yield f"{name}:{number}", line.strip(), ""
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
            if found and line:
                found[-1] = replace(found[-1], output=(*found[-1].output, line))
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
        if status != line.status:
            wrong: str | None = f"ended with {status}, not {line.status}"
        else:
            wrong = None if line.reason else _unlike(line.output, said.splitlines())
        return wrong and f"{line.place}: {line.tried}\n{wrong}:\n{said[-3000:]}"

    def unrecorded(self, line: Line) -> str | None:
        """What a line that is not run is shown to print, though no record has it."""
        if line.reason is not None:
            for shown in line.output:
                if not any(_is_within(_words(shown), words) for words in self._records):
                    return f"{line.place}: {line.command}\nno record has a line like: {shown}"
        return None

    def missing(self, name: Name) -> str | None:
        """That nothing has a name, if so."""
        known = self._known[name.kind]
        if name.word in known or matching(known, name.word.replace("…", "*")):
            return None
        return f"{name.place}: no such {name.kind}: {name.word}"

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

    @cached_property
    def _records(self) -> set[tuple[str, ...]]:
        """The words of each recorded line."""
        files = [path for pattern in _RECORDS for path in self.root.glob(pattern)]
        texts = [file.read_text(encoding="utf-8") for file in files]
        return {_words(line) for text in texts for line in text.splitlines()}

    @cached_property
    def _known(self) -> dict[str, set[str]]:
        """All names of each kind."""
        files = [path for name in _SOURCES for path in self.root.glob(f"{name}/**/*.*")]
        files = [*self.root.glob("*.*"), *(path for path in files if "data" not in path.parts)]
        texts = [path.read_text("utf-8", "replace") for path in files if path.is_file()]
        schemas = [path.read_text("utf-8") for path in files if path.name.endswith(".schema.json")]
        pages = "\n".join(path.read_text("utf-8") for path in documents(self.root))
        listed = "\n".join(self.run(call)[1] for call in _LISTS)
        return {
            "test": {*re.findall(r"[\w-]+", listed), *_OWN_ID.findall(pages)},
            "marker": {*re.findall(r"@pytest\.mark\.(\w+)", listed)},
            "file": {*(path.name for path in files), *_all(r"[.\w-]*\w", texts)},
            "variable": _all(r"PERFGATE_\w+", texts)
            | {f"PERFGATE_PROGRAM_{name}" for name in _all(r"`([A-Z_]+)`", [pages])},
            "field": _all(r'"(\w+)": \{', schemas),
        }


def _all(pattern: str, texts: Sequence[str]) -> set[str]:
    return {word for text in texts for word in re.findall(pattern, text)}


def _stable(line: str) -> str:
    """A printed line without what differs from run to run."""
    for pattern, word in _FREE:
        line = re.sub(pattern, word, line)
    return " ".join(line.split())


def _unlike(shown: Sequence[str], printed: Sequence[str]) -> str | None:
    """Which line of what is shown is not printed where it should be, if one is not."""
    rest = [line for text in printed if (line := _stable(text))]
    elided = False
    for line in shown:
        if line == "…":
            elided = True
            continue
        pattern = ".*".join(map(re.escape, _stable(line).split("…")))
        hit = next((n for n, text in enumerate(rest) if re.fullmatch(pattern, text)), None)
        if hit is None or (hit and not elided):
            return f"does not print: {line}"
        rest = rest[hit + 1 :]
        elided = False
    return f"does not show: {rest[0]}" if shown and rest and not elided else None


def _words(line: str) -> tuple[str, ...]:
    """The words of a line that are the same in all runs: neither numbers nor names."""
    return tuple(word for word in _BETWEEN.split(line) if _WORD.fullmatch(word))


def _is_within(some: Sequence[str], words: Sequence[str]) -> bool:
    """Whether some words are among others, in the same order."""
    rest = iter(words)
    return all(word in rest for word in some)


def _verb(words: list[str]) -> list[str]:
    """The command and its command: what comes before options, names and placeholders."""
    verb = []
    for word in words[:2]:
        if not re.fullmatch("[a-z]+", word):
            break
        verb.append(word)
    return verb


def read(root: Path) -> tuple[list[Line], list[Line], list[Name]]:
    """The lines of all documents, the commands in their text, and what they name.

    Raises:
        DocumentError: see `lines`; or a line that is not harmless has no mark.
    """
    shown: list[Line] = []
    mentioned: list[Line] = []
    named: list[Name] = []
    for path in documents(root):
        text, name = path.read_text(), str(path.relative_to(root))
        shown += lines(text, name)
        mentioned += mentions(text, name)
        named += names(text, name)
    for line in shown:
        if line.reason is None and not line.harmless:
            raise DocumentError(f"{line.place}: measures or changes something: mark it as not run")
    return shown, mentioned, named


def spare_rehearsals(shown: Sequence[Line]) -> list[Line]:
    """The same lines, but rehearsals that show nothing new are collected; most options first."""
    known: set[str] = set()
    spared: set[Line] = set()
    rehearsals = [line for line in shown if line.rehearses and line.reason is None]
    for line in sorted(rehearsals, key=lambda one: -len(one.shows)):
        if line.shows <= known and not line.output:
            spared.add(line)
        known |= line.shows
    return [
        replace(line, status=0, reason="shown by other rehearsals") if line in spared else line
        for line in shown
    ]


def _to_try(shown: Sequence[Line]) -> list[Line]:
    """The lines that are tried, each once; those that take longest first."""
    triable = (line for line in shown if line.tried is not None)
    different = {(line.status, line.output, line.tried): line for line in triable}
    return sorted(different.values(), key=lambda line: not (line.rehearses and line.reason is None))


def main() -> int:
    """Try every line; tell what is wrong, and of each line how it went."""
    bare = Path(sys.executable).parent
    path = f"{bare}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    place = Place(ROOT, {**os.environ, "PATH": path})
    try:
        shown, mentioned, named = read(ROOT)
    except DocumentError as error:
        print(error)
        return 1
    faults = [fault for line in (*shown, *mentioned) if (fault := place.unknown(line))]
    faults += [fault for line in shown if (fault := place.unrecorded(line))]
    faults += [fault for name in named if (fault := place.missing(name))]
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
