"""The options that the suite adds to pytest's command line: the entry point of the package.

pytest loads this module in every session, before any conftest, so that it knows the options from
the first moment. It imports nothing of the suite: a session of other tests pays for the options
alone. The suite's own conftest names the plugin that does the work.
"""

import argparse
import copy
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

_FOLDERS = (
    "--run-dir",
    "--scenarios",
    "--baselines",
    "--resume",
    "--engine-repo",
    "--waivers",
)
_LONG = "--perfgate-"
_INI = {
    "perfgate_scenarios": "folders of scenario files; packaged: those that perfgate brings along",
    "perfgate_baselines": "folder of the accepted baselines",
}


# The short names that are perfgate's in this session: no plugin and no conftest has them.
_SHORT: pytest.StashKey[frozenset[str]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = _group(parser)
    for name, settings in OPTIONS.items():
        group.addoption(long_name(name), help=_HELP[name], **settings)
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
                short = {**OPTIONS[name], "dest": _dest(name)}
                _group(parser).addoption(name, help=f"short for {long_name(name)}", **short)
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
    from perfgate.core.paths import require_own_settings

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


def shard_of(text: str) -> str:
    """The shard as the command line has it, checked.

    Raises:
        ArgumentTypeError: it is none.
    """
    from perfgate.campaign.shards import parse_shard
    from perfgate.core.errors import InputError

    try:
        return str(parse_shard(text))
    except InputError as error:
        raise argparse.ArgumentTypeError(f"{error.problem}: {text!r}; {error.expected}") from error


_HELP = {
    "--gate": "for a release: a selected scenario without a verdict fails the run",
    "--record": "record candidates for baselines at the end: a test without a baseline is fine; "
    "with --gate: record what has none, judge the rest",
    "--run-dir": "the run folder (default: runs/<time>-<pid>)",
    "--resume": "continue a run that was killed or interrupted: its folder, or its name under "
    "runs/; scenarios that were finished are not measured again",
    "--budget": "the time that the session may take (4h, 90m, 2h30m, 3600s): a scenario that "
    "would not finish in the time left is skipped",
    "--scenarios": "folder of scenario files; packaged: those that perfgate brings along; may be "
    "given again (default: docs/reference/settings.md)",
    "--baselines": "folder of the accepted baselines (default: docs/reference/settings.md)",
    "--launcher": "how programs are started",
    "--self-reference": "scenarios that measure their own reference: measure it now (fresh), use "
    "the machine's stored one (stored), or measure only where none is comparable (auto)",
    "--control": "the build that is started beside the one under test when that looks slower: an "
    "image, the folder of an installation, PERFGATE_PROGRAM_<NAME>=CALL, KEY=VALUE, several with "
    "commas between (docs/how-to/two_builds.md); auto: the one that the baseline was measured "
    "with; none, required: as gate.control",
    "--inject": "change a setting of the build under test, to see the gate catch it",
    "--ab": "compare two builds in this session, without a baseline: A=BUILD B=BUILD, each an "
    "image, an installation's folder, settings as --inject takes them, or this",
    "--engine-version": "release of the engine, whose spelling is used; of vLLM or SGLang as "
    "vllm=RELEASE (default: ask the program)",
    "--engine-commit": "commit of the engine, which names its baseline (default: ask the program)",
    "--engine-repo": "a clone of the engine's repository: without a baseline of the commit under "
    "test, that of its nearest ancestor is compared with",
    "--waivers": "file of the known regressions that may pass (default: waivers.yaml)",
    "--shape": "input and output length of the scenarios marked explore; may be repeated",
    "--shard": "run part K of N of the selected tests: each scenario whole on one of them, divided "
    "by measured hours, the same on every machine (docs/how-to/shards.md)",
    "--html": "write report.html, the page of the run, into its folder (docs/reference/reports.md)",
    "--rehearse": "run stand-ins for the engine's programs: checks everything but the engine, in "
    "minutes",
    "--rehearse-fault": "the stand-ins fail in this way: oom, hang, partial, slow:8%%, "
    "accuracy:2pp, scale:SCENARIO:METRIC=0.5, …",
}


# Short name of an option → how pytest reads it.
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "--gate": dict(action="store_true"),
    "--record": dict(action="store_true"),
    "--run-dir": dict(type=Path, metavar="FOLDER"),
    "--resume": dict(type=Path, metavar="RUN"),
    "--budget": dict(metavar="TIME"),
    "--scenarios": dict(action="append", metavar="FOLDER"),
    "--baselines": dict(type=Path, metavar="FOLDER"),
    "--launcher": dict(default="local", metavar="LAUNCHER"),
    "--self-reference": dict(choices=["auto", "fresh", "stored"], default="auto"),
    "--control": dict(default="auto", metavar="auto|none|required|BUILD"),
    "--inject": dict(action="append", default=[], metavar="KEY=VALUE"),
    "--ab": dict(nargs=2, metavar=("A=BUILD", "B=BUILD")),
    "--engine-version": dict(metavar="RELEASE"),
    "--engine-commit": dict(metavar="COMMIT"),
    "--engine-repo": dict(type=Path, metavar="FOLDER"),
    "--waivers": dict(type=Path, metavar="FILE"),
    "--shape": dict(action="append", default=[], metavar="ISL/OSL"),
    "--shard": dict(type=shard_of, metavar="K/N"),
    "--html": dict(action="store_true"),
    "--rehearse": dict(action="store_true"),
    "--rehearse-fault": dict(metavar="FAULT"),
}
