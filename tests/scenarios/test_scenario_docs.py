"""The examples of docs/reference/scenarios.md are good files."""

import re
from pathlib import Path

from tables import each
from written_files import errors_of

from perfgate.scenarios.files import load_scenarios

PAGE = (Path(__file__).parents[2] / "docs/reference/scenarios.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)


@each("example", EXAMPLES[1:])
def test_the_examples_of_claims_are_good_ones(example: str, tmp_path: Path) -> None:
    file = tmp_path / "claims.yaml"
    file.write_text(f"schema_version: 1\n{example.removeprefix('schema_version: 1')}")
    assert {error.problem for error in errors_of(file)} == {"no scenario of that name"}


def test_the_example_is_a_good_file(tmp_path: Path) -> None:
    file = tmp_path / "example.yaml"
    file.write_text(EXAMPLES[0], encoding="utf-8")
    scenarios = load_scenarios(file)
    assert [scenario.hardware.label for scenario in scenarios] == ["8xB200", "8xB200"]
    assert [scenario.points()[0].requests for scenario in scenarios] == [114_688, 49_152]
