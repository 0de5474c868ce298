"""Toolchain: the programs that one scenario needs, found and asked for their versions once."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from perfgate.clients.base import Client, Offline, client
from perfgate.core.errors import InputError, MissingProgram
from perfgate.core.measurement import Json
from perfgate.core.programs.locations import Locations
from perfgate.engines.base import Engine, EngineBuild, engine
from perfgate.evaluators.base import Evaluator, evaluator
from perfgate.scenarios.probe import Probe, all_probes
from perfgate.scenarios.rules.extra_options import describe_extra_options
from perfgate.scenarios.rules.vocabulary import Vocabulary
from perfgate.scenarios.scenario import SERVED_SMOKE, AccuracyTask, LoadPoint, Scenario


@dataclass(frozen=True)
class BuildOverride:
    """What a person says of the engine's build; None: ask the program.

    Attributes:
        version: release that options are rendered for; ``ENGINE=RELEASE`` of one engine.
        commit: commit that names the baseline; likewise.
    """

    version: str | None = None
    commit: str | None = None

    def of(self, name: str) -> "BuildOverride":
        """What is said of one engine, by its name; see `option_for`."""
        return BuildOverride(option_for(name, self.version), option_for(name, self.commit))


@dataclass(frozen=True)
class Toolchain:
    """Engine, clients and evaluators of one scenario.

    Attributes:
        scenario: the scenario.
        engine: the engine under test.
        clients: name → what measures load or asks the first question.
        evaluators: name → what measures accuracy.
        locations: where things are.
        override: what a person says of the build.
    """

    scenario: Scenario
    engine: Engine
    clients: Mapping[str, Client | Offline] = field(default_factory=dict)
    evaluators: Mapping[str, Evaluator | Offline] = field(default_factory=dict)
    locations: Locations = field(default_factory=Locations)
    override: BuildOverride = field(default_factory=BuildOverride)

    @cached_property
    def build(self) -> EngineBuild:
        """The engine build under test: as the person says, else as the program does."""
        said = self.override
        if said.version is not None:
            return EngineBuild(self.engine.name, said.version, said.commit or said.version)
        found = self.engine.build(self.locations)
        return EngineBuild(found.name, found.version, said.commit or found.commit)

    @cached_property
    def model_facts(self) -> Mapping[str, Json]:
        """What identifies the model's weights."""
        return self.engine.model_facts(self.scenario, self.locations)

    @cached_property
    def versions(self) -> Mapping[str, str]:
        """Program name → version, of clients and of the evaluators that are here."""
        clients = {one.name: self.version_of(one) for one in self.clients.values()}
        return clients | self._evaluator_versions[0]

    def version_of(self, program: Client | Evaluator | Offline) -> str:
        """The program's own version, or the build's where it comes with the engine.

        Raises:
            MissingProgram: it is not installed, or not all that it needs.
        """
        if not program.of_engine and not isinstance(program, Offline):
            return program.version(self.locations)
        version = self.build.version
        if program.require is not None:
            program.require(self.locations)
        return version

    @property
    def missing_evaluators(self) -> Mapping[str, MissingProgram | InputError]:
        """Evaluator → why it cannot be called. Only its accuracy tests need it."""
        return self._evaluator_versions[1]

    @cached_property
    def _evaluator_versions(self) -> tuple[dict[str, str], dict[str, MissingProgram | InputError]]:
        versions: dict[str, str] = {}
        missing: dict[str, MissingProgram | InputError] = {}
        for name, program in self.evaluators.items():
            try:
                versions[program.name] = self.version_of(program)
            except (MissingProgram, InputError) as error:
                missing[name] = error
        return versions, missing

    def missing_for(self, probe: Probe) -> MissingProgram | InputError | None:
        """Why the probe cannot be measured, though others of its scenario can; None: it can."""
        task = probe.what
        return (
            self.missing_evaluators.get(task.evaluator) if isinstance(task, AccuracyTask) else None
        )

    def measurable(self) -> Scenario:
        """The scenario without the accuracy tasks whose evaluator is missing."""
        missing = self.missing_evaluators
        kept = tuple(task for task in self.scenario.accuracy if task.evaluator not in missing)
        return replace(self.scenario, accuracy=kept) if missing else self.scenario

    def program_of(self, probe: Probe) -> Client | Evaluator | Offline | None:
        """What measures the probe; None: perfgate itself asks the server."""
        if isinstance(probe.what, AccuracyTask):
            return self.evaluators[probe.what.evaluator]
        if isinstance(probe.what, LoadPoint):
            load = probe.scenario.workload
            return self.clients[load.client] if load else None
        return self.clients.get(probe.what.client)

    def named_program(self, probe: Probe) -> str:
        """What measures the probe, with its release: that of the engine where it comes with it."""
        program = self.program_of(probe)
        name = program.name if program else ""
        return f"{name} {self.versions.get(name, '')}".strip()

    def is_offline(self, probe: Probe) -> bool:
        """Whether the probe's program has the engine inside itself."""
        return isinstance(self.program_of(probe), Offline)

    def require(self) -> None:
        """Make sure that everything is here and can honour the scenario, before any work.

        A missing evaluator is no fault of the scenario's other tests: see `missing_for`.

        Raises:
            InputError: the engine cannot honour a setting, or an input file is unusable.
            MissingProgram: the engine or a client is not installed.
        """
        self.engine.check(self.scenario, self.build)
        _ = (self.versions, self.model_facts)

    def fingerprint(self, probe: Probe, machine: Mapping[str, str]) -> dict[str, str]:
        """The facts that must be equal for this probe's measurements to be compared.

        Speed depends on the machine, accuracy on the weights; both on what is asked and by whom.

        Args:
            probe: what is measured.
            machine: the facts of the machine that speed depends on.
        """
        common = {"content": probe.content_hash(), "model": str(self.model_facts["sha256"])[:16]}
        if extra := describe_extra_options(self.scenario.engine):  # for people; in the hash, too
            common["extra_options"] = extra
        program = self.program_of(probe)
        name = program.name if program else ""
        # A program that comes with the engine has the engine's version: the thing under test. Any
        # other is pinned, and stays told where the two happen to be equal: an engine that moves on
        # without its client would else look like another client.
        of_engine = program is not None and program.of_engine
        told = name if of_engine else f"{name} {self.versions.get(name, '')}"
        if isinstance(probe.what, AccuracyTask):
            return {**common, "evaluator": told}
        return {**common, "client": told, **machine}


def option_for(name: str, text: str | None, *, alone: bool = False) -> str | None:
    """What ``--engine-version`` or ``--engine-commit`` say of one engine; None: nothing.

    Args:
        name: of the engine.
        text: as a person gives it, ``[ENGINE=]VALUE``.
        alone: whether no other engine can be meant.
    """
    if text is None:
        return None
    before, named, value = text.partition("=")
    if named:
        return value if before == name else None
    return None if engine[name].is_named and not alone else text


def uncovered(scenarios: Iterable[Scenario], version: str | None) -> tuple[str, ...]:
    """What is not known of the release, for each engine of the scenarios; empty: all is known.

    Args:
        scenarios: what is to be measured or rendered.
        version: as ``--engine-version`` says it; None: the programs are asked.

    Raises:
        InputError: it is no release of one of the engines, or of none that is measured.
    """
    if version is None:
        return ()
    names = sorted({scenario.engine.name for scenario in scenarios})
    meant = {name: said for name in names if (said := option_for(name, version))}
    if names and not meant:
        raise InputError(
            "this release is of no engine that is measured",
            field="engine version",
            found=version,
            expected=" or ".join(f"{name}=RELEASE" for name in names),
            hint="a bare release is TensorRT-LLM's",
        )
    return tuple(told for name, said in meant.items() if (told := engine[name]().uncovered(said)))


def toolchain_for(
    scenario: Scenario,
    locations: Locations | None = None,
    override: BuildOverride | None = None,
) -> Toolchain:
    """The tools that a scenario names.

    Raises:
        InputError: a name that no engine, client or evaluator has.
    """
    clients = set()
    if scenario.workload is not None:
        clients.add(scenario.workload.client)
    if scenario.smoke is not None and scenario.smoke.client != SERVED_SMOKE:
        clients.add(scenario.smoke.client)
    return Toolchain(
        scenario,
        engine[scenario.engine.name](),
        {name: client[name]() for name in sorted(clients)},
        {name: evaluator[name]() for name in sorted({t.evaluator for t in scenario.accuracy})},
        Locations.of_environment() if locations is None else locations,
        override or BuildOverride(),
    )


def needs_server(scenario: Scenario) -> bool:
    """Whether anything of the scenario is measured on a running server."""
    tools = toolchain_for(scenario, Locations(on_paper=True))
    return not all(tools.is_offline(probe) for probe in all_probes(scenario))


def registered() -> Vocabulary:
    """The engines, clients and evaluators that scenarios may name at this moment.

    One of a person's own counts once its module was imported.
    """
    return Vocabulary(
        {name: cls.words() for name, cls in engine.items()},
        tuple(client),
        (SERVED_SMOKE, *(name for name, cls in client.items() if issubclass(cls, Offline))),
        {name: cls.scores() for name, cls in evaluator.items()},
        {name: cls.refused_extras for name, cls in engine.items()},
        tuple(rule for cls in engine.values() for rule in cls.rules),
    )
