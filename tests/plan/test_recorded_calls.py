"""Every rendered call of every shipped scenario, at every release that has a table: as recorded.

What a digest stands for is printed by `perfgate scenarios command ID --engine-version RELEASE`. Run
as a program, this file writes the record again.
"""

import hashlib
import json
from pathlib import Path

import pytest

from perfgate.core.errors import InputError
from perfgate.core.plain import to_plain
from perfgate.core.programs.locations import Locations
from perfgate.engines import sglang, tensorrt_llm, vllm  # noqa: F401  (registers them)
from perfgate.engines.base import EngineBuild
from perfgate.engines.sglang import table as of_sglang
from perfgate.engines.tensorrt_llm import table as of_tensorrt_llm
from perfgate.engines.vllm import table as of_vllm
from perfgate.plan import calls
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.scenario import Scenario

RECORDED = Path(__file__).parents[1] / "data" / "calls.json"
# The first release of each range, and one beyond the newest table.
RELEASES = {
    "tensorrt-llm": [*(one.since for one in of_tensorrt_llm.TABLES.all()), "1.4.0"],
    "vllm": [*(one.since for one in of_vllm.TABLES.all()), "0.34.0"],
    "sglang": [*(one.since for one in of_sglang.TABLES.all()), "0.6.0"],
}

CLONE = Path(__file__).parents[2]
# Calls of the embedded default name files of this machine.
SCENARIOS = {
    one.id: one for one in load_scenarios([CLONE / "scenarios"]) if one.engine.name in RELEASES
}


def rendered(scenario: Scenario) -> dict[str, str]:
    """Releases → the digest of all calls of a scenario there, or why they are refused."""
    found: dict[str, list[str]] = {}
    for release in RELEASES[scenario.engine.name]:
        build = EngineBuild(scenario.engine.name, release, release)
        try:
            steps = to_plain(calls.steps(scenario, build, Locations(on_paper=True)))
            # Files that a call names in this clone lie elsewhere in another.
            said = json.dumps(steps, sort_keys=True).replace(f"{CLONE}/", "")
            text = hashlib.sha256(said.encode()).hexdigest()[:16]
        except InputError as error:
            text = f"refused: {error}".replace(f"{CLONE}/", "")
        found.setdefault(text, []).append(release)
    return {", ".join(releases): text for text, releases in found.items()}


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_call_is_rendered_as_recorded(name: str) -> None:
    assert rendered(SCENARIOS[name]) == json.loads(RECORDED.read_text(encoding="utf-8"))[name]


def test_the_record_has_the_shipped_scenarios() -> None:
    assert set(json.loads(RECORDED.read_text(encoding="utf-8"))) == set(SCENARIOS)


if __name__ == "__main__":
    record = {name: rendered(scenario) for name, scenario in SCENARIOS.items()}
    RECORDED.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
