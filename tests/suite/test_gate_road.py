"""The gate on the road: disturbed starts, waivers, ancestors, whole sweeps."""

import datetime
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from checkouts import Suite
from road_words import POINT, SLOWER, STORED, SWEEP

pytestmark = pytest.mark.slow

OTHER = ("--engine-commit", "bbb", "--engine-version", "1.0")


def waive(checkout: Suite, *changes: dict[str, Any]) -> None:
    """Let losses of throughput through."""
    usual = {
        "scenario": "standin-serve",
        "metric": "output_throughput",
        "hardware": "cpu",
        "reason": "the new kernel lands next week",
        "link": "https://example.org/4",
        "owner": "Ada",
        "at_most": 0.1,
        "last_day": datetime.date(2099, 12, 31),
    }
    waivers = [{**usual, **one} for one in changes]
    text = yaml.safe_dump({"schema_version": 1, "waivers": waivers})
    (checkout.folder / "waivers.yaml").write_text(text)


def test_the_nearest_ancestor_is_compared_with_and_named(stored: Suite, tmp_path: Path) -> None:
    repo = tmp_path / "engine"
    git = ["git", "-C", str(repo), "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", "init", "-q", str(repo)], check=True)
    hashes = []
    for name in ("one", "two"):
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", name], check=True)
        hashes.append(subprocess.check_output([*git, "rev-parse", "HEAD"], text=True).strip())
    first, second = hashes
    stored.promote(stored.run(*POINT, "--engine-commit", first).folder, first)
    told = stored.run(*POINT, "--engine-commit", second, "--engine-repo", str(repo))
    told.require(0)
    (line,) = told.records("verdict")
    assert "nearest ancestor" in line["compared_with"]


def test_a_waiver_lets_through_what_it_says(stored: Suite) -> None:
    waive(stored, {"at_most": 0.9})
    done = stored.run(*POINT, *OTHER, *SLOWER)
    done.require(0, {"c1": "PASS"}, "the new kernel lands next week")
    assert "## Waived losses" in done.summary
    (line,) = done.records("verdict")
    assert line["judgements"][0]["waiver"]["owner"] == "Ada"
    assert stored.judged_again() == {"standin-serve-c1": "PASS"}
    kept = done.folder / "references/1/waivers.yaml"
    kept.write_text(kept.read_text().replace("owner: Ada", "owner: Eve"))
    told = "judge_input.waivers[output_throughput].owner: Ada in the records, Eve from the raw"
    assert any(told in one for one in stored.differences())


def test_a_slower_build_shows_everywhere_and_no_waiver_that_ended_helps(stored: Suite) -> None:
    """Of an unchanged one all pass: tests/suite/test_recomputed_road.py."""
    waive(stored, {"at_most": 0.9, "last_day": datetime.date(2020, 1, 1)})
    done = stored.run(*SWEEP, *OTHER, *SLOWER)
    labels = ("c1", "c2", "c3", "c4", "sweep")
    done.require(1, dict.fromkeys(labels, "REGRESSION"), "2020-01-01")
    assert "## Waived losses" not in done.summary
    assert not any(one["waiver"] for line in done.records("verdict") for one in line["judgements"])
    assert stored.differences() == []


def test_a_waiver_that_nothing_needs_fails_the_run(stored: Suite) -> None:
    waive(stored, {}, {"scenario": "no-such-scenario"})
    done = stored.run(*SWEEP, "--engine-commit", "bbb")
    done.require(14)
    assert set(done.verdicts.values()) == {"PASS"}
    assert done.output.count("waivers.yaml:") >= 2


@pytest.fixture
def neighbour() -> Iterator[None]:
    """Another program on this machine that takes a core."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        busy.kill()
        busy.wait()


@pytest.mark.usefixtures("neighbour")
def test_disturbed_starts_are_not_used_made_again_and_end_undecided(suite: Suite) -> None:
    suite.edit(("others_cpu: 1", "others_cpu: 0"), STORED, ("noise: measured", "noise: prior"))
    done = suite.run(*POINT, fault="takes-time")
    told = "disturbed, so not used: fresh start 1: other processes used"
    done.require(10, {"c1": "INCONCLUSIVE"}, told)
    assert len({line["start"] for line in done.measured}) == 4 + 2
    assert all(line["disturbed"] for line in done.measured)
    cpu = [line["facts"]["environment"]["cpu"] for line in done.measured]
    assert all(one["others_share"] > 0 for one in cpu)
