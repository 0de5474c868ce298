"""The release tables against recorded option pages, both ways.

The pages were read off TensorRT-LLM's own source, so that what a table gets wrong shows here: every
call that is rendered must fit the page of its release, and every option and choice of a table must
be on it.
"""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from documented_set import documented_suite
from trtllm_scenarios import CASES, render

import perfgate.rehearsal
from perfgate.core.errors import CannotDo
from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.engines.base import EngineBuild
from perfgate.engines.definitions import Definitions
from perfgate.engines.tensorrt_llm.definition_check import calls, mismatches
from perfgate.engines.tensorrt_llm.table import QUICKSTART, SERVE, THROUGHPUT, Release, release
from perfgate.plan.calls import commands_to_verify
from perfgate.scenarios.scenario import Scenario

PAPER = Locations(on_paper=True)
RECORDED = Path(perfgate.rehearsal.__file__).parent / "recorded"


class Page(NamedTuple):
    """One recorded page, and the table that perfgate has for its release."""

    name: str
    definitions: Definitions
    table: Release


def _pages() -> list[Page]:
    found = []
    for path in sorted(RECORDED.glob("tensorrt_llm_*.json")):
        definitions = msgspec.json.decode(path.read_bytes(), type=Definitions)
        found.append(Page(path.stem, definitions, release(definitions.version)))
    return found


PAGES = _pages()
assert len(PAGES) >= 6, "nothing compared with nothing would fit"
every_page = pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])


def _of_serve(program: str) -> str:
    """The server's name on a page, where it has its subcommand."""
    return f"{SERVE} serve" if program == SERVE else program


@pytest.fixture(scope="module")
def scenarios() -> tuple[Scenario, ...]:
    documented = documented_suite().scenarios
    return tuple(one for one in documented if one.engine.name == "tensorrt-llm")


def commands(scenarios: tuple[Scenario, ...], version: str) -> dict[str, tuple[Command, ...]]:
    """The commands of each scenario at a release; none where the release cannot do it."""
    build = EngineBuild("tensorrt-llm", version, version)
    found: dict[str, tuple[Command, ...]] = {}
    for scenario in scenarios:
        try:
            found[scenario.id] = commands_to_verify(scenario, build, PAPER)
        except CannotDo:
            found[scenario.id] = ()
    return found


@every_page
def test_every_rendered_call_fits_the_page_of_its_release(
    page: Page, scenarios: tuple[Scenario, ...]
) -> None:
    held, files, wrong = Counter[str](), 0, []
    for scenario, steps in commands(scenarios, page.definitions.version).items():
        for command in steps:
            held.update(
                call.page
                for call in calls(command.argv, PAPER)
                if call.page in page.definitions.programs
            )
            files += bool(command.files) and page.definitions.keys is not None
            wrong += [
                f"{page.table.file}: {scenario}: {one.program} {one.place}: {one.problem}: "
                f"found {one.found}, expected {one.expected}"
                for one in mismatches(command, page.definitions, PAPER)
                if not one.is_taken
            ]
    print(f"{page.name}: {held.total()} calls {dict(held)}, {files} YAML files")
    assert wrong == []
    assert held.total() > 0
    assert page.definitions.keys is None or files > 20


def test_what_a_page_marks_is_told_and_fits() -> None:
    (page,) = [one.definitions for one in PAGES if one.definitions.version == "1.4.0rc0"]
    found = mismatches(render(CASES["r1-0528-fp8-serve"], "1.4.0rc0"), page, PAPER)
    assert all(one.is_taken for one in found)
    told = {one.place: one.problem for one in found}
    assert told["--extra_llm_api_options"] == "marked prototype by the build"
    assert "--max_batch_size" not in told  # beta


@every_page
def test_every_default_of_a_table_is_that_of_the_page(page: Page) -> None:
    told = page.definitions
    backends = [
        (program, option.default)
        for program in (THROUGHPUT, SERVE, QUICKSTART)
        if (option := told.option(_of_serve(program), "--backend")) and option.default
    ]
    for program, default in backends:
        assert page.table.defaults[program].backend == default, program
    chunked = told.option(THROUGHPUT, "--enable_chunked_context")
    if chunked is not None and isinstance(chunked.default, bool):
        assert page.table.defaults[THROUGHPUT].chunked_context == chunked.default
    warmup = told.option(THROUGHPUT, "--warmup")
    if warmup is not None and isinstance(warmup.default, int):
        assert page.table.bench_warmup == warmup.default
    experts = (told.keys or {}).get("moe_config")
    for model in experts.models.values() if experts else ():
        if isinstance(model["backend"].default, str):
            assert page.table.defaults[SERVE].moe_backend == model["backend"].default
        if model["backend"].choices and page.table.moe_backends is not None:
            assert page.table.moe_backends == set(model["backend"].choices)
