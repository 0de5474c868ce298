"""Session options: what a session's command line asks for, with what the suite's files say of it;
and the command line that runs one test again.

Each is read when it is first needed: a session without a test of the suite reads nothing.
"""

import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, get_args

import pytest

from perfgate.baselines.baseline import BuildSource
from perfgate.baselines.engine_repo import EngineRepo
from perfgate.baselines.waivers import Waiver, load_waivers
from perfgate.campaign.budget import Budget
from perfgate.campaign.builds.build import require_startable
from perfgate.campaign.builds.words import AbSources, parse_ab, parse_injection, parse_source
from perfgate.campaign.resume import KeptResults, kept_of
from perfgate.campaign.selection import Selected, scenarios_of, suite_tests
from perfgate.campaign.session import open_session
from perfgate.core.errors import InputError
from perfgate.core.files.paths import BASELINES, SCENARIOS, machine_store, scenario_folders
from perfgate.core.programs.environment_variables import PREFIX, known_variables, unknown_variables
from perfgate.core.redaction import mask_arguments
from perfgate.core.verdict import ControlPolicy
from perfgate.judging.assembly.claims import ClaimProbe, claim_probes
from perfgate.judging.assembly.sweeps import require_small_family
from perfgate.launchers.base import launcher
from perfgate.launchers.site import Site, load_site
from perfgate.launchers.start_commands import require_here
from perfgate.machine.hardware import Machine, detect
from perfgate.machine.preflight.software import own_environment
from perfgate.plan.toolchain import BuildOverride, registered, uncovered
from perfgate.runs.run_folder import RunFolder
from perfgate.scenarios.claims import claims_of
from perfgate.scenarios.exploration import explored, parse_shape
from perfgate.scenarios.files import LoadedSuite, load_suite
from perfgate.scenarios.scenario import Claim, Scenario
from perfgate.suite.options import OPTIONS, name_on_command_line, option_of, short_name
from perfgate.suite.selection import named_in

if TYPE_CHECKING:
    from perfgate.campaign.campaigns import Campaigns
    from perfgate.rehearsal.setup import RehearsalEnvironment

AUTO = "auto"
# What would change, record or control a build, and has no meaning where two are compared.
_NOT_BESIDE_AB = ("--record", "--inject", "--control")
# What says how a run ends, where it is kept and how long it may wait: no number depends on it.
_SHAPES_NOTHING = frozenset(
    {"--gate", "--record", "--run-dir", "--resume", "--budget", "--shard", "--html"}
)
# Variables that an option of the command line speaks for.
_FOLDERS = {SCENARIOS: "--scenarios", BASELINES: "--baselines"}


class SessionOptions:
    """What is asked of one pytest process: the main one, or a worker of pytest-xdist.

    Args:
        option: the value of an option of the command line.
        deadline: when the main process's time is used up, as a worker is told it; None: this is
            the main process, and its time begins when its budget is first asked for.
    """

    def __init__(self, option: Callable[[str], Any], deadline: float | None = None) -> None:
        self.option = option
        self._deadline = deadline

    @cached_property
    def scenarios(self) -> tuple[Scenario, ...]:
        """All scenarios, in the shapes that were asked for.

        Raises:
            SeveralInputErrors: scenario files are not as they should be.
            InputError: a shape is none.
        """
        if not self.rehearses:
            return self.whole_scenarios
        from perfgate.rehearsal.setup import shortened

        fault = self.option("--rehearse-fault")
        return tuple(shortened(one, fault) for one in self.whole_scenarios)

    @cached_property
    def whole_scenarios(self) -> tuple[Scenario, ...]:
        """As `scenarios`, with the limits of their files in a rehearsal, too."""
        shapes = [parse_shape(text) for text in self.option("--shape")]
        return explored(self.loaded.scenarios, shapes)

    @cached_property
    def claims(self) -> tuple[ClaimProbe, ...]:
        """All claims about the scenarios: both sides are there."""
        whole = [one for one in self.loaded.claims if one not in self._explored_away]
        return claim_probes(claims_of(self.scenarios, whole), self.scenarios)

    @cached_property
    def tests(self) -> list[tuple[Selected, tuple[str, ...]]]:
        """Every test of the suite, with its markers; errors as of `scenarios`."""
        return suite_tests(self.scenarios, self.claims)

    @property
    def _explored_away(self) -> tuple[Claim, ...]:
        """The claims with a side that is there in other shapes alone."""
        ids = {scenario.id for scenario in self.scenarios}
        return tuple(one for one in self.loaded.claims if not ids.issuperset(one.sides))

    @cached_property
    def ab(self) -> AbSources | None:
        """The two builds that this session compares; None: it compares with baselines.

        Raises:
            InputError: they cannot be understood, or another option contradicts them.
        """
        words = self.option("--ab")
        if not words:
            return None
        idle: tuple[object, ...] = (None, False, [], AUTO)
        others = [name for name in _NOT_BESIDE_AB if self.option(name) not in idle]
        if others:
            raise InputError(
                "an A/B compares two builds and nothing else",
                field="--ab",
                found=f"{', '.join(others)} beside it",
                expected="settings in A=… or B=…, and no baseline to record or to control",
            )
        return parse_ab(words)

    @cached_property
    def waivers(self) -> tuple[Waiver, ...]:
        """The losses that people let through; none in a rehearsal, whose losses are played, nor in
        an A/B.

        Raises:
            SeveralInputErrors: the file is not as it should be, in a rehearsal too.
        """
        found = load_waivers(self.option("--waivers"))
        return () if self.rehearses or self.ab else found

    @property
    def rehearses(self) -> bool:
        """Whether mock programs play the engine's programs."""
        return bool(self.option("--rehearse") or self.option("--rehearse-fault"))

    def rehearsal(self, config: pytest.Config) -> "RehearsalEnvironment":
        """The environment of a rehearsal, to be entered; left when pytest ends."""
        from perfgate.rehearsal.setup import RehearsalEnvironment

        environment = RehearsalEnvironment()
        config.add_cleanup(environment.leave)
        return environment

    @property
    def resumes(self) -> bool:
        """Whether this session goes on with an earlier one's run."""
        return self.option("--resume") is not None

    @cached_property
    def machine(self) -> Machine:
        """This machine."""
        return detect()

    @cached_property
    def budget(self) -> Budget | None:
        """The time that the session may take; its workers have the same deadline.

        Raises:
            InputError: not a span of time.
        """
        text = self.option("--budget")
        if text is None or self._deadline is None:
            return text and Budget.from_now(text)
        return Budget(text, self._deadline)

    @property
    def control(self) -> BuildSource | None:
        """The build that controls are started of; None: the one that a baseline recorded.

        Raises:
            InputError: the words name no build.
        """
        text = self.option("--control")
        if text == AUTO or text in get_args(ControlPolicy):
            return None
        return parse_source(text, field="--control")

    @property
    def control_policy(self) -> ControlPolicy | None:
        """Whether controls are made, and needed; None: as each scenario says."""
        policies: dict[str, ControlPolicy] = {"none": "none", "required": "required"}
        return policies.get(self.option("--control"))

    def require_possible(self) -> None:
        """Check, before any work, what can be known without the tests. The budget begins.

        Raises:
            InputError: an option is wrong, or cannot be had together with another.
            SeveralInputErrors: the site file or that of the waivers is not as it should be.
        """
        _ = (self.budget, self.waivers, self.control, self.ab)
        load_site()

    def require_here(self, selected: Mapping[str, Selected]) -> None:
        """Check what can be known of the suite, of the site's commands, and of a control by name.

        Raises:
            InputError: the suite gates too much; the site has commands for this machine, and a
                scenario is started on other nodes; or the control cannot be started.
        """
        require_small_family(self.loaded.scenarios)
        scenarios = [*scenarios_of(selected).values()]
        started_by = launcher[self.option("--launcher")]()
        can_run = [one for one in scenarios if not self.machine.lacks(one.hardware, one.launch)]
        require_here(self._site, started_by, can_run)
        if self.control is not None:
            require_startable(scenarios, started_by, self.control, synthetic=self.rehearses)

    def warnings(self, selected: Mapping[str, Selected]) -> tuple[str, ...]:
        """What is worth a look before the selected tests are run, each in one line.

        Raises:
            InputError: the release that is asked for is none of an engine under test.
        """
        scenarios = [*scenarios_of(selected).values()]
        version = self.option("--engine-version")
        found = [*unknown_variables(os.environ)]
        found += uncovered(scenarios, version)
        started_by = launcher[self.option("--launcher")]()
        found += started_by.warnings(scenarios, version) if started_by.warnings else ()
        found += [
            f"claim {one.id} is left out: --shape replaced a scenario that it speaks of"
            for one in self._explored_away
        ]
        if not self.rehearses and (own := own_environment()) is not None:
            found.append(own.found)
        return tuple(found)

    def named_by(self, tests: Iterable[str]) -> dict[str, Selected]:
        """The tests of the suite among `tests` → what each is about."""
        known = {one.id: one for one, _ in self.tests}
        return {test: known[named_in(test)] for test in tests if named_in(test) in known}

    def campaigns(self, run: RunFolder) -> "Campaigns":
        """The campaigns of this process, for the session's run.

        Raises:
            InputError: an option is wrong.
        """
        # All that measures and judges: a session that only collects does without.
        from perfgate.campaign.campaigns import Campaigns

        option = self.option
        repo = option("--engine-repo")
        # As before the first start: a worker may begin while another has its commands in effect.
        slider = run.facts().get("machine", {}).get("boost_slider", "")
        machine = replace(self.machine, boost_slider=slider)
        session = replace(
            open_session(run, machine, option("--launcher"), self._site),
            reference=option("--self-reference"),
            injections=tuple(parse_injection(text) for text in option("--inject")),
            cache=(run.path / "rehearsal" if self.rehearses else machine_store()) / "cache",
            synthetic=self.rehearses,
            waivers=self.waivers,
            today=run.day(),
            repo=None if repo is None else EngineRepo(repo),
            budget=self.budget,
            ab=self.ab,
            kept=kept_of(run.records()) if self.resumes else KeptResults(),
            override=BuildOverride(option("--engine-version"), option("--engine-commit")),
            control=self.control,
            control_policy=self.control_policy,
        )
        return Campaigns(session)

    @property
    def _site(self) -> Site:
        """The site; nothing runs before and after a start where mocks play the engine."""
        site = load_site()
        return replace(site, before=(), after=()) if self.rehearses else site

    @cached_property
    def loaded(self) -> LoadedSuite:
        """What the suite's files say, in the shapes that stand there; errors as of `scenarios`."""
        return load_suite(scenario_folders(), registered())


def rerun_line(config: pytest.Config, node: str, environment: Mapping[str, str]) -> str:
    """``NAME=value pytest TEST --option=value …``, as a shell takes it; secrets are masked.

    Args:
        config: the session's.
        node: the test's id.
        environment: the variables that the session was started with, secrets masked.
    """
    shaping = shaping_options(option_of(config), partial(name_on_command_line, config))
    settings = config.getoption("inifilename", None)  # the file that -c names
    options = [*(["-c", str(settings)] if settings else []), *shaping]
    options = mask_arguments(options)
    given = {short_name(word.partition("=")[0]) for word in options}
    of_programs = {one.name for one in known_variables() if one.set_by == "perfgate"}
    variables = [
        f"{name}={shlex.quote(value)}"
        for name, value in sorted(environment.items())
        if name.startswith(PREFIX) and name not in of_programs and _FOLDERS.get(name) not in given
    ]
    return " ".join([*variables, shlex.join(["pytest", _from_here(config, node), *options])])


def shaping_options(option: Callable[[str], Any], name_of: Callable[[str], str]) -> list[str]:
    """Every option of the suite that shapes a number and was given, as ``--name=value``.

    Args:
        option: the value of an option, by its short name.
        name_of: the name of an option on the command line, by its short name.
    """
    words: list[str] = []
    for short, settings in OPTIONS.items():
        value = option(short)
        if short in _SHAPES_NOTHING or value in (None, False, [], settings.get("default")):
            continue
        name = name_of(short)
        if value is True:
            words.append(name)
        elif "nargs" in settings:
            words += [name, *value]
        else:
            words += [f"{name}={one}" for one in (value if isinstance(value, list) else [value])]
    return words


def _from_here(config: pytest.Config, node: str) -> str:
    """The test's id from the folder that the session was started in; ids are from the root's."""
    path, colons, rest = node.partition("::")
    start = config.invocation_params.dir
    return os.path.relpath(config.rootpath / path, start) + colons + rest
