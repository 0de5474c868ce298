"""The schema of scenario files: scenario.schema.json, with a short way through what is right.

Scenarios share most of their sections (`engine`, `limits`, …): what fitted a rule before is not
looked at again.
"""

import json
import marshal
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from perfgate.core.measurement import Json
from perfgate.scenarios.problem import Problem
from perfgate.scenarios.schema import Schema, Validator

# Rule and value → the rule, which is kept so that no other one gets its id.
_RIGHT: dict[tuple[int, bytes], Any] = {}


def _properties(
    validator: Any, rules: Mapping[str, Any], instance: Any, _: Mapping[str, Any]
) -> Iterator[ValidationError]:
    """The rule of that name in JSON Schema, which remembers what is right."""
    for name, rule in rules.items() if isinstance(instance, dict) else ():
        if name not in instance:
            continue
        # Version 2 of the format: the same bytes for equal values, whatever they share; and it
        # keeps 1, 1.0 and true apart, which == does not.
        key = id(rule), marshal.dumps(instance[name], 2)
        is_right = True
        if key not in _RIGHT:
            for error in validator.descend(instance[name], rule, path=name, schema_path=name):
                is_right = False
                yield error
        if is_right:
            _RIGHT[key] = rule


class ScenarioSchema(Schema):
    """The schema of scenario files, compiled once."""

    validator = extend(Validator, {"properties": _properties})  # type: ignore[no-untyped-call]

    def problems_of_defaults(self, value: Json) -> list[Problem]:
        """All that is wrong with a defaults block; required fields may be missing."""
        rules = {"$ref": "#/$defs/defaults", "$defs": self._schema["$defs"]}
        return self._explain(self.validator(rules), value, ("defaults",))


@cache
def scenario_schema() -> ScenarioSchema:
    """The suite's own."""
    path = Path(__file__).with_name("scenario.schema.json")
    return ScenarioSchema(json.loads(path.read_text(encoding="utf-8")), one_line=True)
