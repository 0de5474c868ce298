"""Lines of a printed report, freed from what terminals, launchers and loggers put around them.

Only text is looked at here: what a line means is the business of the report's own parser.
"""

import re
from dataclasses import dataclass

from perfgate.core.errors import RunError
from perfgate.core.measurement import Json
from perfgate.core.redaction import redact

_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
# In front of a line, in any order: mpirun's and srun's rank, dates and times as loggers, log
# collectors and TensorRT-LLM write them, TensorRT-LLM's own marks (issues #6294 and #7104).
_PREFIX = re.compile(
    r"""\s*(?:
        \[\d+,\d+\](?:<std(?:out|err)>)?:
      | \d{1,4}:[ ]
      | \[\d{2}/\d{2}/\d{4}-\d{2}:\d{2}:\d{2}\]
      | \[?\d{4}[-/]\d{2}[-/]\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?\]?(?=\s)
      | \[(?:TRT-LLM|TensorRT-LLM)\]
      | \[(?:[TDVIWEF]|INFO|WARNING|ERROR)\]
      | \[RANK[ ]\d+\]
    )""",
    re.VERBOSE,
)
_GROUPED = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d*)?")
_NUMBER = re.compile(r"[-+]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|nan|inf(?:inity)?)", re.I)
_LONGEST_NUMBER = 300  # characters

_SHOWN = 300  # characters of a line that are shown as evidence


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file.

    Attributes:
        number: its number, from 1 on.
        raw: as it stands in the file.
        text: what the program printed, without blanks at its ends.
    """

    number: int
    raw: str
    text: str

    @property
    def evidence(self) -> str:
        """The line as it is shown to people: redacted."""
        return redact(_ESCAPE.sub("", self.raw).strip())[:_SHOWN]

    def labelled(self) -> tuple[str, str] | None:
        """Label and value of ``label: value``; None for any other line."""
        label, colon, value = self.text.partition(":")
        return (label.rstrip(), value.strip()) if colon and label.strip() else None


def lines_of(content: str) -> tuple[Line, ...]:
    """The lines of a text, blank ones among them."""
    return tuple(line_of(raw, number) for number, raw in enumerate(content.split("\n"), start=1))


def line_of(raw: str, number: int) -> Line:
    """One line; a progress bar that was written over counts as its last state."""
    text = _cleaned(raw)
    return Line(number, raw, raw if text == raw else text)


def _cleaned(raw: str) -> str:
    text = _ESCAPE.sub("", raw).rstrip("\r\n").rpartition("\r")[2]
    begin = 0
    while found := _PREFIX.match(text, begin):
        begin = found.end()
    return text[begin:].strip()


def number(value: str) -> float | None:
    """The number that `value` is, perhaps NaN or infinite; None if it is none.

    Thousands separators, exponents and a percent sign (which is dropped, not divided by) are known.
    """
    text = value.strip().removesuffix("%").strip()
    if len(text) > _LONGEST_NUMBER:
        return None
    if _GROUPED.fullmatch(text):
        text = text.replace(",", "")
    return float(text) if _NUMBER.fullmatch(text) else None


def positive(value: object, evidence: str) -> float:
    """A measured value: a number, finite, above zero.

    Args:
        value: number, or text that must be one.
        evidence: the line or field that it stands in.

    Raises:
        RunError: ``no_metrics``, it is anything else.
    """
    found = not_negative(value, evidence)
    if not found > 0:
        raise _no_metric(found, evidence)
    return found


def not_negative(value: object, evidence: str) -> float:
    """A measured value that may be zero, too; otherwise as `positive`.

    Raises:
        RunError: ``no_metrics``, it is anything else.
    """
    found = number(value) if isinstance(value, str) else value
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise RunError("no_metrics", "a metric has no number", evidence=(evidence,))
    if not 0 <= found < float("inf"):
        raise _no_metric(found, evidence)
    return float(found)


def _no_metric(found: float, evidence: str) -> RunError:
    return RunError("no_metrics", f"a metric is {found:g}", evidence=(evidence,))


def plain_fact(value: object) -> Json:
    """A fact of a decoded report; NaN and infinity are no JSON and become text."""
    if isinstance(value, dict):
        return {str(key): plain_fact(held) for key, held in value.items()}
    if isinstance(value, float) and not abs(value) < float("inf"):
        return str(value)
    return value if isinstance(value, str | int | float | bool) else None


def last_line(lines: tuple[Line, ...]) -> tuple[str, ...]:
    """The last line with something on it, as evidence of where a report stops."""
    return next(((line.evidence,) for line in reversed(lines) if line.evidence), ())
