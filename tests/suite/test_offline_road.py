"""The road of offline benchmarks, first answers and claims, with stand-ins in real processes."""

import json
import re
import shutil
from pathlib import Path

import pytest
from checkouts import Finished, Suite, differences, make_suite, recomputed

from perfgate.core.verdict import Verdict

pytestmark = pytest.mark.slow

FASTER, FLOOR = "standin-more-is-faster", "standin-much-output-throughput-floor"
SCENARIOS = """
schema_version: 1
markers: {standin: played by the stand-ins of the tests}
defaults:
  source: {document: tests/standins, section: offline}
  hardware: {gpu: none, gpus: 0}
  engine: {name: stand-in}
  workload: {client: stand-in-offline, dataset: synthetic, isl: 16, osl: 16}
  gate:
    metrics: [output_throughput]
    reference: stored
    max_starts: 3
    disturbance: {others_cpu: 1, steal: 1, cpu_clock: 0} # neighbours void no start of a stand-in
  limits: {start_s: 20, silence_s: 3, total_s: 60}
  markers: [standin]
scenarios:
  - id: standin-much
    title: Many requests
    model: {name: made-up, precision: none}
    workload: {concurrency: 50, requests: 50}
    smoke: {client: stand-in-offline, prompts: [hello]}
    floors: [{metric: output_throughput, value: 140}]
  - id: standin-little
    title: Few requests
    model: {name: made-up, precision: none}
    workload: {concurrency: 4, requests: 4}
claims:
  - id: standin-more-is-faster
    title: More requests make it faster
    source: {document: tests/standins, section: offline}
    metric: output_throughput
    scenario: standin-much
    versus: standin-little
    expect: better
"""


def with_offline_scenarios(suite: Suite) -> Suite:
    (suite.folder / "scenarios" / "standin.yaml").write_text(SCENARIOS)
    return suite


@pytest.fixture
def offline(suite: Suite) -> Suite:
    return with_offline_scenarios(suite)


@pytest.fixture(scope="module")
def measured_twice(tmp_path_factory: pytest.TempPathFactory) -> tuple[Suite, Finished]:
    """A checkout and its second session."""
    suite = with_offline_scenarios(make_suite(tmp_path_factory.mktemp("offline")))
    suite.run("perf_tests")
    # Smoke asks for 7 prompts, the points for 50 and 4: three datasets, however many starts.
    assert calls(suite, "prepare") == 3
    return suite, suite.run("perf_tests")


def calls(suite: Suite, verb: str) -> int:
    return int((suite.folder / f"starts.{verb}").read_text())


def test_probes_and_claims_have_tests_of_their_own_and_datasets_are_kept(
    measured_twice: tuple[Suite, Finished],
) -> None:
    suite, done = measured_twice
    (selected,) = done.records("selected")
    offline = "perf_tests/test_offline_throughput.py::test_offline_throughput"
    assert set(selected["tests"]) == {
        "perf_tests/test_smoke.py::test_smoke[standin-much-smoke]",
        f"{offline}[standin-much-c50]",
        f"{offline}[standin-little-c4]",
        f"perf_tests/test_claims.py::test_claim[{FASTER}]",
        f"perf_tests/test_claims.py::test_claim[{FLOOR}]",
    }
    unjudged = dict.fromkeys(("c50", "c4"), "NO_BASELINE")
    assert done.verdicts == {**dict.fromkeys(("smoke", FASTER, FLOOR), "PASS"), **unjudged}
    assert calls(suite, "prepare") == 3
    result = done.folder / "standin-much" / "start-1-new" / "c50" / "result.json"
    marks = json.loads(result.read_text())["marks"]
    assert (marks["PERFGATE_SCENARIO"], marks["PERFGATE_START"]) == ("standin-much", "1")


def test_verdicts_of_claims_are_computed_anew_from_raw_files(
    measured_twice: tuple[Suite, Finished], tmp_path: Path
) -> None:
    suite, done = measured_twice
    found = recomputed(suite)
    assert differences(found) == []
    for claim in (FASTER, FLOOR):
        assert (found[claim].verdict, found[claim].metrics) == (Verdict.PASS, 1)
    folder = shutil.copytree(done.folder, tmp_path / "changed")
    for raw in folder.glob("standin-much/start-*/c50/result.json"):
        plain = json.loads(raw.read_text())
        raw.write_text(json.dumps({**plain, "output_throughput": 1.0}))
    found = recomputed(suite, folder)
    assert found[FASTER].verdict != Verdict.PASS
    place = "standin-much/start-1-new/c50: output_throughput: "
    assert any(place in one and "1.0 from the raw files" in one for one in differences(found))


def test_a_claim_whose_other_side_is_a_stored_baseline(offline: Suite) -> None:
    first = offline.run("perf_tests", "-k", "little", "--engine-commit", "aaa", "--record")
    offline.promote(first.folder, "aaa", "standin-little")
    done = offline.run("perf_tests", "-k", "much-c50 or more-is-faster", "--engine-commit", "bbb")
    assert {line["scenario"] for line in done.records("measurement")} == {"standin-much"}
    found = recomputed(offline)
    assert differences(found) == []
    assert found[FASTER].verdict == Verdict(done.verdicts[FASTER]), done.output
    (kept,) = done.folder.glob("references/*/cpu/standin-little/aaa.json")
    throughput = r'"output_throughput": [\d.]+'
    kept.write_text(re.sub(throughput, '"output_throughput": 9e9', kept.read_text()))
    found = recomputed(offline)
    assert found[FASTER].verdict is None or differences(found), "another baseline gives the same"


def test_a_claim_measures_and_keeps_both_scenarios_though_only_it_was_selected(
    offline: Suite,
) -> None:
    words = ("perf_tests", "-k", "more-is-faster")
    done = offline.run(*words)
    assert done.status == 0, done.output
    both = {"standin-much", "standin-little"}
    assert {line["scenario"] for line in done.records("measurement")} == both
    measured = calls(offline, "measure")
    again = offline.again(*words)
    assert (again.status, calls(offline, "measure")) == (0, measured), again.output


def test_a_claim_that_does_not_hold_is_a_regression(offline: Suite) -> None:
    sides = "scenario: standin-{}\n    versus: standin-{}"
    swapped = (sides.format("much", "little"), sides.format("little", "much"))
    offline.edit(swapped, ("value: 140", "value: 1400"))
    done = offline.run("perf_tests/test_claims.py")
    assert done.verdicts == dict.fromkeys((FASTER, FLOOR), "REGRESSION"), done.output
    assert done.status == 1


def test_no_probe_is_measured_after_a_failed_first_answer(offline: Suite) -> None:
    done = offline.run("perf_tests", "-k", "much-smoke or much-c50", fault="offline-oom")
    by_probe = {line["probe"]: line["error"] for line in done.records("verdict")}
    assert by_probe["smoke"]["error_class"] == "oom"
    assert "not measured, as smoke failed before it" in by_probe["c50"]["message"]
    assert calls(offline, "measure") == 1
