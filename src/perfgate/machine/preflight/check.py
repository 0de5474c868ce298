"""Check: one question about a machine, and its answer. Whatever could not be asked is unknown."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Generic, Literal, TypeVar

from perfgate.machine.preflight.need import Need
from perfgate.machine.reading import NotReadable

Outcome = Literal["ok", "warning", "failed", "unknown"]
Facts = TypeVar("Facts")

# What all GPUs together amount to is the worst of them; not knowing is worse than being well.
WORST_FIRST: tuple[Outcome, ...] = ("failed", "warning", "unknown", "ok")


@dataclass(frozen=True)
class Check:
    """One question and its answer.

    Attributes:
        name: what was looked at.
        outcome: "failed": nothing may be started; "warning": numbers may suffer; "unknown": it
            could not be looked at.
        found: what was found; of an unknown one, why not.
        expected: what would have been well.
        hint: how to mend it; empty where there is nothing to mend.
    """

    name: str
    outcome: Outcome
    found: str
    expected: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Finding:
    """What the facts amount to.

    Attributes:
        outcome: as a check's.
        text: what was found.
        expected: what would have been well, where that depends on what is needed.
        hint: how to mend it, likewise.
    """

    outcome: Outcome
    text: str
    expected: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Case(Generic[Facts]):
    """What a rule is asked about: facts of this machine, and what is needed of it."""

    facts: Facts
    need: Need


Judge = Callable[[Case[Facts]], Finding | None]


@dataclass(frozen=True)
class Rule(Generic[Facts]):
    """One question.

    Attributes:
        name: what is looked at.
        judge: what the facts amount to; None where the question does not apply.
        expected: what is well, as far as that does not depend on what is needed.
        hint: how to mend it, likewise.
    """

    name: str
    judge: Judge[Facts]
    expected: str = ""
    hint: str = ""

    def check(self, finding: Finding) -> Check:
        """The answer; only what is known to be wrong can be mended."""
        is_wrong = finding.outcome in ("failed", "warning")
        return Check(
            self.name,
            finding.outcome,
            finding.text,
            finding.expected or self.expected,
            (finding.hint or self.hint) if is_wrong else "",
        )


def rule(
    rules: list[Rule[Facts]], name: str, expected: str = "", hint: str = ""
) -> Callable[[Judge[Facts]], Judge[Facts]]:
    """Make the function a rule of `rules`; a fact that it needs and cannot be read is unknown."""

    def add(judge: Judge[Facts]) -> Judge[Facts]:
        @wraps(judge)
        def judge_readable(case: Case[Facts]) -> Finding | None:
            try:
                return judge(case)
            except NotReadable as error:
                return Finding("unknown", str(error))

        rules.append(Rule(name, judge_readable, expected, hint))
        return judge_readable

    return add


def gib(size: float) -> str:
    """A size in bytes, for people."""
    return f"{size / 2**30:.1f} GiB" if size >= 2**29 else f"{size / 2**20:.0f} MiB"
