"""Started build: what one fresh start of a campaign is of, and what its records say of that: also
how that build can be started again. No secret gets in: a word that holds one is masked, and such a
build is then started by nobody.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perfgate.campaign.builds.other_build import OtherBuild
from perfgate.campaign.injection import Injection, inject
from perfgate.campaign.schedule import StartRole
from perfgate.campaign.session import Session
from perfgate.core.errors import InputError, MissingProgram
from perfgate.core.locations import Installation, Locations
from perfgate.core.measurement import Json, Measurement
from perfgate.core.plain import to_plain
from perfgate.core.programs import Program
from perfgate.core.redaction import mask_arguments
from perfgate.engines.build_source import BuildSource, without_tag
from perfgate.judging.assembly.judgement import measures_itself
from perfgate.plan.toolchain import Toolchain
from perfgate.runs.record import MeasurementRecord
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import Scenario


@dataclass(frozen=True)
class StartedBuild:
    """A build of a scenario, as it is started.

    Attributes:
        role: which build it is.
        scenario: the scenario, injections included.
        tools: the programs.
        session: the session, with the launcher that starts this build.
        injections: settings changed in it on purpose.
    """

    role: StartRole
    scenario: Scenario
    tools: Toolchain
    session: Session
    injections: tuple[Injection, ...] = ()

    def record(
        self,
        probe: Probe,
        fingerprint: Mapping[str, str],
        measured: Measurement,
        *,
        started: str,
        seconds: float,
        synthetic: bool,
        **start: Any,
    ) -> MeasurementRecord:
        """The record of a measurement of this build.

        Args:
            probe: what was measured.
            fingerprint: the facts that a baseline's must equal.
            measured: the measurement, with what the launcher says of the image.
            started: when it began, ISO 8601.
            seconds: how long it took, its share of the start included.
            synthetic: whether mock programs played the engine's.
            start: number, folder and lease of the start, as the record's fields.
        """
        source = source_of(self.tools, measured.facts, self.injections, synthetic=synthetic)
        return MeasurementRecord(
            scenario=self.scenario.id,
            hardware=self.scenario.hardware.label,
            probe=probe.label,
            machine_bound=measures_itself(probe),
            role=self.role,
            engine=self.tools.build,
            fingerprint=dict(fingerprint),
            injected=tuple(str(one) for one in self.injections),
            source=to_plain(source),
            synthetic=synthetic,
            started=started,
            seconds=seconds,
            metrics=measured.metrics,
            facts=measured.facts,
            answers=measured.answers,
            disturbed=measured.disturbed,
            **start,
        )


def started_build(
    role: StartRole, tools: Toolchain, session: Session, other: OtherBuild | None = None
) -> StartedBuild:
    """The build that a start of a role is of.

    Args:
        role: of the start.
        tools: the scenario's programs, with the build under test.
        session: the campaign's.
        other: the build of a control.
    """
    scenario = tools.scenario
    if other is not None:
        return StartedBuild(
            role,
            inject(scenario, other.injections),
            other.tools,
            replace(session, launcher=other.launcher),
            other.injections,
        )
    injections = session.injections if role in ("new", "claim") else ()
    return StartedBuild(role, inject(scenario, injections), tools, session, injections)


_IMAGE_FACTS = ("docker", "slurm")  # where a placement tells of the image that it started


def source_of(
    tools: Toolchain,
    facts: Mapping[str, Json],
    injections: Sequence[Injection] = (),
    *,
    synthetic: bool = False,
) -> BuildSource | None:
    """How the build of a measurement was started; None: nothing tells.

    Args:
        tools: the programs that it was measured with.
        facts: those of the measurement, with what the launcher says of the image.
        injections: settings changed in it on purpose.
        synthetic: whether stand-ins played the programs, which are gone after the run.
    """
    if synthetic:
        return None
    image = _image(facts)
    prefix, programs = _programs(tools.engine.programs, tools.locations)
    settings = tuple(str(one) for one in injections)
    found = BuildSource(
        **image,
        prefix=prefix,
        programs={name: shlex.join(mask_arguments(words)) for name, words in programs.items()},
        settings=settings,
    )
    return found if found.names_programs else None


def _image(facts: Mapping[str, Json]) -> dict[str, str]:
    told: dict[str, Any] = {}
    for name in _IMAGE_FACTS:
        of_launcher = facts.get(name)
        if isinstance(of_launcher, dict) and of_launcher.get("image"):
            told = of_launcher
    if not told:
        return {}
    (image,) = mask_arguments([str(told["image"])])
    digests = [str(one) for one in told.get("digests") or []]
    own = [one for one in digests if one.partition("@")[0] == without_tag(image)]
    digest = (own or digests or [""])[0]
    if not own and digest:  # the same content, known under another registry's name
        image = digest.partition("@")[0]
    return {
        "image": image,
        "digest": digest.partition("@")[2],
        "image_id": str(told.get("id") or ""),
    }


def _programs(
    programs: Sequence[Program], locations: Locations
) -> tuple[str, dict[str, tuple[str, ...]]]:
    """The prefix that most programs lie in, and the calls of those that it does not tell."""
    is_inside = locations.inside is not None
    calls: dict[str, tuple[Program, tuple[str, ...]]] = {}
    for program in programs:
        try:
            calls[program.variable] = (program, locations.find(program))
        except (MissingProgram, InputError):
            continue  # the scenario does not need it, or would have failed
    if is_inside:
        prefix = locations.build.prefix if locations.build is not None else ""
    else:
        prefix = next(filter(None, (_prefix(*call) for call in calls.values())), "")
    plain = Installation(prefix)
    named = {
        name: words
        for name, (program, words) in calls.items()
        if _without_help(program, plain, is_inside=is_inside) != words
    }
    return prefix, named


def _prefix(program: Program, words: tuple[str, ...]) -> str:
    """The folder whose ``bin/`` has a program under its own name; empty: it is called otherwise."""
    path = Path(words[0])
    is_plain = path.name == program.executable and path.parent.name == "bin"
    return str(path.parent.parent) if is_plain and words[1:] == program.arguments else ""


def _without_help(
    program: Program, plain: Installation, *, is_inside: bool
) -> tuple[str, ...] | None:
    """How the prefix alone would have the program called; None: it would not be found."""
    try:
        return plain.inside(program) if is_inside else plain.find(program)
    except (MissingProgram, InputError):
        return None
