"""The sample in `baselines/`: it shows the format, and nothing compares with it."""

import json
from pathlib import Path

import pytest
from refusals import refused
from tables import each

from perfgate.baselines import Store, read, rehearsal_store, suite_store
from perfgate.cli.main import main
from perfgate.scenarios.files import load_scenarios

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "baselines" / "sample"
(SAMPLE,) = SAMPLES.rglob("*.json")
HARDWARE, SCENARIO = SAMPLE.parts[-3:-1]

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checkout's own baselines, and a machine that has none."""
    monkeypatch.setenv("PERFGATE_ROOT", str(ROOT))
    monkeypatch.setenv("PERFGATE_HOME", str(tmp_path))


def test_it_is_a_whole_baseline_of_a_gpu_scenario_and_says_what_it_is(capsys: Capture) -> None:
    sample = read(SAMPLE, allow_sample=True)
    suite = load_scenarios([ROOT / "scenarios"])
    assert {SCENARIO: HARDWARE}.items() <= {one.id: one.hardware.label for one in suite}.items()
    assert HARDWARE != "cpu"
    assert (sample.synthetic, sample.reason[:6], sample.sessions) == (True, "sample", 3)
    assert main(["baseline", "show", str(SAMPLE), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["synthetic"] is True


PROMOTE, BY = "baseline promote FILE --by Ada --reason why", "--by Ada --reason why"
OF_THE_FILE = (PROMOTE, f"{PROMOTE} --rehearsal", "baseline diff FILE FILE", "compare FILE FILE")
OF_THE_FILE += (f"baseline retire FILE {BY}", f"baseline anchor FILE {BY}")
OF_THE_FOLDER = ("baseline list", f"baseline history {SCENARIO}", f"plan {SCENARIO}")


@each("words", [*OF_THE_FILE, *OF_THE_FOLDER])
def test_a_command_that_names_it_or_its_folder_is_refused(words, capsys, monkeypatch) -> None:
    before = SAMPLE.read_bytes()
    if words in OF_THE_FOLDER:
        monkeypatch.setenv("PERFGATE_BASELINES", str(SAMPLES))
    assert main(words.replace("FILE", str(SAMPLE)).split()) == 2
    assert "a sample of the format is no baseline" in capsys.readouterr().err
    assert SAMPLE.read_bytes() == before
    assert rehearsal_store().list() == []
    engine = read(SAMPLE, allow_sample=True).engine
    for store in (Store(SAMPLES), Store(SAMPLES, synthetic=True)):
        refused(store.choose, HARDWARE, SCENARIO, engine, match="a sample of the format is no")


def test_neither_a_run_nor_a_rehearsal_of_its_very_build_chooses_it(capsys: Capture) -> None:
    sample = read(SAMPLE, allow_sample=True)
    for store in (suite_store(), rehearsal_store()):
        assert store.choose(HARDWARE, SCENARIO, sample.engine) is None
        assert store.anchor(HARDWARE, SCENARIO, sample.engine) is None
        assert SAMPLE not in store.list()
    assert main(["plan", SCENARIO, "--engine-version", "1.0.0", "--format", "json"]) == 0
    (planned,) = json.loads(capsys.readouterr().out)["scenarios"]
    probes = [one for one in planned["probes"] if one["metrics"]]
    assert probes
    assert {one["judged"] for one in probes} == {False}
    why = "cannot be a hardware's label"
    refused(suite_store().path, "sample", SCENARIO, "1.0.0", match=why)


def test_a_folder_of_measured_baselines_may_have_its_name(tmp_path: Path) -> None:
    """The mark is the folder and what mock programs made, not a word in somebody's path."""
    (measured,) = (ROOT / "baselines" / "cpu").glob("*/*.json")
    found = read(measured)
    store = Store(tmp_path / "sample")
    store.save(found)
    assert store.choose(found.hardware, found.scenario, found.engine) is not None
