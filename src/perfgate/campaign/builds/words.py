"""Words: how a person names a changed setting, another build, and both of an A/B.

A changed setting (``--inject``) is put into the build under test on purpose, to see the gate catch
it: such runs are marked in every record and report, and can become no baseline.

A build is named by

``PART[,PART]…``, each part one of these; none is guessed:

- a folder, as a path that begins with ``/``, ``./``, ``../`` or ``~``: an installation with a
  ``bin/``, e.g. a virtual environment; of an image that is named beside it, a folder in it
- an image: a name with a tag or a digest, an image's id ``sha256:…``, or what ends in ``.sqsh``
- ``PERFGATE_PROGRAM_<NAME>=CALL``: how one of the engine's programs is called
- ``KEY=VALUE``: a setting of the scenario, as ``--inject`` takes it
- ``this``, alone or with settings: the build under test
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import yaml

from perfgate.baselines.baseline import BuildSource
from perfgate.core.errors import InputError, did_you_mean
from perfgate.core.programs.programs import PROGRAM_PREFIX, program_variables
from perfgate.core.redaction import control_character_in, mask_arguments, visible
from perfgate.scenarios.scenario import Scenario
from perfgate.scenarios.yaml_document import read_value

_LONGEST_VALUE = 1000  # characters of a value


@dataclass(frozen=True)
class Injection:
    """One changed setting, e.g. ``engine.settings.cpu_threads=1`` or ``accuracy.temperature=2``."""

    path: tuple[str, ...]
    value: Any

    def __str__(self) -> str:
        """As it is recorded and shown, a secret masked: ``environment.HF_TOKEN=***``."""
        (shown,) = mask_arguments([f"{'.'.join(self.path)}={self.value}"])
        return visible(shown)


def parse_injection(text: str) -> Injection:
    """Read ``KEY=VALUE``; the value as a scenario file has it.

    Raises:
        InputError: no such form.
    """
    key, equals, written = text.partition("=")
    refused = InputError(
        "not a setting",
        field="--inject",
        found=repr(text[:_LONGEST_VALUE]),
        expected="KEY=VALUE, e.g. engine.settings.cpu_threads=1",
    )
    if not equals or not key or len(written) > _LONGEST_VALUE:
        raise refused
    try:
        value = read_value(written)
    except (InputError, yaml.YAMLError):
        raise refused from None
    return Injection(tuple(key.split(".")), value)


def inject(scenario: Scenario, injections: tuple[Injection, ...]) -> Scenario:
    """The scenario as it is really started, every injection applied.

    Raises:
        InputError: a path names no field, or the value is of another type.
    """
    for injection in injections:
        scenario = _replaced(scenario, injection.path, injection)
    return scenario


def _replaced(target: Any, path: tuple[str, ...], injection: Injection) -> Any:
    if isinstance(target, tuple):
        return tuple(_replaced(item, path, injection) for item in target)
    name, rest = path[0], path[1:]
    known = get_type_hints(type(target)) if is_dataclass(target) else {}
    if name not in known:
        raise InputError(
            "no such setting",
            field="--inject",
            found=str(injection),
            expected=f"after {'.'.join(injection.path[: -len(path)]) or 'the start'} one of "
            + (", ".join(known) or "nothing"),
        )
    if rest:
        return replace(target, **{name: _replaced(getattr(target, name), rest, injection)})
    if not _fits(injection.value, known[name]):
        raise InputError(
            "not a value of this setting",
            field="--inject",
            found=f"{injection} ({type(injection.value).__name__})",
            expected=_told(known[name]),
        )
    return replace(target, **{name: injection.value})


def _fits(value: object, hint: Any) -> bool:
    """Whether a setting of type `hint` can be `value`; only single values are settings."""
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, one) for one in get_args(hint))
    return type(value) is hint or (hint is float and type(value) is int)


def _told(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(_told(one) for one in get_args(hint))
    names = {bool: "true or false", int: "int", float: "float", str: "text", NoneType: "null"}
    return names.get(hint, "one of its own settings")


THIS = "this"
_LONGEST = 4000  # characters
_PATHS = ("/", "./", "../", "~")
_SQUASHED = (".sqsh", ".squashfs")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_DIGESTED = re.compile(r"[\w.:/#-]+@sha256:[0-9a-f]{64}")
# As Docker has a name, or enroot (docker://USER@REGISTRY#NAME:TAG).
_NAME = re.compile(r"[\w.:/#@-]*[\w.-]")
_TAG = re.compile(r"\w[\w.-]{0,127}")
_FORMS = (
    "IMAGE with a tag or digest, FOLDER (/…, ./…, ~/…), a .sqsh file, "
    "PERFGATE_PROGRAM_<NAME>=CALL, KEY=VALUE of a setting, or this; several with commas between"
)


def parse_source(text: str, *, field: str = "a build") -> BuildSource:
    """The build that a person names; whether it is here is not looked at.

    Args:
        text: as on the command line, see above.
        field: the option that it was given to, for the message.

    Raises:
        InputError: a part that is none of the forms, or could be two; one that is given twice; a
            program that is not the engine's.
    """
    if len(text) > _LONGEST or control_character_in(text) is not None:
        raise _refused(field, repr(text[:200]), "one line of printable text")
    found: dict[str, str] = {}
    parts = [part.strip() for part in text.split(",")]
    for part in parts:
        if not part:
            raise _refused(field, repr(text), _FORMS, "a part is empty")
        if part == THIS:
            continue
        name, value = _read(part, field)
        if name in found:
            why = f"{name} is given twice"
            raise _refused(field, f"{found[name]} and {value}", f"one {name}", why)
        found[name] = value
    image, folder = found.pop("image", ""), found.pop("folder", "")
    source = BuildSource(
        image,
        image.partition("@")[2] if _DIGESTED.fullmatch(image) else "",
        image if _DIGEST.fullmatch(image) else "",
        _folder(folder, image, field),
        {name: call for name, call in found.items() if name.startswith(PROGRAM_PREFIX)},
        tuple(text for name, text in found.items() if not name.startswith(PROGRAM_PREFIX)),
    )
    if THIS in parts and source.names_programs:
        raise _refused(field, repr(text), "this alone, or with settings", "it names two builds")
    return source


def _read(part: str, field: str) -> tuple[str, str]:
    """What a part names, a program's variable, a setting's key, a folder or an image; and that."""
    name = part.partition("=")[0]
    if _is_path(part) and not part.endswith(_SQUASHED):
        return "folder", part
    if part.startswith(PROGRAM_PREFIX):
        return _program(part, field)
    if "=" not in part:
        return "image", _image(part, field)
    if "." not in name:
        raise _refused(field, part, "KEY=VALUE, e.g. engine.settings.cpu_threads=1")
    parse_injection(part)
    return name, part


def _is_path(part: str) -> bool:
    return part.startswith(_PATHS) or part in (".", "..")


def _program(part: str, field: str) -> tuple[str, str]:
    name, equals, call = part.partition("=")
    known = program_variables()
    engine = [variable for variable, is_of_build in known.items() if is_of_build]
    if name not in known:
        raise _refused(field, name, ", ".join(sorted(engine)), hint=did_you_mean(name, engine))
    if name not in engine:
        raise _refused(
            field,
            name,
            "a program of the engine",
            "both builds are measured by the same client and evaluator",
        )
    if not equals or not call:
        raise _refused(field, part, f"{name}=CALL")
    return name, call


def _image(part: str, field: str) -> str:
    if part.endswith(_SQUASHED):
        return str(Path(part).expanduser().absolute()) if _is_path(part) else part
    if _DIGEST.fullmatch(part) or _DIGESTED.fullmatch(part):
        return part
    if "sha256" in part:
        raise _refused(field, part, "NAME@sha256: and 64 digits from 0 to f, or sha256: and these")
    name, _, tag = part.rpartition(":")
    if _NAME.fullmatch(name) and _TAG.fullmatch(tag):
        return part
    raise _refused(
        field,
        part,
        _FORMS,
        "not clear whether a folder or an image",
        f"write ./{part} for a folder, {part}:TAG for an image",
    )


def _folder(prefix: str, image: str, field: str) -> str:
    if not prefix:
        return ""
    if not image:
        return str(Path(prefix).expanduser().absolute())
    if not prefix.startswith("/"):
        raise _refused(field, prefix, "an absolute path: the folder is in the image")
    return prefix.rstrip("/") or "/"


def _refused(
    field: str, found: str, expected: str, why: str = "", hint: str | None = None
) -> InputError:
    problem = "this names no build" + (f": {why}" if why else "")
    return InputError(problem, field=field, found=found, expected=expected, hint=hint)


FIELD = "--ab"
SIDES = ("A", "B")


@dataclass(frozen=True)
class AbSources:
    """How the two builds of an A/B are started.

    Attributes:
        a: the build that is compared with.
        b: the build under test.
    """

    a: BuildSource
    b: BuildSource

    @property
    def description(self) -> str:
        """Both, as the command line has them."""
        return f"A={self.a.description} B={self.b.description}"


def parse_ab(words: Sequence[str]) -> AbSources:
    """The builds of ``A=BUILD B=BUILD``, in any order; each as `parse_source` reads it.

    Raises:
        InputError: not one of each, or a build that cannot be understood.
    """
    found: dict[str, BuildSource] = {}
    for word in words:
        side, equals, text = word.partition("=")
        if side not in SIDES or not equals or not text or side in found:
            raise InputError(
                "an A/B needs two builds",
                field=FIELD,
                found=" ".join(words)[:1000],
                expected="A=BUILD B=BUILD, each an image, a folder, settings or this",
                hint="e.g. --ab A=this B=engine.settings.cpu_threads=1",
            )
        found[side] = parse_source(text, field=f"{FIELD} {side}")
    return AbSources(found["A"], found["B"])
