"""Reopening: the folder of a run by its name, and what its tests need."""

from dataclasses import replace
from pathlib import Path

from building import SCENARIO

from perfgate.scenarios.scenario import Claim, Source
from perfgate.suite.parametrize import named_among
from perfgate.suite.run_opening import needs, run_named
from perfgate.verdicts.claims import claim_probes

OTHER = replace(SCENARIO, id="other-serve")


def test_a_run_is_its_folder_or_its_name_under_runs(tmp_path: Path) -> None:
    (tmp_path / "runs" / "one").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    assert run_named(Path("one"), tmp_path) == tmp_path / "runs" / "one"
    assert run_named(tmp_path / "elsewhere", tmp_path) == tmp_path / "elsewhere"
    assert run_named(Path("none"), tmp_path) == Path("none").absolute()


def test_a_claim_needs_both_of_its_scenarios_and_other_tests_none() -> None:
    source = Source("guide.md", "Claims")
    claim = Claim(
        "faster", "faster", source, "output_throughput", SCENARIO.id, "better", 4, OTHER.id
    )
    claims = claim_probes([claim], [SCENARIO, OTHER])
    tests = ["t.py::test_serving[small-serve-c4]", "t.py::test_claim[faster]", "t.py::test_else"]
    found = needs(named_among(tests, [SCENARIO, OTHER], claims))
    assert {test: [one.id for one in scenarios] for test, scenarios in found.items()} == {
        tests[0]: ["small-serve"],
        tests[1]: ["small-serve", "other-serve"],
    }
