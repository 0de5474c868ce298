"""Playbook: what a mock program knows of the session and of the scenario that it was started for.

Written by `setup` as ``playbook.json``; read here from the environment that the session sets.
"""

import os
import re
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn

from msgspec import Struct, field, json

from perfgate.rehearsal.faults import FAULTS, Address, Fault, Place
from perfgate.rehearsal.synthetic_metrics import (
    Guess,
    Load,
    dice,
    performance,
    right_answers,
    scaled,
)

SCENARIO = "PERFGATE_SCENARIO"
PROBE = "PERFGATE_PROBE"
START = "PERFGATE_START"
ROLE = "PERFGATE_ROLE"
SYNTHETIC = "perfgate_synthetic"  # field of every JSON report that a mock program writes
REHEARSAL_VARIABLE = "PERFGATE_REHEARSAL"  # names the file that mock programs read

_MAIN = "tensorrt-llm"
_COMMON_SCORE = 0.9  # where no score is documented


class ScenarioPart(Struct, frozen=True):
    """What the mock programs know of one scenario.

    Attributes:
        engine_version: release that its document speaks of.
        engine: name of the engine under test.
        client_version: release of the load client that its document speaks of; empty: of none.
        gpu: name of the GPUs.
        gpus: how many in all.
        isl: mean input tokens of a request.
        osl: mean output tokens.
        guess: what to make up where nothing is documented.
        documented: label of a sweep point, or task → documented values by canonical name.
        questions: task → how many questions it has.
        common_score: score where none is documented.
        replies: prompt of the first answer → what its document says is answered.
    """

    engine_version: str
    engine: str = "tensorrt-llm"
    client_version: str = ""
    gpu: str = "B200"
    gpus: int = 8
    isl: float = 1024.0
    osl: float = 1024.0
    guess: Guess = field(default_factory=lambda: Guess(100.0, 320.0))
    documented: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    questions: Mapping[str, int] = field(default_factory=dict)
    common_score: float = _COMMON_SCORE
    replies: Mapping[str, str] = field(default_factory=dict)


class PlaybookFile(Struct, frozen=True):
    """What ``playbook.json`` says.

    Attributes:
        fault: what is to go wrong; None: nothing.
        seed: of all made-up numbers.
        releases: engine → release, oldest first → program → name of its recorded page.
        scenarios: by id.
    """

    fault: Fault | None
    seed: int
    releases: Mapping[str, Mapping[str, Mapping[str, str]]]
    scenarios: Mapping[str, ScenarioPart]
    schema_version: Literal[5] = 5
    perfgate_synthetic: bool = True


@dataclass(frozen=True)
class Playbook:
    """What holds in the whole session, and for one program in it.

    Attributes:
        folder: where playbook.json is.
        engine: whose program this is.
        version: release that this program imitates.
        releases: releases that it may be asked for while nobody says for which scenario, oldest
            first; else only that one. Of each: program → name of its recorded page.
        engines: of which programs are played.
        fault: what is to go wrong with this start; None: nothing.
        seed: of all made-up numbers.
        scenario: id; empty when nobody said.
        scenario_part: what is known of that scenario.
        probe: label of the probe; empty when it serves all of them.
        start: number of the fresh start.
    """

    folder: Path
    engine: str
    version: str
    releases: Mapping[str, Mapping[str, str]]
    engines: tuple[str, ...]
    fault: Fault | None
    seed: int
    scenario: str
    scenario_part: ScenarioPart
    probe: str
    start: int

    @property
    def numbers(self) -> tuple[int, ...]:
        """Major, minor and patch number of the release."""
        return release_numbers(self.version)

    def fault_at(self, place: Place) -> str | None:
        """Name of the fault that hits a program of this place; None: it goes well."""
        return self.fault.name if self.fault and self.fault.kind.place == place else None

    def inject_engine_fault(self, server: Address | None = None) -> None:
        """End the program that holds the engine, if that is the fault; else nothing happens.

        Args:
            server: where it listens; None: the program is no server, and meets with
                `request_too_long` here too.
        """
        name = self.fault_at("engine") or (None if server else self.fault_at("answers"))
        if name is None or name.startswith("cli_drift"):  # options see to that
            return
        sys.stdout.flush()
        if name == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        written = FAULTS[name].written(self.engine, self.numbers, server)
        print(written, end="", file=sys.stderr, flush=True)
        raise SystemExit(1)

    def inject_client_fault(self) -> str | None:
        """Name of the fault that hits the measuring program; never returns when it is to hang."""
        name = self.fault_at("client")
        sys.stdout.flush()
        while name == "hang":
            time.sleep(3600)
        return name

    def completed(self, asked: int) -> int:
        """How many of the requests asked are completed: with fault ``partial`` not all."""
        return asked - max(1, asked // 20) if self.fault_at("client") == "partial" else asked

    def halved(self, content: str) -> str:
        """What a program writes; with fault ``truncated`` only its first half."""
        return content[: len(content) // 2] if self.fault_at("client") == "truncated" else content

    def reply(self, prompt: str, otherwise: str) -> str:
        """What is answered to the prompt of a first answer: the document's text, where it has one.

        Args:
            prompt: what is asked.
            otherwise: what is said to any other.
        """
        if name := self.fault_at("text"):
            return FAULTS[name].says
        replies = self.scenario_part.replies
        return f" {replies[prompt]}" if prompt in replies else otherwise

    def performance(self, label: str, load: Load) -> dict[str, float]:
        """Values of all performance metrics of sweep point `label`, for what is really done."""
        documented = self.scenario_part.documented.get(label, {})
        chance = dice(self.seed, self.scenario, label, self.start)
        loss = self._lost("%")
        values = performance(documented, load, self.scenario_part.guess, chance, loss)
        if self.fault_at("client") == "zero_metrics":
            return dict.fromkeys(values, 0.0)
        return scaled(values, lambda name: self._factor(label, name))

    def answers(self, task: str, name: str, questions: int) -> list[bool]:
        """Which questions of `task` are answered right by the measure of accuracy called `name`.

        A question is as hard for all scenarios, measures and fresh starts; a few answers turn by
        chance.
        """
        part = self.scenario_part
        score = part.documented.get(task, {}).get(name, part.common_score)
        scaled = score * self._factor(task, name)
        if not scaled:
            return [False] * questions
        lower = min(1.0, max(0.0, scaled - self._lost("pp")))
        stable = dice(self.seed, task)
        chance = dice(self.seed, self.scenario, task, self.start)
        return right_answers(lower, questions, stable, chance)

    def _factor(self, label: str, metric: str) -> float:
        return self.fault.factor(self.scenario, label, metric) if self.fault else 1.0

    def _lost(self, unit: str) -> float:
        return (self.fault.value or 0.0) if self.fault and self.fault.kind.unit == unit else 0.0


def here(engine: str | None = None, *, as_client: bool = False) -> Playbook:
    """The playbook that the environment names; ends the program where it names none.

    Args:
        engine: whose program asks; None: that of the scenario.
        as_client: whether it loads a server, of this engine or another.
    """
    place = os.environ.get(REHEARSAL_VARIABLE)
    if not place:
        end("this is a mock of perfgate's rehearsal; it is started by `pytest --rehearse` alone")
    path = Path(place)
    file = json.decode(path.read_bytes(), type=PlaybookFile)
    scenario = os.environ.get(SCENARIO, "")
    known = file.scenarios.get(scenario)
    if engine is None:
        engine = _MAIN if known is None else known.engine
        engine = engine if engine in file.releases else next(iter(file.releases), _MAIN)
    releases = file.releases.get(engine, {})
    asked = ""
    if known is not None:
        is_client = as_client or known.engine != engine
        asked = known.client_version if is_client else known.engine_version
    # While nobody says for which scenario, it may be any of them.
    versions = (asked,) if asked in releases else tuple(releases)
    if not versions:
        end(f"{path} has no scenario of {engine}")
    is_control = os.environ.get(ROLE, "").endswith("_control")
    return Playbook(
        folder=path.parent,
        engine=engine,
        version=versions[-1],
        releases={version: releases[version] for version in versions},
        engines=tuple(file.releases),
        fault=file.fault.of_control if file.fault and is_control else file.fault,
        seed=file.seed,
        scenario=scenario,
        scenario_part=known or ScenarioPart(versions[-1]),
        probe=os.environ.get(PROBE, ""),
        start=int(os.environ.get(START) or 1),
    )


def release_numbers(version: str) -> tuple[int, ...]:
    """The first three numbers of a release, e.g. (1, 2, 0) of ``1.2.0rc3``, (2, 0, 0) of ``2``."""
    found = re.match(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?", version)
    if found is None:
        raise ValueError(f"no release: {version!r}")
    return tuple(int(number or 0) for number in found.groups())


def say(message: str) -> None:
    """Tell on standard error what the real program does not."""
    print(f"perfgate rehearsal: {message}", file=sys.stderr, flush=True)


def announce(program: str) -> None:
    """Say on standard error that this is a mock program."""
    say(f"a mock program plays {program}; all numbers are synthetic")


def banner(version: str) -> None:
    """What every program prints that imports tensorrt_llm."""
    print(f"[TensorRT-LLM] TensorRT-LLM version: {version}", flush=True)


def crash(message: str) -> NoReturn:
    """End as Python does after an exception that nobody handles."""
    print(f"Traceback (most recent call last):\n{message}", file=sys.stderr)
    raise SystemExit(1)


def end(message: str, status: int = 2) -> NoReturn:
    """Say why on standard error, and end."""
    say(message)
    raise SystemExit(status)
