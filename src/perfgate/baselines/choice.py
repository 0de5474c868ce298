"""Choice: which baseline a build is compared with, and why that one. Pure but for git."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Generic, TypeVar

from packaging.version import InvalidVersion, Version

from perfgate.baselines.baseline import SELF, Baseline, Head
from perfgate.baselines.engine_repo import EngineRepo, same_hash
from perfgate.core.verdict import counted
from perfgate.engines.base import EngineBuild

Choosable = Baseline | Head
One = TypeVar("One", Baseline, Head)


@dataclass(frozen=True)
class Choice(Generic[One]):
    """What was chosen of baselines, or of what their files say of themselves.

    Attributes as in `ChosenBaseline`.
    """

    baseline: One
    why: str
    window: tuple[One, ...]
    is_newer: bool = False


def choose(
    baselines: Iterable[One], build: EngineBuild, repo: EngineRepo | None = None
) -> Choice[One] | None:
    """The baseline to compare `build` with; None if there is none.

    That of the same commit; else the nearest ancestor's in `repo`; else the newest that is not
    newer, by version and then by date; else, told as such, the nearest newer one. A retired one
    never.

    Raises:
        InputError: `repo` cannot tell, see `EngineRepo`.
    """
    everything = list(baselines)
    usable = [one for one in everything if one.retired is None]
    if not usable:
        return None
    exact = [one for one in usable if same_hash(one.engine.commit, build.commit)]
    if exact:
        # Of two spellings of one hash, a person's own.
        same = [one for one in exact if one.engine.commit == build.commit]
        return _chosen((same or exact)[0], "same engine commit", everything, repo)
    if repo is not None:
        nearest = repo.nearest([one.engine.commit for one in usable], build.commit)
        if nearest is not None:
            commit, distance = nearest
            (baseline,) = [one for one in usable if one.engine.commit == commit]
            why = f"nearest ancestor, {counted(distance, 'commit')} before"
            why = why if distance else "same engine commit"
            return _chosen(baseline, why, everything, repo)
    older: list[One] = [one for one in usable if not is_newer(one, build)]
    lacking = "no baseline of this commit" + ("" if repo is None else " or an ancestor")
    if older:
        versions = [build.version, *(one.engine.version for one in older)]
        baseline = max(older, key=_order(versions))
        why = f"{_kind(older, baseline, build)}, {lacking}"
        return _chosen(baseline, why, everything, repo)
    baseline = _nearest_newer(usable)
    why = f"newer than the build under test: nothing older exists, {lacking}"
    return replace(_chosen(baseline, why, everything, repo), is_newer=True)


def newest_release(baselines: Iterable[One], build: EngineBuild) -> One | None:
    """The baseline of the newest final release that is not newer than `build`; None: no such."""
    under_test = _version(build.version)
    found = [
        (version, baseline.accepted_at, baseline.engine.commit, baseline)
        for baseline in baselines
        if baseline.retired is None
        and (version := _version(baseline.engine.version)) is not None
        and not (version.is_prerelease or version.is_devrelease or version.local)
        and (under_test is None or version <= under_test)
    ]
    return max(found, key=lambda one: one[:3])[3] if found else None


def is_newer(one: Choosable, build: EngineBuild) -> bool:
    """Whether a baseline is of a newer version than `build`, as far as versions can tell."""
    version, under_test = _version(one.engine.version), _version(build.version)
    return version is not None and under_test is not None and version > under_test


def in_order(baselines: Sequence[One]) -> list[One]:
    """Oldest first: by version and then date; by date alone where a version cannot be read."""
    return sorted(baselines, key=_order([baseline.engine.version for baseline in baselines]))


def newest_build(baselines: Sequence[One]) -> EngineBuild:
    """The build of the newest of `baselines`, of which there is at least one."""
    return in_order(baselines)[-1].engine


def _order(versions: Iterable[str]) -> Callable[[Choosable], tuple[Version, str, str]]:
    readable = all(_version(text) is not None for text in versions)
    none = Version("0")

    def key(one: Choosable) -> tuple[Version, str, str]:
        version = _version(one.engine.version) if readable else None
        return version or none, one.accepted_at, one.engine.commit

    return key


def _kind(older: Sequence[One], chosen: One, build: EngineBuild) -> str:
    versions = [_version(text) for text in (build.version, *(one.engine.version for one in older))]
    if None in versions:
        return "newest by date, as not every version can be read"
    same = _version(chosen.engine.version) == versions[0]
    return "newest of the same version" if same else "newest older version"


def _nearest_newer(newer: Sequence[One]) -> One:
    """Of the least version, the latest word."""
    least = _version(in_order(newer)[0].engine.version)
    return in_order([one for one in newer if _version(one.engine.version) == least])[-1]


def _chosen(baseline: One, why: str, everything: list[One], repo: EngineRepo | None) -> Choice[One]:
    return Choice(baseline, why, tuple(_window(baseline, everything, repo)))


def _window(baseline: One, everything: list[One], repo: EngineRepo | None) -> Iterable[One]:
    """The baseline and the older ones on its level, newest first.

    A retired one is passed over; if it had started a level, what is older than it still lies on
    another. What a machine measured of itself stands alone: no person has looked at what changed.
    """
    yield baseline
    if baseline.change != "none" or baseline.accepted_by == SELF:
        return
    for one in _older(baseline, everything, repo):
        if one.retired is None:
            yield one
        if one.change != "none":
            return


def _older(baseline: One, everything: list[One], repo: EngineRepo | None) -> list[One]:
    """What came before it, newest first: its ancestors where the clone knows it."""
    others = [one for one in everything if one.engine.commit != baseline.engine.commit]
    if repo is not None and repo.knows(baseline.engine.commit):
        before = repo.ancestors([one.engine.commit for one in others], baseline.engine.commit)
        found = [one for one in others if before.get(one.engine.commit)]
        return sorted(found, key=lambda one: (before[one.engine.commit], one.engine.commit))
    key = _order(one.engine.version for one in everything)
    return sorted((one for one in others if key(one) < key(baseline)), key=key, reverse=True)


@lru_cache(maxsize=4096)
def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None
