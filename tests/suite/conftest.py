"""Checkouts and sessions that several files read, made once; what changes something has a copy."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from checkouts import Finished, Road, Suite, Watched, make_road, make_suite
from road_words import ACCURACY, GIVEN_BAND, POINT, STORED, SWEEP


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """An untouched checkout."""
    return make_suite(tmp_path / "suite")


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    """One of which all is known that is left behind."""
    made = Watched(make_suite(tmp_path / "suite", "standin_family").folder)
    for name in ("leases", "temporary"):
        (made.folder / name).mkdir()
    yield made
    for memory in made.memories():
        memory.unlink()


@pytest.fixture
def road(tmp_path: Path) -> Road:
    """Sessions of two scenarios, none begun."""
    return make_road(tmp_path / "suite")


@pytest.fixture(scope="session")
def without_baseline(tmp_path_factory: pytest.TempPathFactory) -> tuple[Suite, Finished]:
    """Accuracy, measured where there is nothing to compare with."""
    made = make_suite(tmp_path_factory.mktemp("accepted"))
    return made, made.run(ACCURACY, "--record", "--junitxml=junit.xml", traced=True)


@pytest.fixture(scope="session")
def accepted(
    without_baseline: tuple[Suite, Finished], tmp_path_factory: pytest.TempPathFactory
) -> Suite:
    """What `with_baseline` copies."""
    made = without_baseline[0].copy(tmp_path_factory.mktemp("accepted"))
    made.promote(made.run_folder, "1.0")
    return made


@pytest.fixture
def with_baseline(accepted: Suite, tmp_path: Path) -> Suite:
    """A checkout whose accuracy baseline has been recorded and promoted."""
    return accepted.copy(tmp_path / "suite")


@pytest.fixture(scope="session")
def promoted(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    """What `stored` copies."""
    made = make_suite(tmp_path_factory.mktemp("promoted"))
    made.edit(STORED, *GIVEN_BAND, ("concurrency: [1, 2]", "concurrency: [1, 2, 3, 4]"))
    made.run(*SWEEP, "--engine-commit", "aaa", "--engine-version", "1.0")
    made.promote(made.run_folder, "aaa")
    return made


@pytest.fixture
def stored(promoted: Suite, tmp_path: Path) -> Suite:
    """A checkout whose speed is compared with a baseline that a person promoted."""
    return promoted.copy(tmp_path / "suite")


@pytest.fixture(scope="session")
def measured(promoted: Suite, tmp_path_factory: pytest.TempPathFactory) -> tuple[Suite, Finished]:
    """An unchanged build beside that baseline: four points and the sweep of them."""
    checkout = promoted.copy(tmp_path_factory.mktemp("measured"))
    build = ("--engine-commit", "bbb", "--engine-version", "1.0")
    return checkout, checkout.run(*SWEEP, *build, traced=True)


@pytest.fixture(scope="session")
def one_point(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    """A checkout with a run of one test that passed, of a build whose commit is known."""
    made = make_suite(tmp_path_factory.mktemp("one_point"))
    made.edit(*GIVEN_BAND)
    done = made.run(*POINT, "--engine-commit", "a" * 40, "--engine-version", "1.0")
    done.require(0, {"c1": "PASS"})
    return made
