"""The scenario file that a node's preflight is given."""

from dataclasses import replace
from pathlib import Path

import pytest

from perfgate.launchers.nodes.preflight import scenario_text
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.scenario import Scenario

SUITE = load_scenarios(Path(__file__).parents[3] / "scenarios")


@pytest.mark.parametrize("scenario", SUITE, ids=lambda one: one.id)
def test_it_is_read_there_as_it_is_here_but_for_its_markers(
    tmp_path: Path, scenario: Scenario
) -> None:
    """A marker is declared in another file, which does not go to the node."""
    file = tmp_path / "scenario.yaml"
    file.write_text(scenario_text(replace(scenario, markers=("of_our_own",))))
    assert load_scenarios(file) == (replace(scenario, markers=()),)


def test_values_that_no_script_has_are_not_in_it() -> None:
    (mpi,) = (one for one in SUITE if one.id == "h200-v3-fp8-2node-deepgemm-on")
    assert mpi.launch is not None
    secret = {"HF_TOKEN": "s3cr3t", "MY_LICENCE": "s3cr3t too"}
    launch = replace(mpi.launch, pass_on={**mpi.launch.pass_on, **secret})
    text = scenario_text(replace(mpi, environment={**mpi.environment, **secret}, launch=launch))
    assert "s3cr3t" not in text
    assert "TRTLLM_DG_ENABLED" in text
