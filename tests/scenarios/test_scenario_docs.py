"""docs/reference/scenarios.md says what the schema says, and its example is a good file."""

import json
import re
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from perfgate.core.plain import from_plain
from perfgate.scenarios.claims import broken_claim_rules
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.scenario import Claim

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/scenarios.md").read_text(encoding="utf-8")
SCHEMA = json.loads(
    (ROOT / "src/perfgate/scenarios/scenario.schema.json").read_text(encoding="utf-8")
)


EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES[1:])
def test_the_examples_of_claims_are_good_ones(example: str) -> None:
    claims = yaml.safe_load(example)["claims"]
    schema = SCHEMA["properties"]["claims"] | {"$defs": SCHEMA["$defs"]}
    assert list(Draft202012Validator(schema).iter_errors(claims)) == []
    for plain in claims:
        told = broken_claim_rules(from_plain(Claim, plain), {})
        assert {one.problem for one in told} == {"no scenario of that name"}


def test_the_example_is_a_good_file(tmp_path: Path) -> None:
    example = EXAMPLES[0]
    file = tmp_path / "example.yaml"
    file.write_text(example, encoding="utf-8")
    scenarios = load_scenarios(file)
    assert [scenario.hardware.label for scenario in scenarios] == ["8xB200", "8xB200"]
    assert [scenario.points()[0].requests for scenario in scenarios] == [114_688, 49_152]
