"""Start commands: what the site runs on this machine before and after each fresh start.

The fields ``before``, ``after`` and ``command_timeout_s`` of site.yaml; docs/how-to/preflight.md.
"""

import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from perfgate.core.errors import InputError, MissingProgram, RunError
from perfgate.core.programs.command import Command
from perfgate.core.redaction import mask_arguments
from perfgate.launchers.base import Launcher
from perfgate.launchers.local.launcher import LocalLauncher, guarded
from perfgate.launchers.site import Site
from perfgate.scenarios.scenario import Scenario

_MARGIN_S = 30.0  # for the guard, beyond the time limits of its commands

Key = Literal["before", "after"]


def has_commands(site: Site) -> bool:
    """Whether anything runs before or after a start."""
    return bool(site.before or site.after)


def command_facts(site: Site) -> dict[str, str]:
    """The commands by their field, secrets masked; what there is none of is left out."""
    fields = {"before": site.before, "after": site.after}
    return {key: "; ".join(map(_shown, calls)) for key, calls in fields.items() if calls}


def require_here(site: Site, started_by: Launcher, scenarios: Iterable[Scenario]) -> None:
    """Check that what the site's commands prepare is the machine that the engine runs on.

    Raises:
        InputError: there are commands, and a scenario is started on other nodes.
    """
    far = [
        scenario.id
        for scenario in scenarios
        if not started_by.here
        or scenario.hardware.nodes > 1
        or (scenario.launch and scenario.launch.by_slurm)
    ]
    if not far or not has_commands(site):
        return
    raise InputError(
        "before and after run on this machine only, and engines start on other nodes",
        file=site.file,
        field="before" if site.before else "after",
        found=f"{', '.join(sorted(set(far)))} with --launcher {started_by.name}",
        expected="scenarios of one node, and the launcher local or docker",
        hint="use a prolog and an epilog of the job there, and a site file without these fields",
    )


@contextmanager
def commands_around(site: Site, folder: Path) -> Iterator[None]:
    """Run ``before``, then the block, then ``after``: always, by a guard if this process is gone.

    Args:
        site: the commands; without any, nothing is started.
        folder: where their logs go.

    Raises:
        RunError: class ``site_command``: a command failed, or did not end in time.
    """
    if not has_commands(site):
        yield
        return
    grace_s = len(site.after) * site.command_timeout_s + _MARGIN_S
    task = {"guards": "machine", "calls": site.after, "call_s": site.command_timeout_s}
    failures = []

    def run_after() -> None:
        for number, argv in enumerate(site.after):
            try:
                _run(site, "after", number, argv, folder)
            except RunError as error:
                failures.append(error)

    with guarded(task, folder, "after-guard", grace_s, run_after) as guard:
        while not guard.tail(1) and guard.until(0.01) is None:  # it is ready then
            pass
        for number, argv in enumerate(site.before):
            _run(site, "before", number, argv, folder)
        yield
    if failures:
        raise failures[0]


def _run(site: Site, key: Key, number: int, argv: tuple[str, ...], folder: Path) -> None:
    """Run one command to its end."""
    evidence: tuple[str, ...] = ()
    try:
        with LocalLauncher().start(Command(argv), folder, f"{key}-{number}") as job:
            ended = job.wait(total_s=site.command_timeout_s)
            evidence = job.tail(5)
    except MissingProgram as error:
        problem = error.problem
    else:
        if ended.reason == "exited" and ended.status == 0:
            return
        problem = f"ended with status {ended.status}"
        if ended.reason == "total":
            problem = f"did not end within {site.command_timeout_s:g} s (command_timeout_s)"
    where = f"{site.file}: {key}[{number}]"
    raise RunError("site_command", f"{where}: `{_shown(argv)}`: {problem}", evidence=evidence)


def _shown(argv: Iterable[str]) -> str:
    return shlex.join(mask_arguments(argv))
