"""The road of offline benchmarks, first answers and claims, with stand-ins in real processes."""

import json
import re
import shutil
from pathlib import Path

import pytest
from checkouts import Finished, Suite, make_suite

pytestmark = pytest.mark.slow

Measured = tuple[Suite, Finished]

FASTER, FLOOR = "standin-more-is-faster", "standin-much-output-throughput-floor"


@pytest.fixture
def offline(tmp_path: Path) -> Suite:
    return make_suite(tmp_path / "suite", scenarios="offline.yaml")


@pytest.fixture(scope="module")
def measured_twice(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """A checkout and its second session."""
    suite = make_suite(tmp_path_factory.mktemp("offline"), scenarios="offline.yaml")
    suite.run("perf_tests")
    # Smoke asks for 7 prompts, the points for 50 and 4: three datasets, however many starts.
    assert calls(suite, "prepare") == 3
    return suite, suite.run("perf_tests", traced=True)


def calls(suite: Suite, verb: str) -> int:
    return int((suite.folder / f"starts.{verb}").read_text())


def test_probes_and_claims_are_tests_and_datasets_are_kept(measured_twice: Measured) -> None:
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


def test_claims_are_computed_anew_from_raw_files(measured_twice: Measured, tmp_path: Path) -> None:
    suite, done = measured_twice
    verdicts, found = suite.judged_again(), suite.recomputed()
    for claim in (FASTER, FLOOR):
        assert (verdicts[claim], found[claim].metrics) == ("PASS", 1)
    folder = shutil.copytree(done.folder, tmp_path / "changed")
    for raw in folder.glob("standin-much/start-*/c50/result.json"):
        plain = json.loads(raw.read_text())
        raw.write_text(json.dumps({**plain, "output_throughput": 1.0}))
    assert suite.recomputed(folder)[FASTER].verdict != found[FASTER].verdict
    place = "standin-much/start-1-new/c50: output_throughput: "
    told = [one for one in suite.differences(folder) if place in one]
    assert any("1.0 from the raw files" in one for one in told), told


def test_a_claim_whose_other_side_is_a_stored_baseline(offline: Suite) -> None:
    first = offline.run("perf_tests", "-k", "little", "--engine-commit", "aaa", "--record")
    offline.promote(first.folder, "aaa", "standin-little")
    done = offline.run("perf_tests", "-k", "much-c50 or more-is-faster", "--engine-commit", "bbb")
    assert {line["scenario"] for line in done.measured} == {"standin-much"}
    assert offline.judged_again()[FASTER] == done.verdicts[FASTER], done.output
    (kept,) = done.folder.glob("references/*/cpu/standin-little/aaa.json")
    throughput = r'"output_throughput": [\d.]+'
    kept.write_text(re.sub(throughput, '"output_throughput": 9e9', kept.read_text()))
    same = offline.recomputed()[FASTER].verdict
    assert same is None or offline.differences(), "another baseline gives the same"


def test_a_claim_that_is_selected_measures_and_keeps_both_scenarios(offline: Suite) -> None:
    words = ("perf_tests", "-k", "more-is-faster")
    done = offline.run(*words)
    done.require(0)
    assert {line["scenario"] for line in done.measured} == {"standin-much", "standin-little"}
    measured = calls(offline, "measure")
    offline.session(f"--resume={done.folder}", *words).require(0)
    assert calls(offline, "measure") == measured


def test_a_claim_that_does_not_hold_is_a_regression(offline: Suite) -> None:
    sides = "scenario: standin-{}\n    versus: standin-{}"
    swapped = (sides.format("much", "little"), sides.format("little", "much"))
    offline.edit(swapped, ("value: 140", "value: 1400"))
    done = offline.run("perf_tests/test_claims.py")
    done.require(1, dict.fromkeys((FASTER, FLOOR), "REGRESSION"))


def test_no_probe_is_measured_after_a_failed_first_answer(offline: Suite) -> None:
    done = offline.run("perf_tests", "-k", "much-smoke or much-c50", fault="offline-oom")
    by_probe = {line["probe"]: line["error"] for line in done.records("verdict")}
    assert by_probe["smoke"]["error_class"] == "oom"
    assert "not measured, as smoke failed before it" in by_probe["c50"]["message"]
    assert calls(offline, "measure") == 1
