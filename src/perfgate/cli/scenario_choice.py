"""Scenario choice: which scenarios a command is about, in what shape and for which build."""

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module

from perfgate.core.errors import InputError, did_you_mean
from perfgate.core.files.paths import scenario_folders
from perfgate.core.programs.environment_variables import unknown_variables
from perfgate.core.programs.locations import Locations
from perfgate.engines.base import EngineBuild, engine
from perfgate.plan.toolchain import option_for, registered, uncovered
from perfgate.scenarios.exploration import explored, parse_shape
from perfgate.scenarios.files import LoadedSuite, load_suite
from perfgate.scenarios.marker_expression import parse
from perfgate.scenarios.markers import EXPLORE
from perfgate.scenarios.scenario import GPUS, Scenario
from perfgate.scenarios.selection import (
    left_out,
    left_out_lines,
    pick,
    select,
    select_marked,
    template_marker,
)


def add_folder(parser: argparse.ArgumentParser) -> None:
    """The folders that `load` reads, and modules whose engines and clients its scenarios name."""
    parser.add_argument(
        "--scenarios",
        action="append",
        metavar="FOLDER",
        help="folder of scenario files; packaged: perfgate's own; "
        "repeatable (default: docs/reference/settings.md)",
    )
    add_import(parser)


def add_import(parser: argparse.ArgumentParser) -> None:
    """Modules that are imported while the command line is read: they register what they hold."""
    parser.add_argument(
        "--import",
        dest="modules",
        type=_imported,
        action="append",
        default=[],
        metavar="MODULE",
        help="import your engines, clients or evaluators; repeatable",
    )


def _imported(name: str) -> str:
    """Have a module register its engines, clients and evaluators.

    Raises:
        ArgumentTypeError: it cannot be imported.
    """
    try:
        import_module(name)
    except ImportError as error:
        raise argparse.ArgumentTypeError(
            f"cannot be imported: {error}; PYTHONPATH must name its folder"
        ) from error
    return name


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Some of the scenarios, as `selected` reads it."""
    add = parser.add_argument
    add("pattern", nargs="*", help="ids; * is a wildcard (default: all)")
    add(
        "-m",
        "--marker",
        action="append",
        default=[],
        metavar="EXPRESSION",
        help="select by markers, as pytest -m; repeated: both",
    )
    add("--gpu", help="select by GPU, e.g. B200; none: CPU")
    add_folder(parser)


def warn(lines: Iterable[str]) -> None:
    """Write what a person may not have meant to standard error, each in a line."""
    for line in lines:
        print(f"perfgate: warning: {line}", file=sys.stderr)


def load(folders: Sequence[str] | None) -> LoadedSuite:
    """The scenarios, claims and markers of `folders`, or the suite's; warns of unknown variables.

    Raises:
        SeveralInputErrors: all that is wrong in any of the files.
    """
    warn(unknown_variables(os.environ))
    return load_suite(scenario_folders(folders), registered())


def selected(arguments: argparse.Namespace, suite: LoadedSuite) -> tuple[Scenario, ...]:
    """The scenarios that pattern, markers and GPU leave.

    Raises:
        InputError: a marker expression is malformed, or there is no such GPU.
        SeveralInputErrors: patterns that match no scenario, or markers that are declared nowhere.
    """
    if arguments.gpu not in (None, *GPUS):
        raise InputError(
            "unknown GPU",
            field="--gpu",
            found=arguments.gpu,
            expected="one of " + ", ".join(GPUS),
            hint=did_you_mean(arguments.gpu, GPUS),
        )
    found = select(suite.scenarios, arguments.pattern)
    for expression in arguments.marker:
        found = select_marked(found, expression, suite.markers)
    return tuple(one for one in found if arguments.gpu in (None, one.hardware.gpu))


def without_templates(
    arguments: argparse.Namespace, found: Sequence[Scenario]
) -> tuple[Scenario, ...]:
    """The scenarios that such a session of pytest would measure; says which it would leave out.

    A template is asked for by a marker of it in ``-m``, or by its whole id.
    """
    asked = {name for text in arguments.marker if text for name in parse(text).names}
    dropped = [one for one in found if left_out(one, asked) and one.id not in arguments.pattern]
    for line in left_out_lines({one.id: template_marker(one) for one in dropped}):
        print(f"perfgate: {line}", file=sys.stderr)
    return tuple(one for one in found if one not in dropped)


def shaped(scenarios: Sequence[Scenario], name: str, shapes: Sequence[str]) -> tuple[Scenario, ...]:
    """The scenario of that name, or one for each given shape of it.

    Raises:
        InputError: there is no such scenario, or it is none to explore with.
    """
    scenario = pick(scenarios, name)
    if shapes and EXPLORE not in scenario.markers:
        raise InputError(
            "this scenario has the lengths of its document",
            field="--shape",
            found=scenario.id,
            expected=f"a scenario marked {EXPLORE}",
            hint=f"`perfgate scenarios list -m {EXPLORE}` names them",
        )
    return explored([scenario], [parse_shape(text) for text in shapes])


def build_of(scenario: Scenario, version: str | None) -> EngineBuild:
    """The engine's build: the given release, else the document's, else the installed one.

    Raises:
        InputError: the given release is none.
    """
    name = scenario.engine.name
    if said := option_for(name, version, alone=True):
        version = f"{name}={said}"
    warn(uncovered([scenario], version))
    version = said or scenario.source.engine_version
    if version is None:
        return engine[scenario.engine.name]().build(Locations.of_environment())
    return EngineBuild(scenario.engine.name, version, version)
