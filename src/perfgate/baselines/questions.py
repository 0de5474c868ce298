"""Questions: what a task asked, once for each version of it, in a file named by its content.

A baseline names such a file and keeps a bit an answer (`Answers`). Two branches that add the same
version of a task add the same file.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from perfgate.baselines.stored_json import digest, read_stored
from perfgate.core.errors import InputError
from perfgate.core.files.durable_files import write_json
from perfgate.core.files.remembered import remembered
from perfgate.core.metrics import is_accuracy

FOLDER = "questions"  # in a store, beside the folders of hardware; no hardware is called so
SCHEMA_VERSION = 1
_SCHEMA = "questions.schema.json"


@dataclass(frozen=True)
class Questions:
    """The questions of one version of a task.

    Attributes:
        task: the task's name, fit for a folder.
        keys: the questions' keys, sorted.
    """

    task: str
    keys: tuple[str, ...]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of task and keys."""
        return digest({"questions": self.keys, "task": self.task})

    def file(self, store: Path) -> Path:
        """Where they belong in the store in that folder."""
        return _file(store, self.task, self.digest)


def questions_of(metric: str, keys: Iterable[str]) -> Questions:
    """The questions behind a metric."""
    task = metric.split(":")[1] if is_accuracy(metric) else metric
    return Questions(re.sub(r"[^\w+-]", "_", task, flags=re.ASCII) or "_", tuple(sorted(keys)))


def keep(store: Path, asked: Questions) -> Path:
    """Write the questions' file, unless it is there and right."""
    path = asked.file(store)
    try:
        known = read(store, asked.task, asked.digest)
    except InputError:  # missing or damaged
        known = None
    if known is None:
        plain = {"schema_version": SCHEMA_VERSION, "task": asked.task, "questions": asked.keys}
        write_json(path, plain)
    return path


def read(store: Path, task: str, digest: str) -> Questions:
    """The questions that a baseline of the store names.

    Args:
        store: the store's folder.
        task: the task's name, as in `Questions`.
        digest: what the baseline says is the file's content.

    Raises:
        InputError: the file is missing, damaged, or of another content.
    """
    path = _file(store, task, digest)
    try:
        path.stat()
    except OSError as error:
        raise InputError(
            "the questions that a baseline's answers belong to are missing",
            file=path,
            found=error.strerror,
            expected="the file that was written with the baseline",
            hint=f"git checkout -- {path}, or take it from where the baseline was promoted: it "
            "is committed together with the baseline",
        ) from error
    return _read(path)


@remembered(64)
def _read(path: Path) -> Questions:
    hint = f"git checkout -- {path}"
    plain = read_stored(
        path, what="list of questions", schema=_SCHEMA, version=SCHEMA_VERSION, hint=hint
    )
    found = Questions(plain["task"], tuple(plain["questions"]))
    if found.digest != path.stem or found.task != path.parent.name:
        raise InputError(
            "the list of questions was edited by hand",
            file=path,
            found=f"{found.task}/{found.digest[:12]}…",
            expected=f"{path.parent.name}/{path.stem[:12]}…, as its name says",
            hint=hint,
        )
    return found


def _file(store: Path, task: str, digest: str) -> Path:
    return store / FOLDER / task / f"{digest}.json"


class Answers(Mapping[str, bool]):
    """Question key → answered rightly.

    Args:
        questions: the keys, in the order of the bits.
        bits: eight answers a byte, the first in its highest bit; what is left of the last is 0.

    Raises:
        InputError: there are more bits or fewer than the questions need, or one beyond them is set.
    """

    def __init__(self, questions: tuple[str, ...], bits: bytes) -> None:
        left = -len(questions) % 8
        if len(bits) != (len(questions) + left) // 8 or (bits and bits[-1] & ((1 << left) - 1)):
            raise InputError(
                "the answers are not one bit for each question",
                found=f"{len(bits)} bytes for {len(questions)} questions",
            )
        self._questions = questions
        self._bits = bits

    def __len__(self) -> int:
        return len(self._questions)

    def __iter__(self) -> Iterator[str]:
        return iter(self._questions)

    def __getitem__(self, question: str) -> bool:
        return self._right[question]

    def __repr__(self) -> str:
        return f"Answers({dict(self)})"

    @cached_property
    def _right(self) -> Mapping[str, bool]:
        digits = "".join(f"{byte:08b}" for byte in self._bits)
        return {key: digit == "1" for key, digit in zip(self._questions, digits, strict=False)}


def packed(answers: Mapping[str, bool], questions: tuple[str, ...]) -> str:
    """The answers to `questions` as text: their bits (`Answers`) in base64."""
    bits = "".join("1" if answers[key] else "0" for key in questions)
    bits += "0" * (-len(bits) % 8)
    raw = bytes(int(bits[place : place + 8], 2) for place in range(0, len(bits), 8))
    return base64.b64encode(raw).decode()


def unpacked(text: str, questions: tuple[str, ...]) -> Answers:
    """The answers that `packed` made a text of.

    Raises:
        InputError: it is not such a text.
    """
    try:
        bits = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InputError("the answers are not base64", found=text[:40]) from error
    return Answers(questions, bits)
