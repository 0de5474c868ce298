"""Exploration: the scenarios marked `explore`, measured with other prompt and answer lengths.

The best-practice blog ("Exploring more ISL/OSL combinations") takes its throughput commands with
another dataset and asks for `max_num_tokens` that covers the longest prompt.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from perfgate.core.errors import InputError
from perfgate.scenarios.markers import EXPLORE
from perfgate.scenarios.rules.scenario_rules import broken_rules
from perfgate.scenarios.scenario import EngineSettings, Scenario, Workload

_SHAPE = re.compile(r"([1-9][0-9]*)/([1-9][0-9]*)")


def parse_shape(text: str) -> tuple[int, int]:
    """Input and output tokens of ``4096/512``.

    Raises:
        InputError: it is written otherwise.
    """
    match = _SHAPE.fullmatch(text)
    if match is None:
        expected = "<input tokens>/<output tokens>, e.g. 4096/512"
        raise InputError("not a pair of lengths", found=text, expected=expected)
    return int(match[1]), int(match[2])


def explored(
    scenarios: Sequence[Scenario], shapes: Sequence[tuple[int, int]]
) -> tuple[Scenario, ...]:
    """The scenarios, each that is marked `explore` replaced by one per shape.

    Args:
        scenarios: all scenarios.
        shapes: pairs of input and output tokens, from `parse_shape`; none: nothing changes.

    Raises:
        InputError: a marked scenario cannot have other lengths.
    """
    found: list[Scenario] = []
    for scenario in scenarios:
        asked = dict.fromkeys(shapes) if EXPLORE in scenario.markers else ()
        found += [_of_shape(scenario, *shape) for shape in asked] or [scenario]
    return tuple(found)


def _of_shape(scenario: Scenario, isl: int, osl: int) -> Scenario:
    load = scenario.workload
    if load is None or load.dataset != "synthetic":
        raise _refused(scenario, "only synthetic prompts can have other lengths", f"{isl}/{osl}")
    settings = _covering(scenario.engine.settings, load, isl, osl)
    made = replace(
        scenario,
        id=f"{scenario.id}-{isl}-{osl}",
        title=f"{scenario.title}, {isl}/{osl}",
        engine=replace(scenario.engine, settings=settings),
        workload=replace(load, isl=isl, osl=osl, input_tokens=None),
        floors=(),  # they were said of the documented lengths
    )
    for problem in broken_rules(made):
        raise _refused(scenario, problem.problem, problem.found or f"{isl}/{osl}")
    return made


def _covering(settings: EngineSettings, load: Workload, isl: int, osl: int) -> EngineSettings:
    """Settings that take such requests.

    A step that is too short grows to one whole prompt beside a token of every other request of a
    full batch: what the documents chose themselves (1151 tokens = ISL 1024 + batch 128 - 1; 1160 =
    1000 + 161 - 1).
    """
    tokens, longest = settings.max_num_tokens, settings.max_seq_len
    if tokens is not None and tokens < isl and not settings.chunked_context:
        tokens = isl + (settings.max_batch_size or 1) - 1
    if longest is not None:
        # Room beyond the documented lengths, a chat template's say, is kept.
        room = longest - (load.isl or 0) - (load.osl or 0)
        longest = max(longest, isl + osl + room)
    return replace(settings, max_num_tokens=tokens, max_seq_len=longest)


def _refused(scenario: Scenario, problem: str, found: object) -> InputError:
    problem = f"{scenario.id} cannot be explored: {problem}"
    return InputError(problem, file=scenario.file, found=found)
