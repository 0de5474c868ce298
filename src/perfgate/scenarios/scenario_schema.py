"""The schema of scenario files: scenario.schema.json, with a short way through a right file.

Most files are right: each section (`engine`, `limits`, …) is only asked whether it is valid, and a
section that occurred before is not asked again. Only a file that fails is walked for all errors.
"""

import json
import marshal
from functools import cache
from pathlib import Path
from typing import Any

from perfgate.core.measurement import Json
from perfgate.scenarios.problem import Problem
from perfgate.scenarios.schema import Schema, Validator, with_control_characters


class ScenarioSchema(Schema):
    """The schema of scenario files, compiled once."""

    def __init__(self, schema: dict[str, Any]) -> None:
        super().__init__(schema, one_line=True)
        scenario = schema["$defs"]["scenario"]
        self._defaults = Validator({"$ref": "#/$defs/defaults", "$defs": schema["$defs"]})
        self._complete = Validator(schema["$defs"]["complete"])
        self._claims = Validator(schema["properties"]["claims"] | {"$defs": schema["$defs"]})
        self._markers = Validator(schema["properties"]["markers"])
        self._sections = {
            name: Validator(section) for name, section in scenario["properties"].items()
        }
        self._right: set[bytes] = set()

    def problems(self, value: Json) -> list[Problem]:
        """All that is wrong with a file's value whose defaults are merged into its scenarios."""
        return [] if self._is_right(value) else super().problems(value)

    def problems_of_defaults(self, value: Json) -> list[Problem]:
        """All that is wrong with a defaults block; required fields may be missing."""
        return self._explain(self._defaults, value, ("defaults",))

    def _is_right(self, value: Json) -> bool:
        return (
            next(with_control_characters(value), None) is None
            and isinstance(value, dict)
            and "schema_version" in value
            and set(value) <= {"schema_version", "markers", "scenarios", "claims"}
            and bool({"markers", "scenarios", "claims"} & set(value))
            and type(value["schema_version"]) is int
            and value["schema_version"] == 1
            and ("scenarios" not in value or self._are_right_scenarios(value["scenarios"]))
            and ("claims" not in value or self._claims.is_valid(value["claims"]))
            and ("markers" not in value or self._markers.is_valid(value["markers"]))
        )

    def _are_right_scenarios(self, value: Json) -> bool:
        return (
            isinstance(value, list)
            and bool(value)
            and all(self._is_right_scenario(scenario) for scenario in value)
        )

    def _is_right_scenario(self, value: Json) -> bool:
        return (
            isinstance(value, dict)
            and all(self._is_right_section(name, part) for name, part in value.items())
            and self._complete.is_valid(value)
        )

    def _is_right_section(self, name: str, value: Json) -> bool:
        # Version 2 of the format: the same bytes for equal values, whatever they share; and it
        # keeps 1, 1.0 and true apart, which == does not.
        key = marshal.dumps((name, value), 2)
        if key in self._right:
            return True
        if name not in self._sections or not self._sections[name].is_valid(value):
            return False
        self._right.add(key)
        return True


@cache
def scenario_schema(file: Path | None = None) -> ScenarioSchema:
    """The schema in `file`, by default the suite's own."""
    path = file or Path(__file__).with_name("scenario.schema.json")
    return ScenarioSchema(json.loads(path.read_text(encoding="utf-8")))
