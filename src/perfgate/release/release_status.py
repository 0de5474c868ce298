"""Release status: what each `perfgate release` verb tells the shell (docs/reference/release.md).

The texts of all refusals are in refusals.toml, by their status.
"""

from enum import IntEnum
from typing import Any

from perfgate.core.errors import InputError
from perfgate.core.files.remembered import toml_beside

_REFUSALS: dict[str, Any] = toml_beside(__file__, "refusals")
_PARTS = {"file", "field", "found", "expected", "hint"}


class ReleaseStatus(IntEnum):
    """Exit statuses of `perfgate release`; 2, 15 and 16 are those of every `perfgate` verb."""

    PASSED = 0
    """PASSED, or WARNED without --strict."""
    FAILED = 1
    """A required verdict is a regression, or a floor is broken."""
    WARNED = 20
    """With --strict: everything required is there, some of it let through by waiver or policy."""
    INCOMPLETE = 21
    """Something required is missing, undecided, stale, synthetic or of other hardware."""
    POLICY = 22
    """The policy selects nothing, names an unknown marker, or contradicts itself."""
    MIXED = 23
    """The runs are not of the one build that the policy names."""
    CLOCK = 24
    """A time lies in the future."""
    BROKEN_PACK = 25
    """A byte of the pack was changed, or a file is missing or extra, or it is no pack."""
    OTHER_VERSION = 26
    """Another perfgate made the pack, or judged a run in it."""
    SIGNATURE = 27
    """No signature, a wrong one, or one of an unknown signer."""
    KEY = 28
    """A key cannot be used, or others can read it."""
    NOT_REPRODUCED = 29
    """A verdict, number or report made again from the raw files is not the packed one."""
    OTHER_RELEASE = 30
    """The pack is intact, and of another release, build, policy or subject than asked for."""
    EXPIRED = 31
    """A waiver has ended, or the evidence is older than the policy allows."""

    def refusal(self, name: str, **fields: Any) -> "ReleaseRefused":
        """The refusal of this status and name in refusals.toml.

        Args:
            name: its name there.
            fields: file, field, found, expected and hint of an `InputError`, which go before those
                of the table; and what the texts of the table have in braces.
        """
        table = _REFUSALS[self.name]
        texts = {**{part: text for part, text in table.items() if part in _PARTS}, **table[name]}
        given = {part: text.format(**fields) for part, text in texts.items()}
        return ReleaseRefused(
            self, **given | {part: fields[part] for part in _PARTS & fields.keys()}
        )


class ReleaseRefused(InputError):
    """A release, or its evidence, is refused.

    Attributes:
        status: the exit status that tells why.
    """

    def __init__(self, status: ReleaseStatus, problem: str, **fields: Any) -> None:
        """Refuse; `told` are file, line, field, found, expected and hint of an `InputError`."""
        self.status = status
        super().__init__(problem, **fields)
