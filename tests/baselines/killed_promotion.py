"""Promote and be killed at each STRIDE-th step: killed_promotion.py FOLDER STRIDE LEAST.

A step is a call from Python into C (write, fsync, rename, flock, …) while a store is locked or a
file is written. Before each a child of its own ends by SIGKILL, as by the kernel's hand, more than
LEAST times. After each, the store holds the old baseline or the new, whole, and the next promotion
goes through.
"""

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from building import baseline, entry

from perfgate.baselines import Store, candidate_store, read, suite_store
from perfgate.judging.acceptance import promote

STEPS_OF = ("write_text", "alone_in", "remove_drafts", "_lock")


def killed_at(number: int, act: Callable[[], object]) -> bool:
    """Whether `act`, in a child that dies before its step `number`, had that many steps."""
    child = os.fork()
    if child == 0:
        seen = 0

        def count(frame: FrameType | None, event: str, _: object) -> None:
            nonlocal seen
            if event != "c_call":
                return
            while frame is not None and frame.f_code.co_name not in STEPS_OF:
                frame = frame.f_back
            if frame is not None:
                seen += 1
                if seen == number:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.setprofile(count)
        act()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


def main() -> None:
    folder, stride, least = Path(sys.argv[1]), *map(int, sys.argv[2:])
    old = Store(folder / "old").save(baseline(entries={"c1": entry(50.0)}))
    candidate = candidate_store().save(
        baseline(entries={"c4": entry(110.0, 112.0)}, accepted_by="nobody yet")
    )
    store = suite_store()
    path = store.path("cpu", "small-serve", "abc123")
    number, kills, outcomes, drafts = 0, 0, set(), 0
    while True:
        number += stride
        shutil.rmtree(store.folder, ignore_errors=True)
        shutil.copytree(folder / "old", store.folder)
        died = killed_at(number, lambda: promote(candidate, by="Grace", reason="faster"))
        content = path.read_bytes()
        assert store.list() == [path]
        is_new = read(path).accepted_by == "Grace"
        assert set(read(path).entries) == ({"c1", "c4"} if is_new else {"c1"})
        assert is_new or content == old.read_bytes()
        outcomes.add(is_new)
        drafts += len(list(path.parent.iterdir())) - 1
        promote(candidate, by="Ada", reason="again")
        assert [*path.parent.iterdir()] == [path]
        assert set(read(path).entries) == {"c1", "c4"}
        if not died:
            assert is_new
            break
        kills += 1
    assert outcomes == {False, True}
    assert drafts > 0
    assert kills > least


if __name__ == "__main__":
    main()
