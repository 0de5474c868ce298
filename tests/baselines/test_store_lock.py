"""Two who change a store at once lose nothing; a kill meanwhile leaves the old or the new."""

import errno
import fcntl
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from building import baseline, entry
from sizes import sized

from perfgate.baselines import Store, candidate_store, read, store_lock, suite_store
from perfgate.baselines.decisions import retire
from perfgate.baselines.store_lock import alone_in
from perfgate.core.errors import InputError
from perfgate.judging import acceptance
from perfgate.judging.acceptance import promote

HERE = Path(__file__).parent


def candidate(label: str, value: float) -> Path:
    one = baseline(entries={label: entry(value)}, accepted_by="nobody yet")
    return Store(candidate_store().folder / label).save(one)


@pytest.fixture
def halfway(monkeypatch: pytest.MonkeyPatch):
    """Has an act tried by another thread when the first has read and not yet written."""

    def halfway(act) -> threading.Thread:
        beside, unlike = threading.Thread(target=act), acceptance.unlike_machines

        def pausing(*arguments) -> tuple[str, ...]:
            if beside.ident is None:  # once, and with the time that it takes where nothing waits
                beside.start()
                beside.join(1.0)
            return unlike(*arguments)

        monkeypatch.setattr(acceptance, "unlike_machines", pausing)
        return beside

    return halfway


@pytest.mark.parametrize("retires", [False, True])
def test_two_changes_at_once_lose_nothing(halfway, retires: bool, suite_root: Path) -> None:
    """A retirement is of what is there when its turn comes, and keeps what was added."""
    first, second, third = (candidate(label, 50.0) for label in ("c1", "c4", "c8"))
    path = promote(third, by="Ada", reason="c8").file
    if retires:
        beside = halfway(lambda: retire(path, by="Grace", reason="wrong clocks"))
    else:
        beside = halfway(lambda: promote(second, by="Grace", reason="c4"))
    promote(first, by="Ada", reason="c1")
    beside.join()
    assert set(read(path).entries) == {"c1", "c8"} | (set() if retires else {"c4"})
    assert (read(path).retired is not None) is retires


def test_one_process_at_a_time(suite_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_lock, "WAIT_S", 0.1)
    store = suite_store()
    with store.changing():
        path = store.save(baseline())  # who is in it may write
        before = path.read_bytes()
        with pytest.raises(InputError, match="another process is changing the baselines"):
            promote(candidate("c4", 110.0), by="Ada", reason="x")
        assert path.read_bytes() == before
    assert promote(candidate("c4", 110.0), by="Ada", reason="x").written
    assert [one.name for one in store.folder.iterdir()] == ["cpu"]  # git tracks this folder


@pytest.mark.parametrize("code", [errno.EBADF, errno.ENOLCK])
def test_where_a_folder_cannot_be_locked_a_file_of_the_store_is(
    suite_root: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """As NFS answers (flock(2)): a folder cannot be opened to write."""
    flock = fcntl.flock

    def as_nfs(descriptor: int, how: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").is_dir():
            raise OSError(code, os.strerror(code))
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", as_nfs)
    monkeypatch.setattr(store_lock, "WAIT_S", 0.1)
    here = suite_store().folder
    with alone_in(here):
        with pytest.raises(InputError, match="another process"), alone_in(here):
            pass
        with alone_in(suite_root):
            pass
    with alone_in(here):
        pass


def test_what_is_no_draft_stays(suite_root: Path) -> None:
    folder = suite_store().save(baseline()).parent
    kept = {".abc123.json.swp", ".gitignore", "note.json.abcdefgh", ".x.json.UPPERCASE", ".x.json."}
    for name in kept | {".abc123.json.k3j_9abz", ".abc123.json.0123456789ab"}:
        (folder / name).touch()
    assert len(suite_store().of_scenario("cpu", "small-serve")) == 1
    with suite_store().changing():
        pass
    assert {one.name for one in folder.iterdir()} == kept | {"abc123.json"}


@pytest.mark.nightly
def test_killed_at_each_step_it_leaves_the_old_or_the_new(suite_root: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, HERE / "killed_promotion.py", tmp_path, str(sized(4, 1))],
        env={**os.environ, "PYTHONPATH": str(HERE.parent)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    kills = re.match(r"(\d+) kills", done.stdout)
    assert kills is not None
    assert int(kills[1]) > sized(5, 20)
