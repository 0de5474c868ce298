"""Settings in force: what a running server really runs with, held against what was asked. Pure.

An option that a program accepts can be changed, capped or dropped by it without a word. A server
that tells its resolved settings is asked for them after it is ready and before any load.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Any

from perfgate.core.errors import RunError
from perfgate.core.measurement import Json
from perfgate.scenarios.scenario import Scenario

# What a release may ignore without an error, and what documents draw conclusions from.
WATCHED = ("kv_cache_dtype", "mtp", "cuda_graphs", "attention_dp")


@dataclass(frozen=True)
class EffectiveSettings:
    """What a running server says of itself.

    Attributes:
        settings: setting of the scenario → the value in force, in the scenario's own words; None:
            it is off. A setting that the server does not tell is left out.
        limits: what holds beside the settings and bounds what they do for this load, one line each
            for people: ``max_running_requests 48, 1000 requests in flight``.
        told: what it said of itself that is worth keeping, without secrets.
        source: where it said so: a path of its HTTP server, or its log.
        gap: what is missing from there, though it should have been said; empty: nothing.
    """

    settings: Mapping[str, Json]
    limits: tuple[str, ...] = ()
    told: Mapping[str, Json] = field(default_factory=dict)
    source: str = ""
    gap: str = ""


@dataclass(frozen=True)
class Difference:
    """A setting that is not in force as asked."""

    setting: str
    asked: Json
    found: Json

    def __str__(self) -> str:
        return f"{self.setting}: asked {_shown(self.asked)}, in force {_shown(self.found)}"


def differences(scenario: Scenario, found: EffectiveSettings) -> Iterator[Difference]:
    """Each setting that the scenario asks for, and that the server tells with another value."""
    settings = scenario.engine.settings
    for name, value in found.settings.items():
        asked = getattr(settings, name, None)
        if asked is None:
            continue
        plain = _plain(asked)
        if not _same(plain, value):
            yield Difference(name, plain, value)


def require_effective_settings(scenario: Scenario, found: EffectiveSettings) -> dict[str, Json]:
    """Facts for the record of a server whose settings are in force.

    A setting that the scenario says to be inert may differ: that is told as a fact.

    Raises:
        RunError: ``not_in_force``: another setting differs; with both values of each.
    """
    inert = scenario.engine.inert or {}
    wrong = tuple(differences(scenario, found))
    unexpected = [one for one in wrong if one.setting not in inert]
    if unexpected:
        raise RunError(
            "not_in_force",
            "the server does not run with what the scenario asks for: "
            + "; ".join(map(str, unexpected)),
            evidence=tuple(f"{found.source}: {one}" for one in unexpected),
        )
    facts: dict[str, Json] = {
        "settings_in_force": dict(found.settings),
        "settings_told_by": found.source,
    }
    if found.told:
        facts["server_settings"] = dict(found.told)
    if found.limits:
        facts["settings_limited"] = list(found.limits)
    if wrong:
        facts["settings_inert"] = [f"{one}: {inert[one.setting]}" for one in wrong]
    revived = [name for name in inert if name not in {one.setting for one in wrong}]
    if alive := [name for name in revived if name in found.settings]:
        facts["settings_no_longer_inert"] = list(alive)
    return facts | not_established(scenario, found)


def not_established(scenario: Scenario, found: EffectiveSettings) -> dict[str, Json]:
    """Fact: of the `WATCHED` settings that are asked for, those not told → why; empty: all are."""
    settings, inert = scenario.engine.settings, scenario.engine.inert or {}
    silent = [
        name
        for setting in WATCHED
        if setting not in inert
        for name in _silent(setting, _plain(getattr(settings, setting)), found.settings)
    ]
    why = found.gap or f"{found.source or 'the server'} does not tell"
    return {"settings_not_established": dict.fromkeys(silent, why)} if silent else {}


def _silent(setting: str, asked: Any, told: Mapping[str, Json]) -> Iterator[str]:
    """The setting, or its parts, that are asked for and not told; ``auto`` asks for nothing."""
    found = told.get(setting)
    if setting not in told:
        if asked not in (None, "auto"):
            yield setting
    elif isinstance(asked, dict) and isinstance(found, dict):
        parts = [key for key, value in asked.items() if value not in (None, ())]
        yield from (f"{setting}.{key}" for key in parts if key not in found)


def in_flight(scenario: Scenario) -> int:
    """The most requests that the scenario has in flight at once; 0: it loads no server."""
    points = scenario.points()
    return max((one.concurrency if one.capped else one.requests for one in points), default=0)


def _plain(asked: Any) -> Json:
    plain: Json = asdict(asked) if is_dataclass(asked) and not isinstance(asked, type) else asked
    return plain


def _same(asked: Json, found: Json) -> bool:
    if isinstance(asked, dict) and isinstance(found, dict):  # what the server does not tell is left
        return all(_same(asked[key], value) for key, value in found.items() if key in asked)
    if isinstance(asked, list | tuple) and isinstance(found, list):
        return [*asked] == found
    if isinstance(asked, bool) or isinstance(found, bool):
        return bool(asked) == bool(found)
    if isinstance(asked, int | float) and isinstance(found, int | float):
        return abs(asked - found) <= 1e-6 * abs(asked)
    return asked == found


def _shown(value: Json) -> str:
    return "nothing" if value is None else str(value)
