"""The gate on the road: disturbed starts, waivers, ancestors, budgets, whole sweeps."""

import datetime
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from checkouts import POINT, SLOWER, STORED, SWEEP, Suite, differences, recomputed
from tables import each

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


def test_a_slower_build_shows_at_every_point_and_in_the_sweep(stored: Suite) -> None:
    """Of an unchanged one all pass: tests/suite/test_recomputed_road.py."""
    done = stored.run(*SWEEP, *OTHER, *SLOWER)
    labels = ("c1", "c2", "c3", "c4", "sweep")
    assert done.verdicts == dict.fromkeys(labels, "REGRESSION"), done.output
    assert done.status == 1


def test_the_nearest_ancestor_is_compared_with_and_the_report_says_so(
    stored: Suite, tmp_path: Path
) -> None:
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
    assert told.status == 0, told.output
    for line in told.records("verdict"):
        assert "nearest ancestor" in line["compared_with"]


@each(
    ("waiver", "status", "told"),
    [
        ({"at_most": 0.9}, 0, "the new kernel lands next week"),
        ({"at_most": 0.9, "last_day": datetime.date(2020, 1, 1)}, 1, "2020-01-01"),
    ],
)
def test_a_waiver_lets_through_what_it_says_until_it_ends(
    stored: Suite, waiver: dict[str, Any], status: int, told: str
) -> None:
    waive(stored, waiver)
    done = stored.run(*POINT, *OTHER, *SLOWER)
    verdict = "REGRESSION" if status else "PASS"
    assert (done.status, done.verdicts) == (status, {"c1": verdict}), done.output
    assert told in done.output
    waived = "## Waived losses" in (done.folder / "summary.md").read_text()
    assert waived is (verdict == "PASS")
    (line,) = done.records("verdict")
    assert ((line["judgements"][0]["waiver"] or {}).get("owner") == "Ada") is waived
    found = recomputed(stored)
    assert differences(found) == []
    assert {one.verdict.value for one in found.values() if one.verdict} == {verdict}
    kept = stored.folder / "run/references/1/waivers.yaml"
    kept.write_text(kept.read_text().replace("owner: Ada", "owner: Eve"))
    told = "judge_input.waivers[output_throughput].owner: Ada in the records, Eve from the raw"
    assert any(told in one for one in differences(recomputed(stored)))


def test_a_waiver_that_nothing_needs_fails_the_run(stored: Suite) -> None:
    waive(stored, {}, {"scenario": "no-such-scenario"})
    done = stored.run(*SWEEP, "--engine-commit", "bbb")
    assert done.status == 14, done.output
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
    assert set(done.verdicts.values()) == {"INCONCLUSIVE"}, done.output
    assert done.status == 10
    assert "disturbed, so not used: fresh start 1: other processes used" in done.output
    measured = done.records("measurement")
    assert len({line["start"] for line in measured}) == 4 + 2
    assert all(line["disturbed"] for line in measured)
    assert all(line["facts"]["environment"]["cpu"]["others_share"] > 0 for line in measured)
