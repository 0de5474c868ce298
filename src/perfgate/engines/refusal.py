"""How a setting is refused that a release cannot express: one form of message for all."""

from collections.abc import Iterable
from typing import NamedTuple

from perfgate.core.errors import CannotDo
from perfgate.engines.release_table import ReleaseTable
from perfgate.scenarios.scenario import Scenario


def refusal(
    scenario: Scenario,
    field: str,
    found: object,
    release: ReleaseTable,
    expected: str,
    hint: str | None = None,
) -> CannotDo:
    """The error that names the setting, the release, what is possible and what to do.

    Args:
        scenario: the scenario that asks for it.
        field: the field, from the scenario down.
        found: its value.
        release: the release that cannot.
        expected: what it can.
        hint: the next step.
    """
    own = field.removeprefix("engine.settings.")
    if own != field and getattr(scenario.engine.settings, own, found) is None:
        documented = scenario.source.engine_version
        found = f"{found}, which the document's release {documented} does by itself"
    return CannotDo(
        f"{release.title} {release.version} cannot do this",
        file=scenario.file,
        field=f"{scenario.id}.{field}",
        found=found,
        expected=expected,
        hint=hint or "run it with a release that can, or take the setting out of the scenario",
    )


class Refused(NamedTuple):
    """A field of the scenario, what stands there, what could, and the next step."""

    field: str
    found: object
    expected: str
    hint: str | None = None


def require_none(scenario: Scenario, release: ReleaseTable, refused: Iterable[Refused]) -> None:
    """Raise the first of what a release's rules refuse.

    Raises:
        CannotDo: there is one.
    """
    for one in refused:
        raise refusal(scenario, one.field, one.found, release, one.expected, one.hint)
