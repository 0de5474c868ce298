"""The options that the suite adds to pytest's command line: the entry point of the package.

pytest loads this module in every session, before any conftest, so that it knows the options from
the first moment. It imports nothing of the suite: a session of other tests pays for the options
alone. The suite's own conftest names the plugin that does the work.
"""

import copy
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

_PATHS = ("FOLDER", "FILE", "RUN")  # values that are paths
_LONG = "--perfgate-"
_INI = {
    "perfgate_scenarios": "folders of scenario files; packaged: perfgate's own",
    "perfgate_baselines": "folder of the accepted baselines",
}


# The short names that are perfgate's in this session: no plugin and no conftest has them.
_SHORT: pytest.StashKey[frozenset[str]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = _group(parser)
    for name, settings in OPTIONS.items():
        group.addoption(long_name(name), **settings)
    for name, help_line in _INI.items():
        parser.addini(name, help_line, type="args", default=[])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None, None, None]:
    """Add the short names that are free once the conftests are loaded.

    Begin again if pytest took an option's value for the place of the tests.

    It looks for its settings before it loads any plugin. A folder that stands by itself after an
    option that it does not know yet is to it where the tests are: their settings would be another
    project's (pytest 9.2, `Config.parse`). Before anything is captured: the capture of a session
    that is given up would write to a standard output that may be closed.
    """
    given = [str(word) for word in early_config.invocation_params.args]
    _require_own_settings(early_config)
    words = joined(given, OPTIONS.keys() & _taken(parser))
    if words != given:
        raise SystemExit(pytest.main(words, early_config.invocation_params.plugins))
    _hide_values_of_short_names(early_config, parser, args)
    try:
        return (yield)
    except FileNotFoundError as error:
        if error.filename is not None:
            raise
        # Of `tempfile`, for what pytest captures; it would end Python in 1, which is a regression.
        raise pytest.UsageError(f"{error.strerror}; free space there, or set TMPDIR") from error
    finally:
        free = OPTIONS.keys() - _taken(parser)
        early_config.stash[_SHORT] = frozenset(free)
        for name in OPTIONS:
            if name in free:
                more = {"dest": _dest(name), "help": f"short for {long_name(name)}"}
                _group(parser).addoption(name, **(dict(OPTIONS[name]) | more))
        args[:] = _split(args, free)


def long_name(name: str) -> str:
    """``--perfgate-record`` of ``--record``: the name that no other plugin has."""
    return _LONG + name.removeprefix("--")


def short_name(name: str) -> str:
    """``--record`` of ``--perfgate-record``, and of itself."""
    return "--" + name.removeprefix(_LONG) if name.startswith(_LONG) else name


def option_of(config: pytest.Config) -> Callable[[str], Any]:
    """The value of an option by its short name, whoever owns that name on the command line."""
    return lambda name: config.getoption(_dest(name))


def name_on_command_line(config: pytest.Config, name: str) -> str:
    """The short name of an option, or the long one where another plugin has the short one."""
    return name if name in config.stash[_SHORT] else long_name(name)


def _dest(name: str) -> str:
    return long_name(name).removeprefix("--").replace("-", "_")


def _group(parser: pytest.Parser) -> pytest.OptionGroup:
    return parser.getgroup("perfgate", "perfgate: performance and accuracy gate")


def _taken(parser: pytest.Parser) -> set[str]:
    """The names of all options that pytest knows now."""
    groups = [parser._anonymous, *parser._groups]
    return {name for group in groups for option in group.options for name in option.names()}


def _hide_values_of_short_names(
    config: pytest.Config, parser: pytest.Parser, args: Sequence[str]
) -> None:
    """Keep the value of a short name, which pytest does not know yet, from the tests' places.

    pytest loads the conftests of these places.
    """
    free = OPTIONS.keys() - _taken(parser)
    words = [long_name(word) if word in free else word for word in args]
    known = parser.parse_known_args(words, namespace=copy.copy(config.option))
    config.known_args_namespace.file_or_dir = known.file_or_dir


def _split(args: Sequence[str], free: Collection[str]) -> list[str]:
    """Arguments as they were before `joined`, where a name is another plugin's."""
    words: list[str] = []
    for word in args:
        name, equals, value = word.partition("=")
        others = equals and name in _FOLDERS and name not in free
        words += [name, value] if others else [word]
    return words


def _require_own_settings(config: pytest.Config) -> None:
    """Refuse a gate repository that pytest found and that could be another user's.

    Before its conftest is run and its `pythonpath` is used. A session of other tests, whose
    settings have none of perfgate's, is left alone.

    Raises:
        UsageError: it could.
    """
    if config.inipath is None or not any(config.getini(name) for name in _INI):
        return
    from perfgate.core.errors import InputError
    from perfgate.core.files.paths import require_own_settings

    try:
        require_own_settings(config.inipath, "conftest.py", "perf_tests")
    except InputError as error:
        raise pytest.UsageError(str(error)) from error


def joined(args: Sequence[str], others: Collection[str] = ()) -> list[str]:
    """Arguments, each option that names a file or folder joined with it: ``--run-dir=FOLDER``.

    Args:
        args: the arguments.
        others: short names that another plugin has.
    """
    words: list[str] = []
    for word in args:
        if words and words[-1] not in others and short_name(words[-1]) in _FOLDERS:
            words[-1] = f"{words[-1]}={word}"
        else:
            words.append(word)
    return words


def _settings(name: str, value: str, help_line: str) -> Mapping[str, Any]:
    """How pytest reads an option: a flag where it has no value, a path where its value is one."""
    if not value:
        return dict(action="store_true", help=help_line)
    of_kind = dict(type=Path) if value in _PATHS else {}
    return {"metavar": value, "help": help_line, **of_kind, **_MORE.get(name, {})}


_MORE: Mapping[str, Mapping[str, Any]] = {
    "--scenarios": dict(type=str, action="append"),
    "--launcher": dict(default="local"),
    "--self-reference": dict(choices=["auto", "fresh", "stored"], default="auto", metavar=None),
    "--control": dict(default="auto"),
    "--inject": dict(action="append", default=[]),
    "--ab": dict(nargs=2, metavar=("A=BUILD", "B=BUILD")),
    "--shape": dict(action="append", default=[]),
}
# Short name, value, help.
_TABLE = (
    ("--gate", "", "fail if a selected scenario gets no verdict: for a release"),
    ("--record", "", "record candidates for baselines; with --gate: of what has none"),
    ("--run-dir", "FOLDER", "run folder (default: runs/<time>-<pid>)"),
    ("--resume", "RUN", "continue a run: its folder, or its name in runs/"),
    ("--budget", "TIME", "skip scenarios that need longer: 4h, 90m, 2h30m"),
    ("--scenarios", "FOLDER", "scenario files (docs/reference/settings.md); repeatable"),
    ("--baselines", "FOLDER", "accepted baselines (docs/reference/settings.md)"),
    ("--launcher", "LAUNCHER", "how programs are started"),
    ("--self-reference", "WHEN", "own reference: measure now, use stored, or as needed"),
    ("--control", "auto|none|required|BUILD", "build to start beside (docs/how-to/two_builds.md)"),
    ("--inject", "KEY=VALUE", "change a setting of the build under test"),
    ("--ab", "BUILD", "compare two builds: image, folder, settings, or this"),
    ("--engine-version", "RELEASE", "the engine's release; vllm=RELEASE (default: ask it)"),
    ("--engine-commit", "COMMIT", "the engine's commit, for its baseline (default: ask it)"),
    ("--engine-repo", "FOLDER", "engine's clone: compare with the nearest commit with a baseline"),
    ("--waivers", "FILE", "known regressions that may pass (default: waivers.yaml)"),
    ("--shape", "ISL/OSL", "lengths of scenarios marked explore; repeatable"),
    ("--shard", "K/N", "run part K of N, divided by hours (docs/how-to/shards.md)"),
    ("--html", "", "write report.html into the run folder"),
    ("--rehearse", "", "run mocks of the engine's programs"),
    ("--rehearse-fault", "FAULT", "let mocks fail: oom, hang, partial, slow:8%%, accuracy:2pp"),
)
# Short name → how pytest reads it.
OPTIONS = {name: _settings(name, value, help_line) for name, value, help_line in _TABLE}
_FOLDERS = frozenset(name for name, value, _ in _TABLE if value in _PATHS)
