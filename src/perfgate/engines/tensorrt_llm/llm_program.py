"""A program that takes LLM-API settings: options and YAML file of one scenario, for one release.

What its command line looks like is the program's own module; this is what all of them share.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from perfgate.core.command import Command
from perfgate.engines.arguments import Argument, spelled
from perfgate.engines.base import EngineBuild
from perfgate.engines.refusal import Refused, asked_by, refusal
from perfgate.engines.served import settings as served_settings
from perfgate.engines.tensorrt_llm import extra_options, llm_api_yaml
from perfgate.engines.tensorrt_llm.table import TABLES, Release, release
from perfgate.scenarios.scenario import CudaGraphs, EngineSettings, Scenario

_CPP, _CPP_SHORT = "tensorrt", "trt"
_BACKEND = "engine.settings.backend"


@dataclass(frozen=True)
class LlmProgram:
    """One program of one release, told the settings of one scenario.

    Attributes:
        name: as the release tables call it.
        scenario: what to run.
        release: the release that is told.
        settings: the scenario's, with the document's defaults in the place of what it leaves open.
        file: content of the YAML file; empty: none is needed.
    """

    name: str
    scenario: Scenario
    release: Release
    settings: EngineSettings
    file: dict[str, Any]

    @classmethod
    def of(cls, name: str, scenario: Scenario, build: EngineBuild) -> "LlmProgram":
        """The program of `build`, which must have it.

        Raises:
            InputError: a setting, or an extra key, that the release's YAML file cannot take.
        """
        known = release(build.version)
        settings = pinned(scenario, build, name)
        file = llm_api_yaml.document(scenario, settings, known, name)
        file = extra_options.merged(scenario, known, name, file)
        return cls(name, scenario, known, settings, file)

    @property
    def backend(self) -> Argument:
        """The option that names the back end; left out where nothing else can say it.

        The C++ engine has no word up to 0.21: it is what the programs use when they are not told.
        It left with 1.3 (#15918, #16369). A deprecated option does not say the default.

        Raises:
            InputError: the program has no such back end.
        """
        choices = self.release.choices(self.name, "backend")
        asked = word = self.settings.backend
        if asked is not None and asked not in choices:
            if asked == _CPP and _CPP_SHORT in choices:
                word = _CPP_SHORT
            elif asked == self.release.defaults[self.name].backend:
                word = None
            else:
                expected = "one of " + ", ".join(sorted(choices))
                raise refusal(self.scenario, _BACKEND, asked, self.release, expected)
        option = self.release.options(self.name).get("backend")
        if option and option.deprecated and asked == self.release.defaults[self.name].backend:
            word = None
        return Argument("backend", word)

    @property
    def yaml_file(self) -> Argument:
        """The option that names the file; left out where none is needed."""
        name = f"./{llm_api_yaml.FILE}" if self.file else None
        return Argument("yaml_file", name, "engine.settings")

    def words(self, arguments: Iterable[Argument], program: str = "") -> tuple[str, ...]:
        """The words of `arguments`, of this program or of the one that it is a part of.

        Raises:
            InputError: the release has no option for one, or not this value of it.
        """
        return spelled(self.scenario, self.release, program or self.name, arguments)

    def extra_words(self, arguments: Iterable[Argument]) -> tuple[str, ...]:
        """The scenario's extra words for it, beside `arguments`.

        Raises:
            ExtraOptionRefused: an option that a field of the scenario, or perfgate, gives.
        """
        return extra_options.words(self.scenario, self.release, self.name, arguments)

    def command(self, argv: tuple[str, ...]) -> Command:
        """The call `argv`, with the environment and the file that belong to it."""
        return Command(
            argv,
            env=environment(self.scenario, self.settings, self.release),
            files={llm_api_yaml.FILE: llm_api_yaml.text(self.file)} if self.file else {},
            asked_by=asked_by(self.scenario),
        )


def environment(scenario: Scenario, settings: EngineSettings, release: Release) -> dict[str, str]:
    """Variables to add to those of the caller.

    Programmatic dependent launch is ``TRTLLM_ENABLE_PDL``: set by hand up to 1.1 (best-performance
    guide, "B200 min-latency"), on by default since 1.2 and switched off with 0.

    Raises:
        InputError: the release has no variable for a setting, or the scenario names it otherwise.
    """
    found = dict(release.environment)
    if settings.pdl is not None:
        field = "engine.settings.pdl"
        if release.pdl_variable is None:
            raise refusal(scenario, field, settings.pdl, release, "no pdl: no switch for it")
        value = "1" if settings.pdl else "0"
        said = scenario.environment.get(release.pdl_variable, value)
        if said != value:
            expected = f"what environment says: {release.pdl_variable} is {said} there"
            hint = "take one of the two out of the scenario"
            raise refusal(scenario, field, settings.pdl, release, expected, hint)
        found[release.pdl_variable] = value
    return {**found, **scenario.environment}


def only_pytorch(settings: EngineSettings, why: str) -> Iterator[Refused]:
    """Of programs that know no other backend: what else is asked for, refused with the reason."""
    if settings.backend not in (None, "pytorch"):
        yield Refused("engine.settings.backend", settings.backend, f"pytorch: {why}")


def pinned(scenario: Scenario, build: EngineBuild, program: str) -> EngineSettings:
    """See `settings.pinned`.

    Args:
        scenario: the scenario.
        build: the release under test.
        program: name of the program that is told, as in the release tables.
    """
    return served_settings.pinned(
        scenario,
        build,
        TABLES,
        lambda known: dict(_defaults(scenario, program, known)),
        ("moe_backend",),
    )


def _defaults(scenario: Scenario, program: str, known: Release) -> Iterator[tuple[str, Any]]:
    defaults, size = known.defaults.get(program), scenario.engine.settings.max_batch_size
    if defaults is None:
        return
    for name in ("backend", "overlap_scheduler", "chunked_context", "moe_backend"):
        yield name, getattr(defaults, name)
    if known.pdl_variable not in scenario.environment:
        yield "pdl", defaults.pdl
    # What `trtllm-bench` sets depends on the batch size; one that it chooses cannot be told.
    if defaults.cuda_graphs != "padded":
        yield "cuda_graphs", CudaGraphs(enabled=defaults.cuda_graphs == "on")
    elif size is not None:
        yield "cuda_graphs", CudaGraphs(padding=True, max_batch_size=size)
