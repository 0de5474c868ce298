"""The road of offline benchmarks, first answers and claims, with stand-ins in real processes."""

import json

import pytest
from test_road import Suite, suite  # noqa: F401

pytestmark = pytest.mark.slow

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


@pytest.fixture
def offline(suite: Suite) -> Suite:  # noqa: F811
    (suite.folder / "scenarios" / "standin.yaml").write_text(SCENARIOS)
    return suite


def calls(suite: Suite, verb: str) -> int:  # noqa: F811
    return int((suite.folder / f"starts.{verb}").read_text())


def test_probes_and_claims_have_tests_of_their_own(offline: Suite) -> None:
    done = offline.run("--collect-only", "perf_tests")
    tests = {line for line in done.output.splitlines() if "::" in line}
    assert tests == {
        "perf_tests/test_smoke.py::test_smoke[standin-much-smoke]",
        "perf_tests/test_offline_throughput.py::test_offline_throughput[standin-much-c50]",
        "perf_tests/test_offline_throughput.py::test_offline_throughput[standin-little-c4]",
        "perf_tests/test_claims.py::test_claim[standin-more-is-faster]",
        "perf_tests/test_claims.py::test_claim[standin-much-output-throughput-floor]",
    }


def test_without_a_server_every_measurement_is_a_start_and_datasets_are_kept(
    offline: Suite,
) -> None:
    done = offline.run("perf_tests")
    assert done.verdicts["smoke"] == "PASS"
    assert done.verdicts["c50"] == done.verdicts["c4"] == "NO_BASELINE"
    assert done.verdicts["standin-more-is-faster"] == "PASS"
    assert done.verdicts["standin-much-output-throughput-floor"] == "PASS"
    # Smoke asks for 7 prompts, the points for 50 and 4: three datasets, however many starts.
    assert calls(offline, "prepare") == 3
    again = offline.run("perf_tests")
    assert calls(offline, "prepare") == 3
    result = again.folder / "standin-much" / "start-1-new" / "c50" / "result.json"
    marks = json.loads(result.read_text())["marks"]
    assert marks["PERFGATE_SCENARIO"] == "standin-much"
    assert marks["PERFGATE_START"] == "1"


def test_a_claim_measures_both_scenarios_though_only_it_was_selected(offline: Suite) -> None:
    done = offline.run("perf_tests", "-k", "more-is-faster")
    assert done.status == 0, done.output
    measured = {line["scenario"] for line in done.records("measurement")}
    assert measured == {"standin-much", "standin-little"}


def test_a_claim_that_does_not_hold_is_a_regression(offline: Suite) -> None:
    offline.edit(lambda text: text.replace("expect: better", "expect: worse"))
    offline.edit(lambda text: text.replace("value: 140", "value: 1400"))
    done = offline.run("perf_tests/test_claims.py")
    assert done.verdicts["standin-much-output-throughput-floor"] == "REGRESSION", done.output
    assert done.status == 1


def test_a_benchmark_that_hangs_is_an_error_of_that_class(offline: Suite) -> None:
    words = ("perf_tests/test_offline_throughput.py", "-k", "little")
    done = offline.run(*words, fault="offline-hangs")
    (line,) = done.records("verdict")
    assert line["error"]["class"] == "hang"
    assert done.status == 11


def test_no_probe_is_measured_after_a_failed_first_answer(offline: Suite) -> None:
    done = offline.run("perf_tests", "-k", "much-smoke or much-c50", fault="offline-oom")
    by_probe = {line["probe"]: line["error"] for line in done.records("verdict")}
    assert by_probe["smoke"]["class"] == "oom"
    assert "not measured, as smoke failed before it" in by_probe["c50"]["message"]
    assert calls(offline, "measure") == 1
