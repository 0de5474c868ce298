"""The tables of the reference, made from what the code has: options, variables, statuses, …

Pure: each function gives Markdown. `reference_pages.py` puts it into the pages.
"""

import argparse
import ast
import inspect
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

from perfgate.campaign.selection import Selected, measured_scenarios, selected_with, suite_tests
from perfgate.cli.main import parser
from perfgate.core.errors import FAILURES
from perfgate.core.metrics import METRICS
from perfgate.core.programs.environment_variables import Setter, known_variables
from perfgate.judging.assembly.claims import ClaimProbe, claims_of_suite
from perfgate.plan.toolchain import registered
from perfgate.release import release_status
from perfgate.runs.exit_status import ExitStatus, meaning
from perfgate.runs.record import AnyRecord
from perfgate.scenarios.files import load_suite
from perfgate.scenarios.probe import Probe
from perfgate.suite import options

FILES: dict[str, str] = {
    "run.json": "machine, versions, git state, arguments, listed variables; secrets masked",
    "records.jsonl": "the records, one a line; every report is made of them",
    "progress.jsonl": "events: what runs, waits and is repeated",
    "summary.md": "the run for people",
    "report.html": "one page, with --html",
    "rehearsal/": "input of the mock programs",
    "run.lock": "held by the session that writes here",
    "workers.lock": "held by its workers",
    "<scenario>/": "the fresh starts of a scenario",
    "references/": "copies of the baselines and waivers used",
    "candidates/": "copies of the recorded candidates, with earlier sessions",
    "<scenario>.broken-<n>/": "leftovers of a killed session",
    "<scenario>/start-<n>-<role>/": "a fresh start: the server's files, one folder a probe",
    "server_cpu.json": "CPU seconds of the server during a load",
    "….sh": "the exact call of a program",
    "….out, ….err": "what the program printed",
    "….evidence.txt": "evidence of a program ended for silence or time",
}
"""Path in the folder → what is there."""
RECORD_KINDS: dict[str, str] = {
    str(kind.__struct_config__.tag): " ".join(str(kind.__doc__).partition("\n\n")[0].split())
    for kind in get_args(AnyRecord)
}
"""Kind of a line of ``records.jsonl`` → what it says: the first sentence of its struct."""


ROOT = Path(__file__).resolve().parents[2]

# Variable → the page that says more.
_MORE = {
    "PERFGATE_PROGRAM_<NAME>": "[of another build](../how-to/two_builds.md)",
    "PERFGATE_MODELS": "[On GPUs](../how-to/gpus.md#what-you-provide)",
    "PERFGATE_DATASETS": "[On GPUs](../how-to/gpus.md#what-you-provide)",
    "PERFGATE_TENSORRT_LLM_TABLES": "[dialects](dialects.md#add-a-release)",
    "PERFGATE_HOSTS": "[mpirun](../how-to/mpirun.md)",
    "PERFGATE_CONTAINER_IMAGE": "[commands](commands.md#in-a-container)",
    "PERFGATE_LEASES": "[leases](../how-to/preflight.md#the-folder-of-the-locks)",
    "PERFGATE_FAKE_GPUS": "[leases](../how-to/preflight.md#simulated-gpus)",
    "PERFGATE_PYTHON": "[GitHub](../how-to/github.md)",
}
_PYTEST_STATUSES = {
    2: "pytest's own: interrupted, also by SIGTERM",
    3: "pytest's own: an internal error of pytest or a plugin",
    4: "pytest's own: wrong usage, or an unusable file",
    5: "pytest's own: no test of the suite collected",
}
# What people select with `pytest -m`, for the table of what that is.
_SELECTIONS = (
    *("b200", "b200 and nightly", "b200 and weekly"),
    *("h200", "h200 and nightly", "h200 and weekly", "h200 and vllm", "h200 and sglang"),
    *("gb200", "gb200 and nightly", "gb200 and weekly"),
)
# An option that several verbs have in the same words is shown once.
_SHARED_BY = 2
# The statistic that the meaning of a metric begins with; metrics that differ in it share a row.
_STATISTIC = re.compile(r"(mean|median|p\d+) ")
_KINDS = ("smoke", "load", "curve", "accuracy", "claim")
_DOCUMENT = re.compile(r"\bdocs/([\w-]+/)?([\w-]+)\.md")
_AGAIN = re.compile("repeatable|repeated")
_CODE = re.compile(r"(`[^`]+`)")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [f"| {' | '.join(line)} |" for line in (header, *rows)]
    return "\n".join((lines[0], "|---" * len(header) + "|", *lines[1:]))


def bullets(rows: Iterable[tuple[str, str]]) -> str:
    """A list in Markdown: a name and its meaning on each line."""
    return "\n".join(f"- {name}: {meaning}" for name, meaning in rows)


def prose(text: str) -> str:
    """A text of the code as it stands in a cell: no markup but its code, documents as links."""
    text = " ".join(text.split())
    parts = _CODE.split(text)
    plain = (
        part if n % 2 else re.sub(r"([*<>_\[\]])", r"\\\1", part) for n, part in enumerate(parts)
    )
    joined = "".join(plain).replace("|", r"\|").replace(r"\_", "_")
    return _DOCUMENT.sub(_link, joined.replace(r"\<", "&lt;").replace(r"\>", "&gt;"))


def _link(found: re.Match[str]) -> str:
    folder, name = found.groups()
    there = f"{name}.md" if folder == "reference/" else f"../{folder or ''}{name}.md"
    return f"[{name}]({there})"


def variables(set_by: Setter) -> str:
    """The environment variables that one party sets."""
    rows = [
        (f"`{one.name}`", prose(one.meaning) + (f" ({more})" if more else ""))
        for one in known_variables()
        if one.set_by == set_by
        for more in [_MORE.get(one.name)]
    ]
    return bullets(rows)


def exit_statuses() -> str:
    """The statuses of a run of the suite."""
    own = {status.value: (status.name, meaning(status)) for status in ExitStatus}
    others = {number: ("", text) for number, text in _PYTEST_STATUSES.items()}
    rows = [
        (str(number), f"`{name}`" if name else "", prose(text))
        for number, (name, text) in sorted({**own, **others}.items())
    ]
    return table(("status", "name", "meaning"), rows)


def release_statuses() -> str:
    """The statuses of `perfgate release`, as the docstrings of `ReleaseStatus` tell them."""
    body = ast.parse(inspect.getsource(release_status.ReleaseStatus)).body[0]
    assert isinstance(body, ast.ClassDef)  # noqa: S101
    told = {
        before.targets[0].id: after.value.value
        for before, after in zip(body.body, body.body[1:], strict=False)
        if isinstance(before, ast.Assign)
        and isinstance(before.targets[0], ast.Name)
        and isinstance(after, ast.Expr)
        and isinstance(after.value, ast.Constant)
    }
    rows = [
        (str(status.value), f"`{status.name}`", prose(str(told[status.name])))
        for status in release_status.ReleaseStatus
    ]
    return table(("status", "name", "meaning"), rows)


def failure_classes() -> str:
    """The classes of failure, each under its heading."""
    return "\n\n".join(
        f"### `{failure.name}`\n\n{_sentence(failure.meaning)}"
        f"{' Of the machine.' if failure.of_machine else ''} Next: {_ended(failure.next_step)}"
        for failure in sorted(FAILURES.values(), key=lambda failure: failure.name)
    )


def _sentence(text: str) -> str:
    shown = _ended(text)
    return shown[:1].upper() + shown[1:]


def _ended(text: str) -> str:
    return prose(text).rstrip(".?") + ("?" if text.rstrip().endswith("?") else ".")


def metrics() -> str:
    """The metrics."""
    rows: dict[tuple[str, str, str, str], list[str]] = {}
    for metric in METRICS.values():
        band = "–" if metric.family.band is None else str(metric.family.band)
        meaning = prose(_STATISTIC.sub("", metric.meaning))
        key = (metric.unit, metric.direction, band, meaning)
        rows.setdefault(key, []).append(f"`{metric.name}`")
    cells = [(", ".join(names), *key) for key, names in rows.items()]
    return table(("metric", "unit", "better", "band", "meaning"), cells)


def selections() -> str:
    """What expressions of markers select of the packaged scenarios."""
    # Those that perfgate brings along; a checkout may hold others beside them.
    named = ("b200", "h200", "gb200", "markers.yaml")
    suite = load_suite([ROOT / "scenarios" / name for name in named], registered())
    claims = claims_of_suite(suite)
    tests = suite_tests(suite.scenarios, claims)
    engines = {one.id: one.engine.name for one in suite.scenarios}
    rows = []
    for expression in _SELECTIONS:
        selected = selected_with(expression, tests, suite.markers)
        kinds = Counter(map(_kind, selected))
        measured = measured_scenarios(selected)
        rows.append(
            (
                f"`{expression}`",
                *(str(kinds[kind] or "–") for kind in _KINDS),
                str(len(measured)),
                ", ".join(sorted({engines[name] for name in measured})),
            )
        )
    return table(("expression", *_KINDS, "scenarios", "engines"), rows)


def _kind(test: Selected) -> str:
    if isinstance(test, Probe):
        return "load" if test.is_load else test.kind
    return "claim" if isinstance(test, ClaimProbe) else "curve"


def run_files() -> str:
    """The files of a run folder."""
    return bullets((f"`{name}`", prose(FILES[name])) for name in FILES)


def record_kinds() -> str:
    """The kinds of records."""
    return bullets((f"`{kind}`", prose(text)) for kind, text in RECORD_KINDS.items())


def schemas() -> str:
    """The JSON Schemas of the package and of its documents."""
    found = [file for room in ("src", "docs") for file in (ROOT / room).rglob("*.schema.json")]
    # One that is in both is the same file twice, for people who read the pages alone.
    files = {file.name: file for file in reversed(found)}
    rows = []
    for name, file in sorted(files.items()):
        schema = json.loads(file.read_text(encoding="utf-8"))
        path = file.relative_to(ROOT).as_posix()
        there = f"../../{path}" if path.startswith("src/") else name
        rows.append((f"[{name}]({there})", prose(schema["title"].partition(":")[0])))
    return bullets(rows)


def pytest_options() -> str:
    """The options that the suite adds to pytest, and its settings."""
    own = argparse.ArgumentParser(prog="pytest", add_help=False)
    for name, how_it_is_read in options.OPTIONS.items():
        own.add_argument(name, **how_it_is_read)
    settings = [(f"`{name}`", prose(text)) for name, text in options._INI.items()]
    return "\n\n".join(
        (
            bullets(_option_rows(own)),
            "In `pyproject.toml`, `[tool.pytest.ini_options]`:",
            bullets(settings),
        )
    )


def command_options() -> str:
    """Every verb of `perfgate` with its options; those of several verbs in one table."""
    commands = list(_commands(parser((), whole=True), ""))
    times = Counter(row for _, _, rows in commands for row in rows)
    shared = [row for row, count in times.items() if count >= _SHARED_BY and row[0][1] == "-"]
    parts = ["Several verbs have these options:", bullets(shared)]
    for prog, help_line, rows in commands:
        own = [row for row in rows if row not in shared]
        also = [row[0].partition(" ")[0].rstrip(",") for row in rows if row in shared]
        if not rows:
            continue
        parts.append(f"### {prog}")
        if help_line:
            also_line = f" Also {', '.join(also)}." if also else ""
            parts.append(f"{help_line[:1].upper()}{help_line[1:]}.{also_line}")
        if own:
            parts.append(bullets(own))
    return "\n\n".join(parts)


def _commands(
    of: argparse.ArgumentParser, help_line: str
) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Each verb: its name, its line of help, the rows of its options."""
    yield of.prog, prose(help_line), _option_rows(of)
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            lines = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, command in action.choices.items():
                yield from _commands(command, lines[name])


def _option_rows(of: argparse.ArgumentParser) -> list[tuple[str, str]]:
    shown = [
        action
        for action in of._actions
        if not isinstance(action, (argparse._HelpAction, argparse._SubParsersAction))
    ]
    # Positional arguments first, as one writes them.
    shown.sort(key=lambda action: bool(action.option_strings))
    return [
        (f"{_name(action)} {_values(action)}".strip(), _meaning(of, action)) for action in shown
    ]


def _name(action: argparse.Action) -> str:
    names = action.option_strings or [str(action.metavar or action.dest).upper()]
    return ", ".join(f"`{name}`" for name in names)


def _values(action: argparse.Action) -> str:
    if not action.option_strings:
        return {"*": "(any number)", "+": "(one or more)", "?": "(optional)"}.get(
            str(action.nargs), ""
        )
    if action.nargs == 0:
        return ""
    if action.choices is not None:
        words: list[str] = [str(one) for one in action.choices]
    elif isinstance(action.metavar, tuple):
        return f"`{' '.join(action.metavar)}`"
    else:
        words = str(action.metavar or action.dest.upper()).split("|")
    return ", ".join(f"`{word}`" for word in words)


def _meaning(of: argparse.ArgumentParser, action: argparse.Action) -> str:
    text = of._get_formatter()._expand_help(action) if action.help else ""
    beside = []
    if action.option_strings and action.required:
        beside.append("required")
    if isinstance(action, argparse._AppendAction) and not _AGAIN.search(text):
        beside.append("repeatable")
    if _has_default(action) and "default" not in text:
        beside.append(f"default: `{action.default}`")
    return prose(text) + (f" ({'; '.join(beside)})" if beside else "")


def _has_default(action: argparse.Action) -> bool:
    unsaid: tuple[Any, ...] = (None, False, "", argparse.SUPPRESS)
    return bool(action.option_strings) and action.default not in unsaid and action.default != []
