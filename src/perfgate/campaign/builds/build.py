"""Build: a build of a scenario's engine as this session starts it, and how it is started again.

Another build has programs, image or settings of its own; scenario, clients, evaluators, machine and
leases are the session's. Nothing global is changed for it, so that one start never sees the other's
build. No secret gets into what is recorded of a build: a word that holds one is masked, and such a
build is then started by nobody.
"""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from perfgate.baselines.baseline import BuildSource, without_tag
from perfgate.campaign.builds.words import Injection, inject, parse_injection
from perfgate.campaign.session import Session
from perfgate.core.errors import InputError, MissingProgram, PerfgateError, RunError
from perfgate.core.measurement import Json, Measurement
from perfgate.core.programs.locations import Installation, Locations
from perfgate.core.programs.programs import Program
from perfgate.core.redaction import MASK, mask_arguments
from perfgate.engines.base import Engine, EngineBuild, OptionsAnswer, engine
from perfgate.judging.assembly.judge_input import Outcome
from perfgate.judging.assembly.measured import image_facts, measured_build
from perfgate.launchers.base import Launcher
from perfgate.plan.calls import options_answer
from perfgate.plan.toolchain import BuildOverride, Toolchain
from perfgate.scenarios.scenario import Scenario


@dataclass(frozen=True)
class Build:
    """A build that this session can start.

    Attributes:
        scenario: the scenario as it is started, injections included.
        tools: the scenario's programs with this build.
        launcher: what starts it: the session's, with this build's image where it has one.
        injections: settings changed in it on purpose.
        source: how a person or a record names it; an empty one is the build under test.
        note: what a person should know of it, in one sentence; empty: nothing.
    """

    scenario: Scenario
    tools: Toolchain
    launcher: Launcher
    injections: tuple[Injection, ...] = ()
    source: BuildSource = field(default_factory=BuildSource)
    note: str = ""


def build_under_test(
    tools: Toolchain, session: Session, injections: tuple[Injection, ...] = ()
) -> Build:
    """The build that the session tests, whose programs `tools` are."""
    return Build(inject(tools.scenario, injections), tools, session.launcher, injections)


def tools_under_test(scenario: Scenario, session: Session) -> Toolchain:
    """The scenario's programs with the build under test, as the session says of it.

    Raises:
        InputError: no image is known; mock programs are not in a container; a name is unknown.
    """
    said = session.override.of(scenario.engine.name)
    if session.synthetic and said.version is None:  # a rehearsal plays the document's release
        said = replace(said, version=scenario.source.engine_version)
    return _tools(scenario, session, session.launcher, said)


def _tools(
    scenario: Scenario,
    session: Session,
    launcher: Launcher,
    said: BuildOverride,
    build: Installation | None = None,
) -> Toolchain:
    """The scenario's programs as `launcher` reaches them; `build`: where another engine's are."""
    tools = launcher.tools(scenario, said)
    if session.synthetic and tools.locations.inside is not None:
        raise InputError(
            "a rehearsal's mock programs are not in a container",
            field="--rehearse",
            found=f"the launcher {launcher.name} with a container",
            expected="a launcher without one",
            hint="name a site file without the container in PERFGATE_SITE, or rehearse with "
            "--launcher local",
        )
    return replace(tools, locations=replace(tools.locations, build=build))


def other_build(
    scenario: Scenario,
    session: Session,
    source: BuildSource,
    *,
    expected: EngineBuild | None = None,
) -> Build:
    """The build that `source` describes, found here and asked what it is; nothing is started.

    A rehearsal's mocks play every build: of image, prefix and programs only the settings are
    used then.

    Args:
        scenario: what is started with it.
        session: the session that starts it.
        source: how it is started; an empty one is the build under test itself.
        expected: the build that it must be; None: whatever it is.

    Raises:
        InputError: the image cannot be had or the launcher has no containers; the prefix or a
            program is not there or not executable; a setting is none; it is another build than
            `expected`; or it lacks an option that the scenario needs.
        MissingProgram: the build lacks a program of the scenario.
        RunError: Docker or Slurm does not answer.
    """
    _refuse_masked(source)
    injections = tuple(parse_injection(text) for text in source.settings)
    started, launcher = inject(scenario, injections), session.launcher
    if session.synthetic or not source.names_programs:
        tools = tools_under_test(scenario, session)
        if session.synthetic and expected is not None:
            tools = replace(tools, override=BuildOverride(expected.version, expected.commit))
    else:
        launcher = _launcher(launcher, source)
        tools = _tools(scenario, session, launcher, BuildOverride(), _installation(source))
        if tools.locations.inside is None:
            _require_programs(source, tools.engine)
    tools = _identified(tools, source, expected)
    found = Build(started, tools, launcher, injections, source)
    if expected is not None and source.names_programs and not session.synthetic:
        _refuse_replaced(found, scenario, session, expected)
    # As for the build under test, before any GPU time: it can do the scenario as it is started.
    verify(replace(tools, scenario=started))
    return found


def verify(tools: Toolchain) -> OptionsAnswer:
    """Check that a build can do all that the plan gives its programs; nothing is started.

    Raises:
        MissingProgram: a program is not installed.
        InputError: the build lacks an option, choice or key, or the scenario names something
            unknown.
    """
    tools.require()
    _, answer = options_answer(tools)
    return answer


def require_startable(
    scenarios: Iterable[Scenario],
    launcher: Launcher,
    source: BuildSource,
    *,
    synthetic: bool,
    option: str = "--control",
) -> None:
    """See, before anything else is done, what can be seen of a build without asking it.

    No container is started for it and no image pulled.

    Args:
        scenarios: what may be started with it.
        launcher: the session's.
        source: the build, as a person names it.
        synthetic: whether mock programs play it.
        option: that named it.

    Raises:
        InputError: as `other_build`, of launcher, prefix, programs and settings.
    """
    engines = set()
    try:
        injections = tuple(parse_injection(text) for text in source.settings)
        for scenario in scenarios:
            inject(scenario, injections)
            engines.add(scenario.engine.name)
        if synthetic or not source.names_programs:
            return
        if _launcher(launcher, source).runtime == "none":
            for name in sorted(engines):
                _require_programs(source, engine[name]())
    except MissingProgram as error:
        raise InputError(error.problem, field=option, hint=error.hint) from error
    except InputError as error:
        raise InputError(**{**error.arguments, "field": option}) from error


def same_build(one: Build, two: Build) -> str:
    """In what two builds are the same, so that comparing them shows the machine alone.

    Returns:
        ``the same program and settings``, or, less, ``both are tensorrt-llm 1.2.0, commit 0a1b2c3``
        where only what they tell is the same; empty: they are known to differ.
    """
    if one.tools.build != two.tools.build or set(one.injections) != set(two.injections):
        return ""
    if _calls(one.tools) == _calls(two.tools):
        return "the same program and settings"
    return f"both are {_describe(one.tools.build)}, which may still be two builds"


def _calls(tools: Toolchain) -> object:
    """What tells apart two builds of one version: where their programs are."""
    locations = tools.locations
    try:
        return locations.inside, [locations.find(program) for program in tools.engine.programs[:1]]
    except (MissingProgram, InputError):
        return locations.inside, None


def _launcher(launcher: Launcher, source: BuildSource) -> Launcher:
    return launcher.with_image(source.image_to_start) if source.image else launcher


def _installation(source: BuildSource) -> Installation:
    return Installation(source.prefix, tuple(sorted(source.programs.items())))


def _identified(tools: Toolchain, source: BuildSource, expected: EngineBuild | None) -> Toolchain:
    """The tools, asked for their build, which must be the expected one.

    A build that tells no commit is taken at its version: that of a baseline may have been named by
    a person.
    """
    try:
        found = tools.build
    except RunError as error:
        if error.failure != "config_error":
            raise
        raise InputError(
            f"the other build's image is not available: {error.message}",
            found=" | ".join([source.description, *error.evidence]),
            expected="an image that is here or can be pulled",
            hint=error.hint,
        ) from error
    if expected is None:
        return tools
    commit = found.commit if found.commit != found.version else ""
    if found.version != expected.version or not _same_commit(commit, expected):
        raise InputError(
            "the other build is not the one that is expected",
            found=f"{source.description} is {_describe(found)}",
            expected=_describe(expected),
            hint="it was replaced since, or another is meant: name the build by --control",
        )
    return replace(tools, override=BuildOverride(found.version, expected.commit))


def _refuse_replaced(
    found: Build, scenario: Scenario, session: Session, expected: EngineBuild
) -> None:
    """Raises where another commit was installed in the place of the expected one.

    Only the build under test has its commit from a person; in the place of an old build of the same
    version it would be taken for that one.
    """
    try:
        tested = tools_under_test(scenario, session)
        build, calls = tested.build, _calls(tested)
    except PerfgateError:
        return  # it is not here; whoever starts it is told
    if calls == _calls(found.tools) and not _same_commit(build.commit, expected):
        raise InputError(
            "the other build is not there any more: the build under test is in its place",
            found=f"{found.source.description} is {_describe(build)}",
            expected=_describe(expected),
            hint="keep each build in a folder or image of its own",
        )


def _same_commit(commit: str, expected: EngineBuild) -> bool:
    """Whether a commit, as far as it is told, is the expected one; either may be shortened."""
    known = expected.commit
    if not commit or known == expected.version:
        return True
    return commit.startswith(known) or known.startswith(commit)


def _describe(build: EngineBuild) -> str:
    commit = f", commit {build.commit}" if build.commit != build.version else ""
    return f"{build.name} {build.version}{commit}"


def _require_programs(source: BuildSource, engine: Engine) -> None:
    """Raises where the prefix is none, or the program that tells the build is not in it."""
    folder = Path(source.prefix)
    if source.prefix and not (folder / "bin").is_dir():
        raise InputError(
            "the other build's prefix is no installation",
            found=f"{folder} has no folder bin" if folder.is_dir() else f"no folder {folder}",
            expected="a folder with bin/, e.g. a virtual environment",
            hint="name the folder that its bin/ lies in",
        )
    for program in engine.programs[:1]:
        _installation(source).find(program)


def _refuse_masked(source: BuildSource) -> None:
    words = [source.image, *source.programs.values(), *source.settings]
    if masked := [word for word in words if MASK in word]:
        raise InputError(
            "how this build was started is not known in full: a secret in it was not recorded",
            found="; ".join(masked),
            expected="a call without secrets",
            hint="name the build with --control",
        )


@dataclass(frozen=True)
class AbBuilds:
    """Both builds of an A/B, found.

    Attributes:
        a: the build that is compared with.
        b: the build under test.
    """

    a: Build
    b: Build

    def describe(
        self, outcome: Outcome, measurements: Mapping[str, Sequence[Measurement]]
    ) -> Outcome:
        """The outcome of a probe, with what both builds are.

        Args:
            outcome: of B against A.
            measurements: A, B → what it gave, which tells of its image.
        """
        sides = []
        for side, one in (("A", self.a), ("B", self.b)):
            (named,) = mask_arguments([one.source.description])
            build = measured_build(one.tools.build, measurements.get(side, ()))
            sides.append(f"{side} = {named} ({build.description})")
        same = same_build(self.a, self.b) if outcome.error is None else ""
        notes = (f"A and B are one build ({same}): an A/A run",) if same else ()
        return replace(
            outcome,
            compared_with="; ".join(sides),
            injected=tuple(str(injection) for injection in self.b.injections),
            notes=(*outcome.notes, *notes),
        )


def source_of(build: Build, facts: Mapping[str, Json]) -> BuildSource | None:
    """How the build of a measurement was started; None: nothing tells.

    Args:
        build: that was measured.
        facts: those of the measurement, with what the launcher says of the image.
    """
    prefix, programs = _programs(build.tools.engine.programs, build.tools.locations)
    found = BuildSource(
        **_image(facts),
        prefix=prefix,
        programs={name: shlex.join(mask_arguments(words)) for name, words in programs.items()},
        settings=tuple(str(injection) for injection in build.injections),
    )
    return found if found.names_programs else None


def _image(facts: Mapping[str, Json]) -> dict[str, str]:
    details: dict[str, Any] = image_facts(facts)
    if not details:
        return {}
    (image,) = mask_arguments([str(details["image"])])
    digests = [str(one) for one in details.get("digests") or []]
    own = [one for one in digests if one.partition("@")[0] == without_tag(image)]
    digest = (own or digests or [""])[0]
    if not own and digest:  # the same content, known under another registry's name
        image = digest.partition("@")[0]
    image_id = str(details.get("id") or "")
    return {"image": image, "digest": digest.partition("@")[2], "image_id": image_id}


def _programs(
    programs: Sequence[Program], locations: Locations
) -> tuple[str, dict[str, tuple[str, ...]]]:
    """The prefix that most programs lie in, and the calls of those that it does not tell."""
    calls: dict[Program, tuple[str, ...]] = {}
    for program in programs:
        if (call := _found(locations.find, program)) is not None:
            calls[program] = call  # else the scenario does not need it, or would have failed
    if locations.inside is not None:
        prefix = locations.build.prefix if locations.build is not None else ""
        find = Installation(prefix).inside
    else:
        prefix = next(filter(None, (_prefix(*call) for call in calls.items())), "")
        find = Installation(prefix).find
    return prefix, {
        program.variable: words
        for program, words in calls.items()
        if _found(find, program) != words
    }


def _prefix(program: Program, words: tuple[str, ...]) -> str:
    """The folder whose ``bin/`` has a program under its own name; empty: it is called otherwise."""
    path = Path(words[0])
    is_plain = path.name == program.executable and path.parent.name == "bin"
    return str(path.parent.parent) if is_plain and words[1:] == program.arguments else ""


def _found(find: Callable[[Program], tuple[str, ...]], program: Program) -> tuple[str, ...] | None:
    """How a program is called; None: it is not there."""
    try:
        return find(program)
    except (MissingProgram, InputError):
        return None
