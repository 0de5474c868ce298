"""The two builds that --ab names."""

import pytest

from perfgate.campaign.builds.words import parse_ab
from perfgate.core.errors import InputError
from perfgate.engines.build_source import BuildSource


def test_two_builds_in_any_order() -> None:
    found = parse_ab(["B=engine.settings.cpu_threads=8", "A=this"])
    assert found.a == BuildSource()
    assert found.b.settings == ("engine.settings.cpu_threads=8",)
    assert found.in_words == "A=this B=engine.settings.cpu_threads=8"


@pytest.mark.parametrize(
    "words", [["A=this", "A=this"], ["A=this", "C=this"], ["A=", "B=this"], ["this", "B=this"]]
)
def test_not_one_of_each(words: list[str]) -> None:
    with pytest.raises(InputError, match="an A/B needs two builds"):
        parse_ab(words)


def test_a_build_that_cannot_be_understood_names_its_side() -> None:
    with pytest.raises(InputError, match="--ab B"):
        parse_ab(["A=this", "B=nonsense"])
