"""Clients: programs that measure load. A `Client` puts it on a server and reports what it saw; an
`Offline` program has the engine inside itself, so that every measurement is a fresh start.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from perfgate.core.errors import InputError, MissingProgram
from perfgate.core.measurement import Measurement
from perfgate.core.programs.command import Command, Step
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.programs import Program, interpreter_of
from perfgate.core.registry import Registry
from perfgate.engines.base import Endpoint, EngineBuild
from perfgate.scenarios.scenario import LoadPoint, Scenario, Workload

_PACKAGE_WITHIN_S = 30.0
_VERSION_WITHIN_S = 120.0  # some import all that they have before they tell it


def with_asked(measured: Measurement, point: LoadPoint) -> Measurement:
    """The measurement, with what was asked for among its facts."""
    asked = {"requests_asked": point.requests, "concurrency": point.concurrency, "seed": point.seed}
    return Measurement(measured.metrics, {**measured.facts, **asked})


def unsupported(workload: Workload, problem: str, expected: str) -> InputError:
    """The error of prompts that a client does not make."""
    found = f"dataset {workload.dataset}, isl {workload.isl}, osl {workload.osl}"
    return InputError(problem, field="workload", found=found, expected=expected)


@dataclass(frozen=True)
class Target:
    """What a client or evaluator talks to.

    Attributes:
        endpoint: the server.
        tokenizer: folder of the served model's tokenizer, or its public name.
        locations: where programs are.
        client_version: release of the client that is told this; empty: not known.
        folder: for the results, and the one that the program runs in.
    """

    endpoint: Endpoint
    tokenizer: str
    locations: Locations = field(default_factory=Locations)
    client_version: str = ""
    folder: Path = Path()


class MeasuringProgram(ABC):
    """A client or an evaluator. Stateless.

    Attributes:
        of_engine: whether it comes with the engine, and so is where that is: in its container. Its
            version is that of the engine's build.
        require: of one that comes with the engine, makes sure that all that it needs is there; else
            raises MissingProgram. None: it needs nothing else.
    """

    name: str
    of_engine = False
    require: Callable[[Locations], None] | None = None

    @classmethod
    def scores(cls) -> Mapping[str, frozenset[str]]:
        """Of an evaluator: accuracy task → its scores, ``<metric>:<filter>``, where they are known
        before it is measured.
        """
        return {}


class Offline(MeasuringProgram):
    """One program that measures with the engine inside itself, with which it comes.

    Attributes:
        require_asked: adds to the measurement of a scenario's probe what was asked for; raises
            RunError where it was something else; None: `parse` knows by itself.
    """

    of_engine = True
    require_asked: Callable[[Measurement, Scenario, Any], Measurement] | None = None

    @abstractmethod
    def steps(
        self, scenario: Scenario, build: EngineBuild, what: Any, locations: Locations
    ) -> tuple[Step, ...]:
        """The calls that measure `what`; the last one measures, those before prepare.

        All run in one folder, where the last leaves its results. An evaluator is given accuracy
        tasks alone, a client whatever names it.

        Raises:
            InputError: this build cannot do it, or a dataset is missing or not what is asked.
        """

    @abstractmethod
    def parse(self, what: Any, folder: Path) -> Measurement:
        """Read what the calls of `steps` left in `folder`: files, and the logs ``benchmark.out``.

        Raises:
            RunError: the results are missing, cut, not finite, or not what was asked.
        """


def program_version(program: Program, locations: Locations) -> str:
    """The last word that a program prints for ``--version``.

    Raises:
        MissingProgram: it is not installed, fails or prints nothing.
    """
    answer = locations.ask((*locations.find(program), "--version"), _VERSION_WITHIN_S)
    words = answer.stdout.split()
    if not answer.is_good or not words:
        why = "it printed nothing" if answer.is_good else answer.trouble
        instead = f"or name a complete installation in {program.variable}"
        raise _no_version(program, program.executable, why, instead)
    return words[-1]


def package_version(program: Program, package: str, locations: Locations) -> str:
    """The version of a package in the interpreter that runs a program; it is not imported.

    Args:
        program: a module or a script in Python.
        package: its package, as it was installed.
        locations: where the program is.

    Raises:
        MissingProgram: no interpreter can be told, or it has no such package.
        InputError: the environment variable that names the program is wrong.
    """
    words = locations.find(program)
    beside = Path(words[0]).with_name("python")  # of a wrapper in the folder of an environment
    interpreter = interpreter_of(words[0]) or (str(beside) if beside.is_file() else None)
    why = f"{words[0]} is neither a Python nor a script of one"
    if interpreter is not None:
        code = f"import importlib.metadata as m; print(m.version({package!r}))"
        answer = locations.ask((interpreter, "-c", code), _PACKAGE_WITHIN_S)
        said = answer.stdout.split()
        if answer.is_good and said:
            return said[-1]
        why = f"{interpreter} has no package {package}"
    following = " ".join(program.arguments) or f"the path of {program.executable}"
    instead = f"set {program.variable} to the Python that has it, followed by {following}"
    raise _no_version(program, program.name, why, instead)


def _no_version(program: Program, name: str, why: str, instead: str) -> MissingProgram:
    hint = f"it comes with {program.provided_by}; {instead}"
    return MissingProgram(f"{name} does not report its version: {why}", hint=hint)


def same_release(one: str, other: str) -> bool:
    """Whether two versions name one release; what follows a ``+`` names a build of it."""
    try:
        return Version(Version(one).public) == Version(Version(other).public)
    except InvalidVersion:
        return one == other


class Client(MeasuringProgram):
    """One load client.

    Attributes:
        source: name of the engine whose package it is in, though it measures any; empty: none's.
    """

    source = ""

    @abstractmethod
    def version(self, locations: Locations) -> str:
        """The installed program's own version.

        Raises:
            MissingProgram: the program is not installed.
        """

    @abstractmethod
    def command(self, target: Target, workload: Workload, point: LoadPoint) -> Command:
        """The command that measures one sweep point and leaves its results in `target.folder`."""

    @abstractmethod
    def parse(self, workload: Workload, point: LoadPoint, folder: Path) -> Measurement:
        """Read what the finished program left in `folder`.

        Raises:
            RunError: the results are missing, cut, not finite, or not what was asked: failed
                requests, fewer requests than asked, other lengths than asked.
        """


client: Registry[Client | Offline] = Registry("client", "perfgate.clients")
