"""The gate on the road: disturbed starts, waivers, ancestors and anchors, budgets, whole sweeps."""

import datetime
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from test_road import Finished, Suite, copied, make_suite, suite  # noqa: F401

SLOWER = ("--inject", "engine.settings.cpu_threads=1")
SERVING = ("perf_tests/test_serving.py", "perf_tests/test_sweep.py")
POINT = ("perf_tests/test_serving.py", "-k", "c1")

pytestmark = pytest.mark.slow


def perfgate(checkout: Suite, *words: str) -> str:
    """A command of perfgate in the checkout; it must succeed."""
    done = checkout.perfgate(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def waive(checkout: Suite, at_most: float, last_day: str) -> None:
    """Let a loss of throughput through."""
    common = {
        "scenario": "standin-serve",
        "metric": "output_throughput",
        "hardware": "cpu",
        "reason": "the new kernel lands next week",
        "link": "https://example.org/4",
        "owner": "Ada",
    }
    text = yaml.safe_dump(
        {
            "schema_version": 1,
            "waivers": [
                {**common, "at_most": at_most, "last_day": datetime.date.fromisoformat(last_day)}
            ],
        }
    )
    (checkout.folder / "waivers.yaml").write_text(text)


@pytest.fixture(scope="module")
def promoted(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    """What `stored` copies."""
    made = make_suite(tmp_path_factory.mktemp("promoted"))
    made.edit(
        lambda text: (
            text.replace("reference: self", "reference: stored")
            .replace("noise: measured", "bands: {output_throughput: 0.25}")
            .replace("reference_starts: 4", "reference_starts: 1")
            .replace("concurrency: [1, 2]", "concurrency: [1, 2, 3, 4]")
        )
    )
    promote(made, made.run(*SERVING, "--engine-commit", "aaa", "--engine-version", "1.0"), "aaa")
    return made


@pytest.fixture
def stored(promoted: Suite, tmp_path: Path) -> Suite:
    """A checkout whose speed is compared with a baseline that a person promoted."""
    return copied(promoted, tmp_path)


def promote(checkout: Suite, run: Finished, commit: str) -> None:
    perfgate(checkout, "baseline", "record", str(run.folder))
    candidate = checkout.folder / f"home/candidates/cpu/standin-serve/{commit}.json"
    perfgate(
        checkout, "baseline", "promote", str(candidate), "--by", "Ada", "--reason", "as it was"
    )


def test_a_whole_sweep_is_judged_beside_its_points(stored: Suite) -> None:
    done = stored.run(*SERVING, "--engine-commit", "bbb", "--engine-version", "1.0")
    labels = ("c1", "c2", "c3", "c4", "sweep")
    assert done.verdicts == dict.fromkeys(labels, "PASS"), done.output
    (sweep,) = [line for line in done.records("verdict") if line["probe"] == "sweep"]
    assert sweep["compared_with"].endswith("the median over 4 points")
    assert done.status == 0


def test_a_slower_build_shows_at_every_point_and_in_the_sweep(stored: Suite) -> None:
    done = stored.run(*SERVING, "--engine-commit", "bbb", "--engine-version", "1.0", *SLOWER)
    assert set(done.verdicts.values()) == {"REGRESSION"}, done.output
    assert done.status == 1


def test_the_nearest_ancestor_is_compared_with_and_the_report_says_so(
    stored: Suite, tmp_path: Path
) -> None:
    repo = tmp_path / "engine"
    first, second = commits(repo)
    promote(stored, stored.run(*POINT, "--engine-commit", first), first)
    told = stored.run(*POINT, "--engine-commit", second, "--engine-repo", str(repo))
    assert told.status == 0, told.output
    for line in told.records("verdict"):
        assert "nearest ancestor" in line["compared_with"]


def commits(repo: Path) -> list[str]:
    """A repository of two commits."""
    git = ["git", "-C", str(repo), "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", "init", "-q", str(repo)], check=True)
    found = []
    for name in ("one", "two"):
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", name], check=True)
        done = subprocess.run(
            [*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
        )
        found.append(done.stdout.strip())
    return found


def test_a_folder_that_is_no_clone_is_wrong_usage(stored: Suite, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = stored.run(*POINT, "--engine-repo", str(tmp_path / "empty"))
    assert done.status == 4, done.output
    assert (
        f"--engine-repo: {tmp_path / 'empty'}" in done.output
        or str(tmp_path / "empty") in done.output
    )


def test_a_budget_of_time_ends_the_starts_and_says_so(stored: Suite) -> None:
    stored.edit(lambda text: text.replace("max_starts: 4", "max_starts: 4\n      budget_s: 0.001"))
    done = stored.run(*POINT, "--engine-commit", "bbb", *SLOWER)
    assert set(done.verdicts.values()) == {"INCONCLUSIVE"}, done.output
    assert done.status == 10
    assert "of gate.budget_s 0.001" in done.output
    assert len(done.records("measurement")) == 1


# Waivers


def test_a_waived_loss_passes_and_is_listed(stored: Suite) -> None:
    waive(stored, 0.9, "2099-12-31")
    done = stored.run(*POINT, "--engine-commit", "bbb", *SLOWER)
    assert set(done.verdicts.values()) == {"PASS"}, done.output
    assert done.status == 0, done.output
    assert "the new kernel lands next week" in done.output
    assert "## Waived losses" in (done.folder / "summary.md").read_text()


@pytest.mark.parametrize(
    ("at_most", "last_day", "told"),
    [(0.1, "2099-12-31", "exceed"), (0.9, "2020-01-01", "2020-01-01")],
)
def test_an_exceeded_or_expired_waiver_lets_nothing_through(
    stored: Suite, at_most: float, last_day: str, told: str
) -> None:
    waive(stored, at_most, last_day)
    done = stored.run(*POINT, "--engine-commit", "bbb", *SLOWER)
    assert done.status == 1, done.output
    assert told in done.output


def test_a_waiver_that_nothing_needs_fails_the_run(stored: Suite) -> None:
    waive(stored, 0.1, "2099-12-31")
    done = stored.run(*SERVING, "--engine-commit", "bbb")
    assert done.status == 14, done.output
    assert set(done.verdicts.values()) == {"PASS"}
    assert "waivers.yaml:" in done.output


def test_an_unusable_waiver_file_is_wrong_usage(stored: Suite) -> None:
    waive(stored, 7.0, "2099-12-31")
    done = stored.run(*POINT)
    assert done.status == 4, done.output
    assert "waivers.yaml:" in done.output


# Disturbed starts


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
def test_disturbed_starts_are_not_used_made_again_and_end_undecided(
    suite: Suite,  # noqa: F811
) -> None:
    suite.edit(
        lambda text: (
            text.replace("others_cpu: 1", "others_cpu: 0")
            .replace("reference: self", "reference: stored")
            .replace("noise: measured", "noise: prior")
        )
    )
    done = suite.run(*POINT, fault="takes-time")
    assert set(done.verdicts.values()) == {"INCONCLUSIVE"}, done.output
    assert done.status == 10
    assert "disturbed, so not used: fresh start 1: other processes used" in done.output
    measured = done.records("measurement")
    assert len({line["start"] for line in measured}) == 4 + 2
    assert all(line["disturbed"] for line in measured)
    assert all(line["facts"]["environment"]["cpu"]["others_share"] > 0 for line in measured)
