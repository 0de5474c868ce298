"""Scenario choice: which scenarios a command is about, in what shape and for which build."""

import argparse
from collections.abc import Sequence

from perfgate.core.errors import InputError
from perfgate.core.locations import Locations
from perfgate.core.paths import scenario_folders
from perfgate.engines.base import EngineBuild, engine
from perfgate.scenarios.exploration import EXPLORE, explored, parse_shape
from perfgate.scenarios.files import LoadedSuite, load_suite
from perfgate.scenarios.scenario import Scenario
from perfgate.scenarios.selection import markers_of, pick, select


def add_folder(parser: argparse.ArgumentParser) -> None:
    """The folders that `load` reads."""
    parser.add_argument(
        "--scenarios",
        action="append",
        metavar="FOLDER",
        help="folder of scenario files; packaged: those of the package; may be given "
        "again (default: what docs/reference/settings.md says)",
    )


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Some of the scenarios, as `selected` reads it."""
    add = parser.add_argument
    add("pattern", nargs="*", help="ids, with * as wildcard (default: all)")
    add("-m", "--marker", action="append", default=[], help="only with this marker")
    add("--gpu", help="only for this GPU, e.g. B200; none: for the CPU")
    add_folder(parser)


def add_scenario(parser: argparse.ArgumentParser) -> None:
    """Which scenario, and by which release of its engine; `shaped` and `build_of` read it."""
    parser.add_argument("id")
    parser.add_argument(
        "--engine-version",
        metavar="RELEASE",
        help="release whose spelling is used (default: the one of the scenario's document)",
    )
    add_folder(parser)


def load(folders: Sequence[str] | None) -> LoadedSuite:
    """The scenarios and claims of `folders`, or the suite's.

    Raises:
        SeveralInputErrors: all that is wrong in any of the files.
    """
    return load_suite(scenario_folders(folders))


def selected(arguments: argparse.Namespace, scenarios: Sequence[Scenario]) -> tuple[Scenario, ...]:
    """The scenarios that pattern, markers and GPU leave.

    Raises:
        SeveralInputErrors: patterns that match no scenario.
    """
    return tuple(
        scenario
        for scenario in select(scenarios, arguments.pattern)
        if set(arguments.marker) <= set(markers_of(scenario))
        and arguments.gpu in (None, scenario.hardware.gpu)
    )


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
    """The engine's build: the given release, else the document's, else the installed one."""
    version = version or scenario.source.engine_version
    if version is None:
        return engine[scenario.engine.name]().build(Locations.of_environment())
    return EngineBuild(scenario.engine.name, version, version)
