"""The errors perfgate raises on purpose; every message is written for the person who reads it.

The classes of failure are in failure_classes.toml: what each means, and a person's next step.
"""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, fields
from pathlib import Path
from typing import Any

from perfgate.core.files.remembered import toml_beside
from perfgate.core.redaction import MASK, is_secret, mask, redact, redacted_lines, visible


@dataclass(frozen=True)
class Failure:
    """One class of failure.

    Attributes:
        name: its name.
        meaning: what it means.
        next_step: what a person does next.
        of_machine: whether the machine failed rather than what ran on it, so that another try on
            other nodes makes sense.
    """

    name: str
    meaning: str
    next_step: str
    of_machine: bool = False


# Name of each class → what it means.
FAILURES: dict[str, Failure] = {
    name: Failure(name, **facts) for name, facts in toml_beside(__file__, "failure_classes").items()
}


class PerfgateError(Exception):
    """Root of all errors raised on purpose; anything else that escapes is a bug."""

    failure = "config_error"  # the class that a run which meets it fails with


@dataclass(eq=False, repr=False)
class InputError(PerfgateError):
    """Something a person wrote cannot be used: a file, an option, a setting.

    The message names the place (file, line, field), what was found, what was expected and how to
    fix it; parts that do not apply are left out, and secrets are masked.
    """

    problem: str
    _: KW_ONLY
    file: Path | None = None
    line: int | None = None
    field: str | None = None
    found: object = None
    expected: str | None = None
    hint: str | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """All that it was made with, by the names of its arguments; not what a subclass adds."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def __str__(self) -> str:
        place = ""
        if self.file is not None:
            place = f"{self.file}:{self.line}: " if self.line else f"{self.file}: "
        if self.field:
            place += f"{self.field}: "
        parts = [f"{place}{self.problem}"]
        if self.expected:
            parts.append(f"  expected: {self.expected}")
        if self.hint:
            parts.append(f"  fix: {self.hint}")
        shown = [visible(mask(part, by_name=False)) for part in parts]
        if self.found is not None:
            hides = self.field is not None and is_secret(self.field)
            shown.insert(1, f"  found: {MASK if hides else redact(str(self.found))}")
        return "\n".join(shown)


def tabled_error(
    table: Mapping[str, Any], kind: str, file: Path | None, found: object = None, **words: object
) -> InputError:
    """An error whose texts are a row of a table: problem, field, expected, hint.

    Args:
        table: kind → its texts.
        kind: of the error.
        file, found: as `InputError` takes them.
        words: what stands for the braces in the texts.
    """
    texts: dict[str, Any] = {part: text.format(**words) for part, text in table[kind].items()}
    return InputError(file=file, found=found, **texts)


class CannotDo(InputError):
    """What is asked is right, but this build of the engine cannot do it; another could."""


class CliDrift(InputError):
    """The installed program lacks an option that its release should have."""

    failure = "cli_drift"


class SeveralInputErrors(PerfgateError):
    """All that is wrong with a set of files, told at once."""

    def __init__(self, errors: list[InputError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(str(error) for error in errors))


class MissingProgram(PerfgateError):
    """A program that a scenario needs is not installed where perfgate looks for it.

    Args:
        problem: what is missing, and where it was looked for.
        hint: the next step for the person.
    """

    def __init__(self, problem: str, *, hint: str = "") -> None:
        self.problem = problem
        self.hint = hint
        super().__init__(redact("; ".join(part for part in (problem, hint) if part)))


class RunError(PerfgateError):
    """An engine, client or evaluator did not give a usable measurement.

    Message and evidence go into records and reports, and to the terminal: both are redacted here.

    Args:
        failure: the class of the failure, one of `FAILURES`.
        message: what happened, in one sentence.
        evidence: lines of the program's own output that show it, at most a few.
        hint: the next step for the person; that of the class if not given.
    """

    def __init__(
        self,
        failure: str,
        message: str,
        *,
        evidence: tuple[str, ...] = (),
        hint: str | None = None,
    ) -> None:
        self.failure = failure
        self.message = redact(message)
        self.evidence = redacted_lines(evidence)
        self.hint = visible(mask(hint, by_name=False)) if hint else FAILURES[failure].next_step
        super().__init__(str(self))

    def saying(self, message: str) -> "RunError":
        """The same failure, with its evidence and next step, in other words."""
        return RunError(self.failure, message, evidence=self.evidence, hint=self.hint)

    def __str__(self) -> str:
        parts = [f"{self.failure}: {self.message}"]
        parts += [f"  | {line}" for line in self.evidence]
        parts.append(f"  next step: {self.hint}")
        return "\n".join(parts)


def as_run_error(error: PerfgateError) -> RunError:
    """What a run that meets `error` fails with."""
    return error if isinstance(error, RunError) else RunError(error.failure, str(error))


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that differs from `word` in a few letters or in case; None: there is none."""
    lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), lower, n=1)
    return lower[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """The hint of a message: ``did you mean b200?``; None: no known word is near."""
    found = nearest(word, known)
    return None if found is None else f"did you mean {found}?"
