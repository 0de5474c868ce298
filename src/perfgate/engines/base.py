"""Engine: what perfgate must know of a program under test to serve a model with it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from perfgate.core.errors import PerfgateError
from perfgate.core.measurement import Json
from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.programs import Program
from perfgate.core.registry import Registry
from perfgate.engines import weights
from perfgate.engines.effective_settings import EffectiveSettings
from perfgate.engines.refusal import ExtraOptionRefused
from perfgate.engines.release_tables import ReleaseTables
from perfgate.scenarios.rules.scenario_rules import Rule
from perfgate.scenarios.scenario import Scenario
from perfgate.scenarios.yaml_document import Problem


@dataclass(frozen=True)
class EngineBuild:
    """The engine's identity: version as the program tells it, and commit.

    `commit` names the baseline file; an engine that tells no commit uses its version.
    """

    name: str
    version: str
    commit: str


@dataclass(frozen=True)
class Endpoint:
    """Where a server listens and what its model is called there."""

    host: str
    port: int
    model: str

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host  # of IPv6
        return f"http://{host}:{self.port}"


# Where a call is rendered on only to see whether a release takes it.
ON_PAPER = Locations(on_paper=True)
NOWHERE = Endpoint("localhost", 8000, "model")


@dataclass(frozen=True)
class ReleaseImage:
    """The container images of an engine's releases.

    Attributes:
        name: without a tag.
        tag: of one release, with ``{version}`` in it.
        entry_point: the program that a command line is given to where none is named; empty: a
            script that sets up the image, and runs what it is given.
    """

    name: str
    tag: str = "{version}"
    entry_point: str = ""

    def of(self, version: str) -> str:
        """The image of one release."""
        return f"{self.name}:{self.tag.format(version=version)}"


class OptionsAnswer(NamedTuple):
    """What an installed build says of commands that it takes.

    Attributes:
        unasked: what could not be asked, and why.
        moved_defaults: its defaults that the scenarios' documents state otherwise; each names the
            setting, both defaults and the document.
        marked: what they give and the build marks as deprecated or as a prototype.
    """

    unasked: tuple[str, ...] = ()
    moved_defaults: tuple[str, ...] = ()
    marked: tuple[str, ...] = ()


class Engine(ABC):
    """One engine. Stateless: every method takes what it needs.

    Attributes:
        interpreter: the Python that its ranks run in; None: it has no ranks.
        programs: all of its programs, the one that tells its build first.
        distribution: name of its Python package, which perfgate never shares an environment with;
            empty: it is of no harm there.
        tables: of its releases; None: its options never move.
        rules: of its documents, asked of every scenario that is read: each says which it is about.
        image: its release containers; None: it has none.
        is_rehearsed: whether it has mock programs (`perfgate.rehearsal`).
        is_named: a release or commit that a person gives counts for it only with its name before,
            ``vllm=0.11.0``; a bare one is of TensorRT-LLM, or of an engine of a person's own.
        health_within_s: how long its health endpoint may take to answer, in seconds.
        settings_paths: paths of its HTTP server that may tell its resolved settings, as a JSON
            object; the first that does counts.
        settings_words: words of the log lines that tell them, in lower case.
        quantized_by_file: see `weights.model_facts`.
        verify: asks the installed build whether it takes all that the commands give it, before
            anything is started on a GPU; raises InputError (an option, choice or key that it lacks)
            and RunError (the container that it is in cannot be had); None: its options never move.
        effective_settings: what the running server's own answers say that it runs with, or that
            they say nothing. It is given what was asked; what the server answered under the first
            of `settings_paths` that tells something, and under ``path`` which one that was, or
            facts of its own benchmark's report (empty: it answered nothing); and its log lines with
            one of `settings_words`, in order. None: it says nothing.
        kept_tokenizer: makes the model's tokenizer once, in the cache's folder that it is given,
            and tells its folder; None: the model has it inside.
    """

    name: str
    programs: ClassVar[tuple[Program, ...]] = ()
    interpreter: ClassVar[Program | None] = None
    distribution: ClassVar[str] = ""
    tables: ClassVar[ReleaseTables[Any] | None] = None
    rules: ClassVar[tuple[Rule, ...]] = ()
    image: ClassVar[ReleaseImage | None] = None
    is_rehearsed: ClassVar[bool] = False
    is_named: ClassVar[bool] = False
    health_path = "/health"
    models_path = "/v1/models"
    health_within_s: ClassVar[float] = 5.0
    settings_paths: ClassVar[tuple[str, ...]] = ()
    settings_words: ClassVar[tuple[str, ...]] = ()
    quantized_by_file: ClassVar[bool] = False
    verify: Callable[[EngineBuild, Sequence[Command], Locations], OptionsAnswer] | None = None
    effective_settings: (
        Callable[[Scenario, Mapping[str, Json], Iterable[str]], EffectiveSettings | None] | None
    ) = None
    kept_tokenizer: Callable[[Scenario, Path, Locations], str] | None = None

    @classmethod
    def words(cls) -> Mapping[str, frozenset[str]]:
        """Settings whose value is one of a few words → all that any release takes.

        What a single release takes is for `check` to say.
        """
        return {}

    @abstractmethod
    def check(self, scenario: Scenario, build: EngineBuild) -> None:
        """Refuse what this build of the engine cannot honour.

        Raises:
            InputError: a setting that would be ignored silently, or that this release lacks.
        """

    @classmethod
    def refused_extras(cls, scenario: Scenario) -> Iterator[Problem]:
        """Which of the scenario's extra options the engine is not given, told where it is read.

        Without tables it is given none. With them its check says, at the document's release, else
        the newest; what else is wrong there is told when the scenario is measured.

        Args:
            scenario: any scenario of this engine.
        """
        own = scenario.engine
        fields = {"extra_yaml": own.extra_yaml, "extra_args": own.extra_args}
        given = {field: value for field, value in fields.items() if value is not None}
        if cls.tables is None:
            for field, value in given.items():
                problem = f"{cls.name} takes no options beyond its settings"
                yield Problem(("engine", field), problem, ", ".join(value), "not to be set")
        elif given:
            version = scenario.source.engine_version or cls.tables.all()[-1].since
            try:
                cls().check(scenario, EngineBuild(cls.name, version, version))
            except ExtraOptionRefused as error:
                yield error.at
            except PerfgateError:
                return

    @abstractmethod
    def build(self, locations: Locations) -> EngineBuild:
        """Ask the installed program what it is.

        Args:
            locations: where the program is.

        Raises:
            MissingProgram: the program is not installed.
            RunError: the container that it is in cannot be had.
        """

    def uncovered(self, version: str) -> str | None:
        """What is not known of a release, and what is done instead; None: all is known.

        Args:
            version: as a person gives it, or the program tells it.

        Raises:
            InputError: it is no release of the engine, or none that commands can be made for.
        """
        return None if self.tables is None else self.tables.uncovered(version)

    def known_limitations(self, _scenario: Scenario, _build: EngineBuild) -> tuple[str, ...]:
        """What this build is known not to put in force, or to bound, told before any start.

        What the scenario says to be inert is left out.
        """
        return ()

    def served_model(self, scenario: Scenario, locations: Locations) -> str:
        """The model's name as `/v1/models` will show it; here: the public one."""
        return weights.reference(scenario, locations).name

    @abstractmethod
    def serve(
        self, scenario: Scenario, build: EngineBuild, endpoint: Endpoint, locations: Locations
    ) -> Command:
        """The command that serves the scenario's model on `endpoint`."""

    def tokenizer(self, scenario: Scenario, cache: Path, locations: Locations) -> str:
        """A folder with the model's tokenizer (made once under `cache` if need be), or its name.

        A checkpoint, or a model of the hub, has it inside.
        """
        if self.kept_tokenizer is not None:
            return self.kept_tokenizer(scenario, cache, locations)
        return weights.reference(scenario, locations).where

    def model_facts(self, scenario: Scenario, locations: Locations) -> Mapping[str, Json]:
        """What identifies the model's weights; ``sha256`` is always among it.

        Here: those of a checkpoint, as it was published.

        Raises:
            InputError: the model's folder is not as the scenario says.
        """
        return weights.model_facts(scenario, locations, quantized_by_file=self.quantized_by_file)


engine: Registry[Engine] = Registry("engine", "perfgate.engines")
