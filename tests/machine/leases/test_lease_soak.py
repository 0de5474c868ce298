"""Many owners at once with random sizes and random kills: never two of them on one GPU."""

import random
import subprocess
import time
from dataclasses import dataclass
from itertools import combinations

import pytest
from sizes import sized

LEASES = sized(15, 300)
KILLS = sized(5, 100)
PATIENCE_S = sized(120.0, 1200.0)  # a crowded machine takes longer
OWNERS = 5


@dataclass
class Held:
    pid: int
    gpus: tuple[str, ...]
    whole: bool
    took: float
    gave: float = float("inf")


def read(log, deaths: dict[int, float]) -> list[Held]:
    """The leases; one that was never given back was held at least until its owner was killed."""
    held: list[Held] = []
    open_: dict[int, Held] = {}
    for line in log.read_text().splitlines():
        pid, gpus, whole, what, clock = line.split()
        if what == "took":
            open_[int(pid)] = Held(int(pid), tuple(gpus.split(",")), whole == "1", float(clock))
            held.append(open_[int(pid)])
        else:
            open_.pop(int(pid)).gave = float(clock)
    for pid, lease in open_.items():
        lease.gave = deaths.get(pid, lease.gave)
    return held


def side_by_side(held: list[Held]) -> list[tuple[Held, Held]]:
    return [
        (one, other)
        for one, other in combinations(held, 2)
        if max(one.took, other.took) < min(one.gave, other.gave)
    ]


def collide(one: Held, other: Held) -> bool:
    return one.whole or other.whole or not set(one.gpus).isdisjoint(other.gpus)


def collisions(held: list[Held]) -> list[tuple[Held, Held]]:
    return [pair for pair in side_by_side(held) if collide(*pair)]


def test_the_check_itself_sees_a_collision() -> None:
    a, b = Held(1, ("0", "1"), False, 1.0, 3.0), Held(2, ("1",), False, 2.0, 2.5)
    c, d = Held(3, ("7",), True, 4.0, 5.0), Held(4, ("2",), False, 4.9, 6.0)
    assert collisions([a, b, c, d]) == [(a, b), (c, d)]
    assert collisions([a, c, Held(5, ("1",), False, 3.1, 3.9)]) == []


@pytest.mark.nightly
def test_soak(start, locks, tmp_path) -> None:
    draw = random.Random(5)
    log, deaths, owners, held, seed = tmp_path / "log", {}, [], [], 0
    log.touch()
    ends = time.monotonic() + PATIENCE_S
    # Some must run side by side, or the test would show nothing.
    while len(deaths) < KILLS or len(held) < LEASES or not side_by_side(held):
        assert time.monotonic() < ends
        owners = [one for one in owners if one.popen.poll() is None]
        while len(owners) < OWNERS:
            seed += 1
            owners.append(start("owner", log, seed, 1000, 60, stdout=subprocess.DEVNULL))
        time.sleep(draw.uniform(0.1, 0.6))
        victim = owners.pop(draw.randrange(len(owners)))
        deaths[victim.popen.pid] = time.monotonic()
        victim.kill()
        held = read(log, deaths)
    for one in owners:
        deaths[one.popen.pid] = time.monotonic()
        one.kill()
    held = read(log, deaths)
    print(f"{len(held)} leases of {seed} owners, of whom {len(deaths)} were killed")
    assert collisions(held) == []
    assert any(lease.whole for lease in held)
    start("holder", 8, "whole", 0).says("got 0,1,2,3,4,5,6,7")  # nothing is left
