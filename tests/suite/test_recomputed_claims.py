"""Verdicts of claims, offline programs and documented scores, computed anew from raw files."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import forked
import pytest
from registered_standins import registered_standins
from test_offline_road import SCENARIOS
from test_road import METRIC, Suite, suite  # noqa: F401

from perfgate.gate.verdict import Verdict
from perfgate.release.recomputation import Recomputed, recompute_run
from perfgate.scenarios.files import load_suite

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _standins() -> Iterator[None]:
    """The stand-ins' parsers, which the sessions load as a plugin."""
    with registered_standins():
        yield


def recomputed(checkout: Suite, run: Path) -> dict[str, Recomputed]:
    loaded = load_suite(checkout.folder / "scenarios" / "standin.yaml")
    return {one.test: one for one in recompute_run(run, loaded.scenarios, loaded.claims)}


def faults(found: dict[str, Recomputed]) -> list[str]:
    return [told for one in found.values() for told in one.differences]


def test_a_claim_and_a_floor_of_offline_programs(
    suite: Suite,  # noqa: F811
    tmp_path: Path,
) -> None:
    (suite.folder / "scenarios" / "standin.yaml").write_text(SCENARIOS)
    done = suite.run("perf_tests")
    found = recomputed(suite, done.folder)
    assert faults(found) == []
    for claim in ("standin-more-is-faster", "standin-much-output-throughput-floor"):
        assert (found[claim].verdict, found[claim].metrics) == (Verdict.PASS, 1)
    folder = shutil.copytree(done.folder, tmp_path / "changed")
    for raw in folder.glob("standin-much/start-*/c50/result.json"):
        plain = json.loads(raw.read_text())
        raw.write_text(json.dumps({**plain, "output_throughput": 1.0}))
    found = recomputed(suite, folder)
    assert found["standin-more-is-faster"].verdict != Verdict.PASS
    told = faults(found)
    assert any(
        "standin-much/start-1-new/c50: output_throughput: " in one and "1.0 in the raw files" in one
        for one in told
    ), told


def test_a_claim_whose_other_side_is_a_stored_baseline(suite: Suite) -> None:  # noqa: F811
    (suite.folder / "scenarios" / "standin.yaml").write_text(SCENARIOS)
    first = suite.run("perf_tests", "-k", "little", "--engine-commit", "aaa", "--record")
    assert forked.outcome(suite.perfgate("baseline", "record", str(first.folder)))[0] == 0
    candidate = suite.folder / "home/candidates/cpu/standin-little/aaa.json"
    named = ("--by", "Ada", "--reason", "as it was")
    assert forked.outcome(suite.perfgate("baseline", "promote", str(candidate), *named))[0] == 0
    first.folder.rename(suite.folder / "first")
    done = suite.run("perf_tests", "-k", "much-c50 or more-is-faster", "--engine-commit", "bbb")
    assert {line["scenario"] for line in done.records("measurement")} == {"standin-much"}
    claim = "standin-more-is-faster"
    found = recomputed(suite, done.folder)
    assert faults(found) == []
    assert found[claim].verdict == Verdict(done.verdicts[claim]), done.output
    (kept,) = done.folder.glob("references/*/cpu/standin-little/aaa.json")
    kept.write_text(
        re.sub(r'"output_throughput": [\d.]+', '"output_throughput": 9e9', kept.read_text())
    )
    found = recomputed(suite, done.folder)
    assert found[claim].verdict is None or faults(found), "another baseline gives the same"


def test_a_score_against_its_documented_value(suite: Suite) -> None:  # noqa: F811
    suite.edit(lambda text: text.replace("fewshot: 0}", "fewshot: 0, limit: 50}"))
    documented = suite.folder / "baselines" / "documented"
    documented.mkdir()
    (documented / "standin-serve.json").write_text(
        json.dumps(
            {
                "schema_version": 1,
                "scenario": "standin-serve",
                "source": {"document": "made.md", "section": "up", "engine_version": "1.0"},
                "values": {METRIC: {"value": 0.75, "stderr": 0.03}},
            }
        )
    )
    done = suite.run("perf_tests/test_accuracy.py", "--inject", "accuracy.temperature=9")
    found = recomputed(suite, done.folder)
    assert faults(found) == []
    (one,) = found.values()
    assert one.verdict == Verdict.REGRESSION
    assert "the documented values" in one.not_recomputed
