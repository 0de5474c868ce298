"""Rehearsals of every GPU scenario there is."""

from pathlib import Path

import pytest
from documented_set import documented_suite
from rehearsing import rehearse
from sizes import sized

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

# Templates only where they are named. A release is one of TensorRT-LLM.
EVERY = "(b200 or h200 or gb200 or explore) and not vllm and not sglang"
REFUSED = {"h200-v3-fp8-gpqa"}
# On each push the newer release plays for one GPU; the older one plays in test_rehearsal.py.
WHOLE = [("1.3.0", EVERY, REFUSED), ("1.0.0", EVERY, REFUSED)]
SELECTIONS = sized([("1.3.0", "gb200", set())], WHOLE)


@pytest.mark.parametrize(("release", "gpus", "refused"), SELECTIONS)
def test_every_gpu_scenario_rehearses(
    tmp_path: Path, release: str, gpus: str, refused: set[str]
) -> None:
    options = ("-m", gpus, "--engine-version", release, *sized((), ("-n", "2")))
    done = rehearse(tmp_path, *options)
    selected = {test for line in done.records("selected") for test in line["tests"]}
    assert set(done.verdicts.values()) == {"PASS", "NO_BASELINE"}, done.output[-4000:]
    cannot = [line for line in done.records("skipped") if "cannot do this" in line["reason"]]
    documented = {scenario.id for scenario in documented_suite().scenarios}
    assert {line["scenario"] for line in cannot} & documented == refused
    assert len(done.records("verdict")) + len(done.records("skipped")) == len(selected)
    assert "SYNTHETIC" in done.output
    assert all(line["synthetic"] for line in done.records("verdict"))
    assert all(line["synthetic"] for line in done.records("measurement"))
    assert "SYNTHETIC" in (done.folder / "summary.md").read_text()
