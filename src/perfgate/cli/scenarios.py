"""`perfgate scenarios`: list, show and validate the scenarios of the suite, and their commands."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from perfgate.cli import scenario_command, scenario_job
from perfgate.cli.output import add_format, print_json, print_table

if TYPE_CHECKING:
    from perfgate.core.measurement import Json
    from perfgate.scenarios.scenario import Scenario


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add this command's parser."""
    command = commands.add_parser(
        "scenarios", help="list, show and validate scenarios; their commands", description=__doc__
    )
    verbs = command.add_subparsers(required=True, metavar="VERB")

    verb = verbs.add_parser("list", help="one line per scenario")
    verb.add_argument("pattern", nargs="*", help="ids, with * as wildcard (default: all)")
    verb.add_argument("-m", "--marker", action="append", default=[], help="only with this marker")
    verb.add_argument("--gpu", help="only for this GPU, e.g. B200; none: for the CPU")
    _add_common(verb)
    verb.set_defaults(execute=_list)

    verb = verbs.add_parser("show", help="one scenario, with its documented values and source")
    verb.add_argument("id")
    _add_common(verb)
    verb.set_defaults(execute=_show)

    scenario_command.add_to(verbs)
    scenario_job.add_to(verbs)

    verb = verbs.add_parser("validate", help="check scenario files; tells all that is wrong")
    verb.add_argument("file", nargs="*", type=Path, help="files or folders (default: the suite's)")
    add_format(verb)
    verb.set_defaults(execute=_validate)


def _add_common(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--scenarios", type=Path, help="folder of scenario files")
    add_format(verb)


def _list(arguments: argparse.Namespace) -> int:
    from perfgate.scenarios.selection import markers_of, select

    found = [
        scenario
        for scenario in select(
            scenario_command.load(arguments.scenarios), arguments.pattern or ["*"]
        )
        if set(arguments.marker) <= set(markers_of(scenario))
        and arguments.gpu in (None, scenario.hardware.gpu)
    ]
    if arguments.format == "json":
        print_json(
            [
                {
                    "id": scenario.id,
                    "title": scenario.title,
                    "hardware": scenario.hardware.label,
                    "engine": scenario.engine.name,
                    "model": scenario.model.name,
                    "markers": list(markers_of(scenario)),
                    "document": scenario.source.document,
                    "section": scenario.source.section,
                }
                for scenario in found
            ]
        )
        return 0
    print_table(
        ("id", "hardware", "engine", "markers", "title"),
        [
            (
                scenario.id,
                scenario.hardware.label,
                scenario.engine.name,
                ",".join(markers_of(scenario)),
                scenario.title,
            )
            for scenario in found
        ],
    )
    return 0


def _show(arguments: argparse.Namespace) -> int:
    import yaml

    from perfgate.scenarios.plain import scenario_to_plain
    from perfgate.scenarios.selection import pick

    scenario = pick(scenario_command.load(arguments.scenarios), arguments.id)
    plain = {**scenario_to_plain(scenario), "documented": _documented(scenario)}
    if arguments.format == "json":
        print_json(plain)
    else:
        print(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True), end="")
    return 0


def _documented(scenario: "Scenario") -> "dict[str, Json]":
    """Canonical metric name → documented value with its unit and source."""
    from perfgate.core.metrics import lookup
    from perfgate.scenarios.documented import documented_values

    found = documented_values(scenario)
    if found is None:
        return {}
    source = {name: value for name, value in vars(found.source).items() if value is not None}
    return {
        name: {
            "value": told.value,
            "unit": lookup(name).unit,
            **{
                field: value
                for field, value in vars(told).items()
                if field != "value" and value is not None
            },
            "source": dict(source),
        }
        for name, told in found.values.items()
    }


def _validate(arguments: argparse.Namespace) -> int:
    from perfgate.scenarios.files import load_scenarios

    found = load_scenarios(arguments.file) if arguments.file else scenario_command.load(None)
    if arguments.format == "json":
        print_json({"valid": True, "scenarios": [scenario.id for scenario in found]})
    else:
        print(f"{len(found)} scenarios, all as they should be")
    return 0
