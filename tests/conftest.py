"""What many tests share: a checkout of their own, and signals at their defaults."""

import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from hypothesis import settings

from perfgate.core import redaction

ROOT = Path(__file__).parents[1]

# A shell starts jobs in the background with both ignored, and so would every program of a test.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGQUIT) == signal.SIG_IGN:
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
# Likewise under nohup; a handler, so that this session lives on, and what it starts hears it.
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)

# A busy machine is no reason for a test to fail.
settings.register_profile("perfgate", deadline=None)
settings.load_profile("perfgate")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first: no worker begins the longest of them when the others are done.

    First of all those that `make nightly` lets grow, then those with the most tests. The rest keeps
    its order, and each file stays in one piece.
    """
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    grow = {item.path for item in items if item.get_closest_marker("nightly")}
    items.sort(key=lambda item: (item.path not in grow & slow.keys(), -slow[item.path]))


@pytest.fixture(scope="session", autouse=True)
def _leases_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Locks of their own: tests wait for nobody who measures here, and nobody for them.

    And no width of a terminal: pytest-xdist tells its workers one, which programs would inherit.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)
        patch.setenv("PERFGATE_LEASES", str(tmp_path_factory.mktemp("leases")))
        yield


@pytest.fixture(autouse=True)
def _secrets_of_one_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test gives to programs as a secret is masked in that test alone."""
    monkeypatch.setattr(redaction, "_given", set(redaction._given))


@pytest.fixture
def suite_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty checkout, and a machine store, that perfgate takes for its own in this test."""
    root = tmp_path / "checkout"
    for name in ("scenarios", "baselines"):
        (root / name).mkdir(parents=True)
    monkeypatch.setenv("PERFGATE_ROOT", str(root))
    monkeypatch.setenv("PERFGATE_HOME", str(tmp_path / "home"))
    return root


@pytest.fixture
def two_scenarios(suite_root: Path) -> Path:
    """The scenario folder of `suite_root` with the local scenario, and its like for one H200."""
    folder = suite_root / "scenarios"
    text = (ROOT / "scenarios" / "local" / "smollm2.yaml").read_text()
    (folder / "local.yaml").write_text(text)
    plain = yaml.safe_load(text)
    (one,) = plain["scenarios"]
    one.update(id="h200-serve", hardware={"gpu": "H200", "gpus": 1}, markers=["serving"])
    one["gate"].update(reference="stored", blocks=0)
    (folder / "h200.yaml").write_text(yaml.safe_dump(plain))
    return folder
