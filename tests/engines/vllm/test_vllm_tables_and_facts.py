"""The release tables against option pages that the releases' own parsers told, both ways.

Whatever settings a scenario has, what is rendered for a release must fit its page, as its help
shows it: an option that is taken and hidden could not be asked for before GPU time is spent.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from vllm_scenarios import ON_PAPER, RELEASES, SERVED, build, page, scenario

from perfgate.core.errors import CannotDo
from perfgate.engines.option_check import Mismatch, of_call
from perfgate.engines.vllm.engine import Vllm
from perfgate.engines.vllm.table import SERVE, TABLES
from perfgate.scenarios.scenario import CudaGraphs, Mtp, Scenario

every_release = pytest.mark.parametrize("version", RELEASES)
_SWITCH = st.sampled_from([None, True, False])
_COUNT = st.none() | st.integers(1, 65536)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Any settings that a scenario may ask of vLLM."""
    tp, dp = draw(st.sampled_from([(8, None), (8, 1), (4, 2), (1, 8)]))
    graphs = draw(
        st.none()
        | st.builds(CudaGraphs, enabled=st.just(False))
        | st.builds(CudaGraphs, batch_sizes=st.sampled_from([(), (1, 2, 64), (512, 8)]))
        | st.builds(CudaGraphs, padding=st.just(True), max_batch_size=st.integers(1, 1024))
    )
    return scenario(
        draw(st.sampled_from([None, "0.11.0", "0.33.0"])),
        tp=tp,
        dp=dp,
        attention_dp=draw(_SWITCH) if dp and dp > 1 else None,
        ep=draw(st.sampled_from([None, 1, 8])),
        max_batch_size=draw(_COUNT),
        max_num_tokens=draw(_COUNT),
        max_seq_len=draw(_COUNT),
        kv_cache_fraction=draw(st.none() | st.floats(0.05, 0.99)),
        kv_cache_dtype=draw(st.sampled_from([None, "auto", "fp8", "bfloat16"])),
        kv_cache_reuse=draw(_SWITCH),
        chunked_context=draw(_SWITCH),
        overlap_scheduler=draw(_SWITCH),
        torch_compile=draw(_SWITCH),
        cuda_graphs=graphs,
        mtp=draw(st.none() | st.builds(Mtp, st.integers(0, 3))),
        quantization=draw(st.sampled_from([None, "fp8"])),
        moe_backend=draw(st.sampled_from([None, "auto", "deep_gemm"])),
        attention_backend=draw(st.sampled_from([None, "FLASHMLA"])),
        stream_interval=draw(st.none() | st.just(4)),
        iteration_log=draw(_SWITCH),
        trust_remote_code=draw(_SWITCH),
        seed=draw(st.none() | st.integers(0, 2**31)),
    )


def test_the_server_is_found_behind_words_that_only_look_like_it() -> None:
    for before in (["env", "NOTE=to serve it"], ["sudo", "-p", "who serves it?"]):
        argv = [*before, "vllm", "serve", "m", "--port", "1"]
        (call,) = Vllm().calls(argv, TABLES.release("0.11.0"), ON_PAPER)
        assert call.arguments == ("m", "--port", "1")


def _unfit(case: Scenario, version: str) -> list[Mismatch]:
    command = Vllm().serve(case, build(version), SERVED, ON_PAPER)
    found = list(Vllm().calls(command.argv, TABLES.release(version), ON_PAPER))
    assert [call.page for call in found] == [SERVE]
    return [one for call in found for one in of_call(call, page(version, shown=True))]


@every_release
@settings(max_examples=60, deadline=None)
@given(case=scenarios())
def test_any_settings_are_refused_or_rendered_as_the_release_takes_them(
    version: str, case: Scenario
) -> None:
    try:
        Vllm().check(case, build(version))
    except CannotDo:
        return
    assert _unfit(case, version) == []


@every_release
def test_defaults_are_those_of_the_page(version: str) -> None:
    options = page(version).programs[SERVE]
    defaults = TABLES.release(version).defaults
    assert defaults.kv_cache_fraction == options["gpu_memory_utilization"].default
    assert defaults.seed == (options["seed"].default or 0 if _is_told(version, "seed") else None)
    if "async_scheduling" in options:
        told = (
            options["async_scheduling"].default if _is_told(version, "async_scheduling") else None
        )
        assert defaults.overlap_scheduler == told


def _is_told(version: str, name: str) -> bool:
    return page(version).programs[SERVE][name].default is not UNSET
