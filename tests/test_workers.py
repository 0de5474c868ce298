"""Workers: what must be measured together goes to one worker."""

from dataclasses import replace

import building

from perfgate.scenarios.scenario import Claim, Source
from perfgate.workers import groups, joined

ONE = building.SCENARIO
TWO = replace(ONE, id="other-serve")
THREE = replace(ONE, id="third-serve")


def claim(scenario: str, versus: str | None, name: str = "a-claim") -> Claim:
    source = Source("guide.md", "Claims")
    return Claim(name, "faster", source, "output_throughput", scenario, "better", versus=versus)


def test_all_probes_of_a_scenario_are_one_group() -> None:
    found = groups([ONE, TWO])
    assert found["small-serve-c1"] == found["small-serve-c4"] == found["small-serve-sums"]
    assert found["small-serve-c1"] != found["other-serve-c1"]


def test_scenarios_that_a_claim_compares_are_one_group_with_the_claim() -> None:
    found = groups([ONE, TWO, THREE], [claim(ONE.id, TWO.id)])
    assert found["small-serve-c1"] == found["other-serve-c4"] == found["a-claim"]
    assert found["third-serve-c1"] != found["a-claim"]


def test_claims_that_share_a_scenario_join_all_of_them() -> None:
    claims = [claim(ONE.id, TWO.id), claim(TWO.id, THREE.id, "another")]
    assert len(set(groups([ONE, TWO, THREE], claims).values())) == 1


def test_a_claim_about_a_number_goes_where_its_scenario_goes() -> None:
    found = groups([ONE, TWO], [claim(TWO.id, None)])
    assert found["a-claim"] == found["other-serve-c1"]


def test_a_folder_of_an_option_is_not_taken_for_the_place_of_the_tests() -> None:
    words = ["-m", "b200", "--run-dir", "/runs/1", "--scenarios", "mine", "-n", "2"]
    assert joined(words) == ["-m", "b200", "--run-dir=/runs/1", "--scenarios=mine", "-n", "2"]
    assert joined(["--run-dir=/runs/1", "perf_tests"]) == ["--run-dir=/runs/1", "perf_tests"]
