"""A/B sources: the two builds that ``--ab A=… B=…`` names. Starts nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from perfgate.campaign.build_words import parse_source
from perfgate.core.errors import InputError
from perfgate.engines.build_source import BuildSource

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
