"""What is refused before any GPU time, and that no setting is dropped without a word."""

from dataclasses import fields, replace
from typing import Any

import msgspec
import pytest
from engine_scenarios import VALUES
from hypothesis import given
from hypothesis import strategies as st
from tables import each
from trtllm_scenarios import CASES, build, check, offline, render, scenario, served

from perfgate.core.errors import InputError
from perfgate.engines.tensorrt_llm.engine import is_served
from perfgate.engines.tensorrt_llm.programs import environment
from perfgate.engines.tensorrt_llm.table import release
from perfgate.scenarios.scenario import (
    CudaGraphs,
    EngineSettings,
    Hardware,
    Mtp,
    Scenario,
    Smoke,
)

VERSIONS = ("0.19.0", "0.20.0", "0.21.0", "1.0.0rc3", "1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.4.0")


def benched(**settings: Any) -> Scenario:
    return scenario(settings=EngineSettings(tp=8, **settings), workload=offline())


def on_server(**settings: Any) -> Scenario:
    return scenario(settings=EngineSettings(tp=8, **settings), workload=served())


def first_answer(**settings: Any) -> Scenario:
    smoke = Smoke("trtllm-quickstart", ("Hello",))
    return scenario(settings=EngineSettings(tp=8, **settings), smoke=smoke)


def loaded(**load: Any) -> Scenario:
    return scenario(workload=offline(**load))


def with_pdl(value: str, **settings: Any) -> Scenario:
    return replace(benched(**settings), environment={"TRTLLM_ENABLE_PDL": value})


SMALL = EngineSettings(tp=8, max_num_tokens=1000)


@each(
    ("case", "version", "told"),
    [
        (replace(benched(), hardware=Hardware("none", 0)), "1.0.0", "hardware.gpu"),
        (on_server(backend="torch"), "1.0.0", "settings.backend"),
        (benched(chunked_context=True), "0.19.0", "trtllm-bench throughput has no option for it"),
        (benched(max_num_tokens=1023), "1.0.0", "found: max_num_tokens 1023, isl 1024"),
        (on_server(max_num_tokens=1000), "1.0.0", "prompts do not fit"),
        (loaded(ignore_eos=False), "1.0.0", "workload.ignore_eos"),
        (loaded(max_request_rate=5.0), "1.0.0", "workload.max_request_rate"),
        (loaded(dataset="sharegpt"), "1.0.0", "workload.dataset"),
        (with_pdl("0", pdl=True), "1.0.0", "what environment says: TRTLLM_ENABLE_PDL is 0 there"),
        (benched(), "0.18.0", "too old"),
    ],
    ids=str,
)
def test_what_a_release_cannot_do_is_refused(case: Scenario, version: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        check(case, build(version))
    assert told in str(caught.value)


@each(
    ("case", "version"),
    [
        (benched(chunked_context=True), "0.20.0"),
        (benched(chunked_context=True), "1.0.0rc4"),
        (benched(max_num_tokens=1024), "1.0.0"),
        (benched(max_num_tokens=1023, chunked_context=True), "1.0.0"),
        # Its document's release cuts prompts by default.
        (scenario(release="1.1.0", settings=SMALL, workload=offline()), "1.1.0"),
        (with_pdl("1", pdl=True), "1.0.0"),
    ],
    ids=str,
)
def test_what_it_can_do_is_not(case: Scenario, version: str) -> None:
    check(case, build(version))


def test_a_release_without_a_switch() -> None:
    known = msgspec.structs.replace(release("1.0.0"), pdl_variable=None)
    with pytest.raises(InputError, match=r"settings\.pdl.*\n.*\n.*no switch for it"):
        environment(benched(pdl=True), EngineSettings(pdl=True), known)


def test_a_server_is_needed_by_what_has_no_engine_inside() -> None:
    assert is_served(on_server())
    assert not is_served(benched())
    assert not is_served(CASES["gpqa"])
    assert is_served(scenario(smoke=Smoke("completion", ("Hello",))))
    assert is_served(replace(benched(), smoke=Smoke("completion", ("Hello",))))


# Nothing is dropped. ------------------------------------------------------------------------

MAKERS = {"bench": benched, "serve": on_server, "first_answer": first_answer}
# What every release does by itself when it is not told: no word is needed to say it.
ALWAYS = {
    ("bench", "trust_remote_code", True),
    ("serve", "trust_remote_code", False),
    ("first_answer", "trust_remote_code", False),
    ("first_answer", "attention_dp", False),
    ("first_answer", "chunked_context", False),
    ("first_answer", "torch_compile", False),
    ("first_answer", "iteration_log", False),
    ("first_answer", "cuda_graphs", CudaGraphs(enabled=False)),
    ("first_answer", "backend", "pytorch"),
}
# The same for what only some releases do by themselves.
BY_ITSELF = {
    ("bench", "chunked_context", False): ("0.19.0", "0.20.0", "0.21.0", "1.0.0rc3", "1.0.0"),
    ("serve", "backend", "pytorch"): ("1.4.0",),
    ("serve", "backend", "tensorrt"): VERSIONS[:3],
    ("bench", "backend", "tensorrt"): VERSIONS[:3],
    ("first_answer", "overlap_scheduler", False): ("0.19.0",),
    ("first_answer", "overlap_scheduler", True): VERSIONS[1:],
}


def said(case: Scenario, version: str) -> tuple[Any, ...] | None:
    """All that a command tells the programs; None where the scenario is refused."""
    try:
        check(case, build(version))
    except InputError:
        return None
    command = render(case, version)
    return (command.argv, command.env, command.files)


def test_every_setting_is_tried() -> None:
    """A setting that is added later must be added here, and so be spelled or refused."""
    assert set(VALUES) == {field.name for field in fields(EngineSettings)}


@each("maker", MAKERS)
@each("version", VERSIONS)
def test_no_setting_is_dropped_without_a_word(maker: str, version: str) -> None:
    made = MAKERS[maker]()
    bare = replace(made, source=replace(made.source, engine_version=None))
    plain = said(bare, version)
    assert plain is not None
    for field, values in VALUES.items():
        for value in values:
            settings = EngineSettings(**{"tp": 8, field: value})
            key = (maker, field, value)
            silent = key in ALWAYS or version in BY_ITSELF.get(key, ()) or value == Mtp(0)
            told = said(replace(bare, engine=replace(bare.engine, settings=settings)), version)
            assert told != plain or silent, f"{field}={value} was dropped"


@given(
    document=st.sampled_from([*CASES.values()]),
    version=st.sampled_from([*VERSIONS, "1.3.0rc7", "1.0.0rc6", "2.0.0"]),
    field=st.sampled_from(sorted(VALUES)),
    choice=st.integers(0, 4),
)
def test_a_check_that_passes_can_be_rendered(
    document: Scenario, version: str, field: str, choice: int
) -> None:
    values = VALUES[field]
    settings = replace(document.engine.settings, **{field: values[choice % len(values)]})
    case = replace(document, engine=replace(document.engine, settings=settings))
    try:
        check(case, build(version))
    except InputError:
        return
    render(case, version)
