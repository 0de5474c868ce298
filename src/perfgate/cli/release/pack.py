"""`perfgate release pack`: what is packed is shown first, and asked for."""

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from perfgate.baselines.waivers.file import default_file
from perfgate.cli.release.check import add_evidence, suite_tests_of
from perfgate.cli.scenario_choice import add_folder
from perfgate.core.errors import InputError
from perfgate.core.files.paths import scenario_folders
from perfgate.core.files.untrusted_files import read_input
from perfgate.core.redaction import visible
from perfgate.core.verdict import counted
from perfgate.release.check_result import ReleaseCheck
from perfgate.release.pack_archive import LARGEST_PACK, write_pack
from perfgate.release.pack_contents import Contents, contents, newest_end
from perfgate.release.policy import load_policy
from perfgate.release.release_check import check
from perfgate.runs.ended_run import read_run
from perfgate.scenarios.yaml_document import LARGEST_FILE

DEFAULT_LARGEST = 2 * 2**30  # bytes: what release pages of GitHub and GitLab take
_UNITS = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_SIZE = re.compile(r"([0-9]{1,12})[ ]?(KiB|MiB|GiB|)")
_SHOWN = 5
_HELP = {
    "--output": "file to write; creates its folder",
    "--waivers": "file of waivers (default: the suite's waivers.yaml, if present)",
    "--max-size": "most bytes of all files, e.g. 500MiB (default: 2GiB)",
    "--yes": "do not ask; overwrite an existing file",
}


def add_pack(parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], int]:
    """Add the options of `pack`; gives what runs it."""
    add = add_evidence(parser, _HELP)
    add("--output", type=Path, metavar="FILE.tar", required=True)
    add("--waivers", type=Path, metavar="FILE")
    add("--max-size", type=size, default=DEFAULT_LARGEST, metavar="SIZE")
    add("--yes", action="store_true")
    add_folder(parser)
    return _pack


def size(text: str) -> int:
    """A number of bytes as a person gives it: ``2GiB``, ``500 MiB``, ``1000``.

    Raises:
        ArgumentTypeError: it is none, or more than a pack may have.
    """
    found = _SIZE.fullmatch(text)
    number = int(found[1]) * _UNITS[found[2]] if found else 0
    if not 0 < number <= LARGEST_PACK:
        raise argparse.ArgumentTypeError(
            f"not a size: {text!r}; write it as 500MiB or 2GiB, at most {in_words(LARGEST_PACK)}"
        )
    return number


def in_words(number: int) -> str:
    """Bytes for people: ``1.5 MiB``."""
    for unit, factor in reversed(_UNITS.items()):
        if number >= factor > 1:
            return f"{number / factor:.1f} {unit}"
    return f"{number} bytes"


def _pack(arguments: argparse.Namespace) -> int:
    """`perfgate release pack`: the evidence of a release as one file, from which all can be
    recomputed.

    It holds policy, scenarios, baselines, the runs with all their raw output, report, check,
    certificate and scripts that measure again (docs/reference/release.md). Of equal input the
    file is equal, byte for byte. A release that fails its check is packed, too. Files and bytes are
    told before anything is written.

    exit status: 0 written, whatever the check's result; 2 unusable input: a secret, a link, a size
    above the limit, no --yes; 21 a scenario changed since it was measured, or a run did not end;
    22, 23, 24 as of `perfgate release check`
    """
    runs = [read_run(folder) for folder in arguments.run]
    at = newest_end(runs)
    suite = suite_tests_of(arguments.scenarios)
    checked = check(load_policy(arguments.policy, suite), runs, suite, at)
    found = contents(
        checked,
        runs,
        suite.scenarios,
        policy=read_input(arguments.policy, LARGEST_FILE, "policy"),
        waivers=_waivers(arguments.waivers),
        places=scenario_folders(arguments.scenarios),
    )
    for line in _lines(checked, found):
        print(visible(line))
    _require_size(found, arguments.max_size)
    _require_consent(arguments.output, yes=arguments.yes)
    digest = write_pack(arguments.output, found.manifest, found.ingredients)
    print(visible(f"wrote {arguments.output}: SHA-256 of its manifest {digest}"))
    return 0


def _waivers(named: Path | None) -> bytes | None:
    file = named or default_file()
    if named is None and not file.exists():
        return None
    try:
        return read_input(file, LARGEST_FILE, "file of waivers")
    except OSError as error:
        raise InputError(
            "cannot be read", file=file, field="--waivers", found=error.strerror
        ) from error


def _lines(check: ReleaseCheck, found: Contents) -> list[str]:
    """What a person reads before anything is written."""
    files = found.manifest.files
    largest = sorted(files, key=lambda one: (-one.size, one.path))[:_SHOWN]
    scripts = sum(one.role == "reproduce" for one in files)
    without = sum(one.result is None or not one.result.rerun for one in check.tests)
    left = found.left_out
    metrics = counted(check.metrics_checked, "metric")
    return [
        f"release {check.policy.release}: {check.result}, {metrics} checked",
        f"runs: {', '.join(found.manifest.runs)}",
        f"files: {len(files)}, {in_words(found.size)}",
        *(f"  {in_words(one.size)}  {one.path}" for one in largest),
        f"scripts: {scripts} that measure a required test again"
        + (f"; none of {without} that no run has" if without else ""),
        f"left out: {counted(len(left), 'file')}, {in_words(sum(one for _, one in left))}"
        if left
        else "left out: nothing",
        *(f"  {in_words(one)}  {path}" for path, one in left),
        *_to_look_at(found.named),
    ]


def _to_look_at(named: Sequence[str]) -> list[str]:
    """What may be a secret, by its name alone: a person knows."""
    if not named:
        return []
    return [
        f"look at these: {counted(len(named), 'file')} with a value behind the name of a secret",
        *(f"  {one}" for one in named[:_SHOWN]),
    ]


def _require_size(found: Contents, limit: int) -> None:
    if found.size > limit:
        raise InputError(
            "the pack would be larger than allowed",
            field="--max-size",
            found=f"{found.size} bytes ({in_words(found.size)})",
            expected=f"at most {limit} bytes ({in_words(limit)})",
            hint="see the largest files above: a log that repeats itself, a trace; or allow more "
            "with --max-size",
        )


def _require_consent(output: Path, *, yes: bool) -> None:
    """Ask whoever sits there.

    Raises:
        InputError: nobody sits there, or says no, and --yes was not given.
    """
    if yes:
        return
    question = f"write {output}" + (", which is there already" if output.exists() else "")
    if sys.stdin.isatty():
        print(visible(f"{question}? [y/N] "), end="", flush=True)
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return
    raise InputError(
        "nothing was written",
        field="--output",
        found=question,
        expected="a yes",
        hint="look at the sizes above, and give --yes",
    )
