"""JSON that another program, a person or a pull request wrote, read within limits.

The standard library reads it; it raises `RecursionError` for a document nested too deep and another
error for a whole number of more than 4,300 digits, so that what holds either would otherwise
look like a bug of perfgate. The limits are far above what any real file needs
(docs/reference/settings.md).
"""

import json
import math
from collections import Counter
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

from perfgate.core.errors import InputError

LARGEST_DOCUMENT = 256 * 2**20  # bytes: a serving benchmark's result with every request's tokens
LARGEST_OWN = 64 * 2**20  # bytes: a baseline with the answers to 100,000 questions, several times
LARGEST_LINE = 16 * 2**20  # bytes: an lm_eval sample repeats a prompt of 128,000 tokens some times
DEEPEST = 64  # levels of brackets: configurations in real results have about ten
LONGEST_WHOLE_NUMBER = 300  # digits: the largest float has 309
_SHOWN = 60


@dataclass(eq=False, repr=False)
class JsonError(ValueError):
    """The text is not JSON, or beyond a limit.

    Attributes:
        problem: what is wrong, to follow the name of what was read: ``is not JSON``.
        line: where; None: not known.
        found: what stands there.
        expected: what a text within the limit holds.
        is_cut: it is not whole JSON, as what a killed program leaves.
    """

    problem: str
    _: KW_ONLY
    line: int | None = None
    found: str | None = None
    expected: str | None = None
    is_cut: bool = False

    def __str__(self) -> str:
        return f"{self.problem}: {self.found}" if self.found else self.problem

    def input_error(
        self, what: str, *, file: Path, line: int | None = None, hint: str | None = None
    ) -> InputError:
        """The same for a person, with the file and, of one line among many, its number."""
        return InputError(
            f"{what} {self.problem}",
            file=file,
            line=line or self.line,
            found=self.found,
            expected=self.expected,
            hint=hint,
        )


def parse(text: str | bytes, *, limit: int = LARGEST_DOCUMENT, own: bool = False) -> Any:
    """Read one JSON document.

    Args:
        text: the document; bytes are UTF-8. A byte order mark is passed over.
        limit: the most bytes (of a text: characters).
        own: it is in a format of perfgate, which has each field once and no number that is not
            finite. Programs write ``NaN``, which is for the reader of a value to judge.

    Raises:
        JsonError: it is not JSON, too large, nested too deep, or holds a number of too many digits;
            if `own`, a field twice or a number that is not finite.
    """
    if len(text) > limit:
        raise _beyond("is too large", f"{len(text)} bytes", f"{limit} bytes")
    try:
        # utf-8-sig: editors of other systems begin a file with a byte order mark.
        whole = text.decode("utf-8-sig") if isinstance(text, bytes) else text.removeprefix("\ufeff")
        strict: dict[str, Any] = {"parse_float": _finite, "parse_constant": _finite}
        strict["object_pairs_hook"] = _once
        value = json.loads(whole, parse_int=_whole, **(strict if own else {}))
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        found = f"byte 0x{error.object[error.start]:02x}"
        raise JsonError("is not UTF-8 text", line=line, found=found, is_cut=True) from None
    except json.JSONDecodeError as error:
        raise JsonError("is not JSON", line=error.lineno, found=error.msg, is_cut=True) from None
    except RecursionError:
        raise _too_deep() from None
    if _is_too_deep(value):
        raise _too_deep()
    return value


def parse_object(text: str | bytes, *, limit: int = LARGEST_DOCUMENT, own: bool = False) -> Any:
    """Read one JSON document that must be an object; see `parse`."""
    value = parse(text, limit=limit, own=own)
    if not isinstance(value, dict):
        raise JsonError("is not a JSON object", found=_shortened(json.dumps(value)))
    return value


def _is_too_deep(value: object, levels: int = DEEPEST) -> bool:
    """Whether brackets are nested in more than so many levels."""
    if not isinstance(value, dict | list):
        return False
    held = value.values() if isinstance(value, dict) else value
    nested = (one for one in held if isinstance(one, dict | list))
    return not levels or any(_is_too_deep(one, levels - 1) for one in nested)


def _beyond(problem: str, found: str, limit: str) -> JsonError:
    expected = f"at most {limit} (docs/reference/settings.md)"
    return JsonError(problem, found=found, expected=expected)


def _too_deep() -> JsonError:
    found = f"more than {DEEPEST} levels of brackets"
    return _beyond("is nested too deep", found, f"{DEEPEST} levels")


def _whole(text: str) -> int:
    if len(text) > LONGEST_WHOLE_NUMBER:
        found, limit = f"{_shortened(text)} of {len(text)} digits", f"{LONGEST_WHOLE_NUMBER} digits"
        raise _beyond("holds a number of too many digits", found, limit)
    return int(text)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise JsonError("is not JSON", found=f"not a finite number: {_shortened(text)}")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = Counter(name for name, _ in pairs)
        twice = repr(_shortened(names.most_common(1)[0][0]))
        raise JsonError("has a field twice", found=twice, expected="each field once")
    return fields


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
