"""docs/reference/scenarios.md says what the schema says, and its example is a good file."""

import json
import re
from pathlib import Path
from typing import Any

from perfgate.core.metrics import METRICS
from perfgate.scenarios.files import load_scenarios

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/scenarios.md").read_text(encoding="utf-8")
SCHEMA = json.loads(
    (ROOT / "src/perfgate/scenarios/scenario.schema.json").read_text(encoding="utf-8")
)


def fields(prefix: str, rule: dict[str, Any]) -> dict[str, str]:
    """Dotted name → description of every field below a rule of the schema."""
    found = {}
    for name, part in rule.get("properties", {}).items():
        place = f"{prefix}.{name}" if prefix else name
        found[place] = part["description"]
        found |= fields(place, part)
        found |= fields(f"{place}[]", part.get("items", {}))
    return found


def test_the_example_is_a_good_file(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)
    file = tmp_path / "example.yaml"
    file.write_text(example, encoding="utf-8")
    scenarios = load_scenarios(file)
    assert [scenario.hardware.label for scenario in scenarios] == ["8xB200", "8xB200"]
    assert [scenario.points()[0].requests for scenario in scenarios] == [114_688, 49_152]


def test_every_field_has_a_row_with_the_schemas_description() -> None:
    rows = dict(re.findall(r"^\| `([^`]+)` \|.*\| ([^|]+) \|$", PAGE, flags=re.MULTILINE))
    described = fields("", SCHEMA["$defs"]["scenario"])
    assert {name: rows.get(name) for name in described} == described


def test_every_metric_has_a_row() -> None:
    for metric in METRICS.values():
        assert f"| `{metric.name}` | {metric.unit} | {metric.direction} |" in PAGE
