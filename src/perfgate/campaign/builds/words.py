"""Build words: how a person names another build on a command line, and both of an A/B.

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
from dataclasses import dataclass
from pathlib import Path

from perfgate.campaign.injection import parse as parse_injection
from perfgate.core.control_characters import found_in
from perfgate.core.errors import InputError
from perfgate.core.programs import PROGRAM_PREFIX, engine_variables, known_program_variables
from perfgate.core.suggestion import did_you_mean
from perfgate.engines.build_source import BuildSource

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
    if len(text) > _LONGEST or found_in(text) is not None:
        raise _refused(field, repr(text[:200]), "one line of printable text")
    parts = [part.strip() for part in text.split(",")]
    image, prefix = "", ""
    programs: dict[str, str] = {}
    settings: dict[str, str] = {}
    for part in parts:
        if not part:
            raise _refused(field, repr(text), _FORMS, "a part is empty")
        if part == THIS:
            continue
        if _is_path(part) and not part.endswith(_SQUASHED):
            prefix = _once(prefix, part, "folder", field)
        elif part.startswith(PROGRAM_PREFIX):
            name, call = _program(part, field)
            programs[name] = _once(programs.get(name, ""), call, name, field)
        elif "=" in part:
            name = part.partition("=")[0]
            settings[name] = _once(settings.get(name, ""), _setting(part, field), name, field)
        else:
            image = _once(image, _image(part, field), "image", field)
    found = BuildSource(
        image,
        image.partition("@")[2] if _DIGESTED.fullmatch(image) else "",
        image if _DIGEST.fullmatch(image) else "",
        _folder(prefix, image, field),
        programs,
        tuple(settings.values()),
    )
    if THIS in parts and found.names_programs:
        raise _refused(field, repr(text), "this alone, or with settings", "it names two builds")
    return found


def _is_path(part: str) -> bool:
    return part.startswith(_PATHS) or part in (".", "..")


def _program(part: str, field: str) -> tuple[str, str]:
    name, equals, call = part.partition("=")
    engine = engine_variables()
    if name not in known_program_variables():
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


def _setting(part: str, field: str) -> str:
    name = part.partition("=")[0]
    if "." not in name:
        raise _refused(field, part, "KEY=VALUE, e.g. engine.settings.cpu_threads=1")
    parse_injection(part)
    return part


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


def _once(before: str, now: str, what: str, field: str) -> str:
    if before:
        raise _refused(field, f"{before} and {now}", f"one {what}", f"{what} is given twice")
    return now


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
    def in_words(self) -> str:
        """Both, as the command line has them."""
        return f"A={self.a.in_words} B={self.b.in_words}"


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
