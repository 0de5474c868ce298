"""Store: a folder of baselines, one file a commit, so that branches merge without conflict."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from perfgate.baselines import choice as choosing
from perfgate.baselines import questions
from perfgate.baselines.baseline import NOBODY, Baseline, ChosenBaseline, Head, Window
from perfgate.baselines.engine_repo import EngineRepo
from perfgate.baselines.file import SAMPLE, read, read_head, write
from perfgate.baselines.noise_history import FOLDER as NOISE
from perfgate.baselines.store_lock import alone_in, remove_drafts
from perfgate.baselines.stored_json import (
    check_hash,
    check_place,
    read_stored,
    with_hash,
)
from perfgate.core.errors import InputError
from perfgate.core.files.durable_files import write_json
from perfgate.core.files.paths import baselines_folder, machine_store, require_own
from perfgate.core.files.remembered import remembered
from perfgate.core.plain import from_plain, to_plain
from perfgate.engines.base import EngineBuild

ANCHOR = "anchor"  # of the file, beside the baselines; no commit is called so
_ANCHOR_VERSION = 1
_PIN_AGAIN = "pin it again with `perfgate baseline anchor`"

_OTHER_FOLDERS = frozenset({questions.FOLDER, NOISE, SAMPLE})  # beside those of hardware


@dataclass(frozen=True)
class Anchor:
    """A pinned anchor.

    Attributes:
        scenario: the scenario's id.
        hardware: the hardware's label.
        commit: the engine commit whose baseline it is.
        by: the person.
        at: ISO 8601 date and time, UTC.
        reason: why this one.
    """

    scenario: str
    hardware: str
    commit: str
    by: str
    at: str
    reason: str


class Store:
    """A folder of baselines: ``<folder>/<hardware>/<scenario>/<engine-commit>.json``.

    The questions that their answers belong to are in ``<folder>/questions/<task>/<hash>.json``.

    Args:
        folder: the folder.
        synthetic: whether it holds what mocks made. A store holds nothing of the other kind.
    """

    def __init__(self, folder: Path, *, synthetic: bool = False) -> None:
        self.folder = folder
        self.synthetic = synthetic
        self._is_alone = False

    @contextmanager
    def changing(self) -> Iterator[None]:
        """A block in which nobody else changes the store: what is read in it is true until its end.

        Raises:
            InputError: another process does not come to an end with it.
        """
        if self._is_alone:
            yield
            return
        with alone_in(self.folder):
            self._is_alone = True
            try:
                remove_drafts(self.folder)
                yield
            finally:
                self._is_alone = False

    def path(self, hardware: str, scenario: str, commit: str) -> Path:
        """The file of one commit's baseline."""
        for part in (hardware, scenario, commit):
            if not re.fullmatch(r"[\w.+-]+", part) or part.startswith("."):
                raise InputError(
                    "cannot be part of a baseline's file name",
                    found=repr(part),
                    expected="letters, digits and . _ + -",
                )
        if commit == ANCHOR:
            raise InputError(
                "cannot be part of a baseline's file name",
                found=repr(commit),
                expected="a commit; this name is reserved for the anchor's file",
            )
        if hardware in _OTHER_FOLDERS:
            raise InputError(
                "cannot be a hardware's label",
                found=repr(hardware),
                expected="a label; a folder of this name holds something else",
            )
        return self.folder / hardware / scenario / f"{commit}.json"

    def list(self) -> list[Path]:
        """All baseline files, sorted."""
        found = filter(is_baseline, self.folder.glob("*/*/*.json"))
        return sorted(path for path in found if path.parts[-3] not in _OTHER_FOLDERS)

    def of_scenario(self, hardware: str, scenario: str) -> Sequence[Baseline]:
        """All baselines of one scenario on one hardware, by name of their commits.

        Raises:
            InputError: as of `heads`, or one is unusable otherwise.
        """
        return [_read(head.file) for head in self.heads(hardware, scenario)]

    def heads(self, hardware: str, scenario: str) -> Sequence[Head]:
        """What the files of `of_scenario` say of themselves: enough to choose among them.

        Raises:
            InputError: what one says cannot be used, it was put there without a person's
                acceptance, is a rehearsal's, or could be another user's work.
        """
        folder = self.path(hardware, scenario, "any").parent
        paths = sorted(filter(is_baseline, folder.glob("*.json")), key=lambda path: path.name)
        found = [_read_head(require_own(path)) for path in paths]
        for one in found:
            self._require_kind(one)
            if one.accepted_by == NOBODY:
                raise InputError(
                    "a candidate that no person has accepted is no baseline",
                    file=one.file,
                    field="accepted.by",
                    found=NOBODY,
                    hint="delete it here, and use `perfgate baseline promote` on the candidate",
                )
        return found

    def choose(
        self, hardware: str, scenario: str, build: EngineBuild, repo: EngineRepo | None = None
    ) -> ChosenBaseline | None:
        """The baseline to compare `build` with; None if there is none.

        That of the same commit; else, with a clone of the engine, that of the nearest ancestor;
        else the newest that is not newer by version, then by date; else the nearest newer one. A
        retired one never.

        Raises:
            InputError: a baseline is unusable, or the clone does not know the build's commit.
        """
        chosen = choosing.choose(self.heads(hardware, scenario), build, repo)
        if chosen is None:
            return None
        window = Window(chosen.window, _read)
        return ChosenBaseline(window[0], chosen.why, window, chosen.is_newer)

    def anchor(self, hardware: str, scenario: str, build: EngineBuild) -> ChosenBaseline | None:
        """What small losses add up against; None if there is nothing.

        The baseline that a person pinned; else that of the newest final release. Neither of a
        version newer than `build`, as a fix of an older release would have; and a retired one
        never. Its window is itself: a fixed point does not move with what came before it.

        Raises:
            InputError: a baseline or the anchor's file is unusable, or it names none of them.
        """
        found = self.heads(hardware, scenario)
        pinned = self.pinned(hardware, scenario)
        lapsed = ""
        if pinned is not None:
            baseline = next((one for one in found if one.engine.commit == pinned.commit), None)
            if baseline is None:
                raise _missing(pinned, self.path(hardware, scenario, "any").parent)
            if baseline.retired is None and not choosing.is_newer(baseline, build):
                why = f"pinned by {pinned.by} on {pinned.at[:10]}: {pinned.reason}"
                return _alone(baseline, why)
            skip_reason = "was retired" if baseline.retired else "is newer than the build"
            lapsed = f"; the pinned one, {pinned.commit}, {skip_reason}"
        release = choosing.newest_release(found, build)
        if release is None:
            return None
        return _alone(release, f"newest final release{lapsed}")

    def pinned(self, hardware: str, scenario: str) -> Anchor | None:
        """The anchor that a person pinned.

        Raises:
            InputError: its file is unusable.
        """
        return _read_anchor(self.path(hardware, scenario, "any").parent)

    def pin(self, anchor: Anchor) -> Path:
        """Write down a pinned anchor."""
        folder = self.path(anchor.hardware, anchor.scenario, anchor.commit).parent
        with self.changing():
            return _write_anchor(folder, anchor)

    def save(self, baseline: Baseline, *, merge: bool = True) -> Path:
        """Write a baseline, keeping the same commit's other entries.

        Args:
            baseline: the baseline.
            merge: whether to keep them; those of a retired baseline are never kept.

        Raises:
            InputError: it is a rehearsal's, and the store is not, or the other way round.
        """
        self._require_kind(baseline)
        path = self.path(baseline.hardware, baseline.scenario, baseline.engine.commit)
        with self.changing():
            if merge and path.is_file():
                before = read(path)
                if before.retired is None:
                    baseline = before.merged(baseline)
            write(path, baseline)
        return path

    def _require_kind(self, baseline: Baseline | Head) -> None:
        """Rule: numbers that mock programs made are never compared with measured ones."""
        if baseline.synthetic != self.synthetic:
            raise InputError(
                "mock programs made the numbers of a baseline in a store of measured ones"
                if baseline.synthetic
                else "a measured baseline in the store of rehearsals",
                file=baseline.file or self.folder,
                field="synthetic",
                found=str(baseline.synthetic).lower(),
                expected=str(self.synthetic).lower(),
                hint="delete it here; `perfgate baseline promote` puts each into its own store",
            )


def _read_anchor(folder: Path) -> Anchor | None:
    """The anchor pinned for the baselines in `folder`; None if there is none.

    Raises:
        InputError: not JSON, not as the schema says, of another folder, or edited by hand.
    """
    path = folder / f"{ANCHOR}.json"
    if not path.exists():
        return None
    plain = read_stored(
        path, what="anchor", schema="anchor.schema.json", version=_ANCHOR_VERSION, hint=_PIN_AGAIN
    )
    anchor = from_plain(Anchor, plain)
    check_place(path, {"hardware": anchor.hardware, "scenario": anchor.scenario, ANCHOR: ANCHOR})
    check_hash(path, plain, "anchor")
    return anchor


def _write_anchor(folder: Path, anchor: Anchor) -> Path:
    """Pin `anchor` for the baselines in `folder`."""
    path = folder / f"{ANCHOR}.json"
    write_json(path, with_hash({"schema_version": _ANCHOR_VERSION, **to_plain(anchor)}))
    return path


def _missing(anchor: Anchor, folder: Path) -> InputError:
    """That the pinned commit has no baseline."""
    return InputError(
        "the anchor names a commit that has no baseline",
        file=folder / f"{ANCHOR}.json",
        field="commit",
        found=anchor.commit,
        expected="a baseline in the same folder",
        hint=f"{_PIN_AGAIN}, or restore that baseline from git",
    )


def _alone(head: Head, why: str) -> ChosenBaseline:
    window = Window((head,), _read)
    return ChosenBaseline(window[0], why, window)


@remembered(256)
def _read(path: Path) -> Baseline:
    """Read a file: every probe of a scenario asks for the same ones."""
    return read(path)


@remembered(4096)
def _read_head(path: Path) -> Head:
    return read_head(path)


def is_baseline(path: Path) -> bool:
    """Whether a file in the folder of a scenario is a baseline's, not the anchor's or a draft."""
    return not path.name.startswith(".") and path.stem != ANCHOR


def suite_store() -> Store:
    """The committed store."""
    return Store(baselines_folder())


def candidate_store() -> Store:
    """The store of what was recorded from runs and not yet accepted by a person."""
    return Store(machine_store() / "candidates")


def rehearsal_store() -> Store:
    """The store of what rehearsals are compared with; no other session reads it."""
    return Store(machine_store() / "rehearsal" / "baselines", synthetic=True)


def rehearsal_candidate_store() -> Store:
    """The store of what was recorded from rehearsals and not yet accepted by a person."""
    return Store(machine_store() / "rehearsal" / "candidates", synthetic=True)


def own_store() -> Store:
    """The store of this machine's own references."""
    return Store(machine_store() / "baselines")
