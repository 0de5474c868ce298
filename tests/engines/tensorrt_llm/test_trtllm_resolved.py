"""Settings that TensorRT-LLM prints at its start, in force or not; a cut log proves nothing."""

from types import SimpleNamespace
from typing import Any

import pytest
from documented_set import documented_suite
from tables import each
from trtllm_scenarios import scenario

from perfgate.core.errors import PerfgateError, RunError
from perfgate.engines.base import EngineBuild
from perfgate.engines.effective_settings import (
    EffectiveSettings,
    differences,
    not_established,
    require_effective_settings,
)
from perfgate.engines.tensorrt_llm import llm_api_yaml, programs, resolved
from perfgate.engines.tensorrt_llm.table import SERVE, THROUGHPUT, release
from perfgate.rehearsal.playbook import release_numbers
from perfgate.rehearsal.programs import llm_api
from perfgate.scenarios.scenario import CudaGraphs, EngineSettings, Mtp, Scenario

# Lines of a server's log of 1.1.0rc3, the configuration and the list of sizes shortened.
CONFIG = (
    "[12/20/2025-04:20:19] [TRT-LLM] [I] PyTorchConfig(extra_resource_managers={}, "
    "use_cuda_graph=True, cuda_graph_batch_sizes=[1, 2, 4, 8], cuda_graph_max_batch_size=8, "
    "cuda_graph_padding_enabled=True, disable_overlap_scheduler=True, kv_cache_dtype='auto')"
)
AUTO = (
    '[12/20/2025-04:20:19] [TRT-LLM] [I] Validating KV Cache config against kv_cache_dtype="auto"'
)
SHARE = (
    "[12/20/2025-04:21:51] [TRT-LLM] [I] Peak memory during memory usage profiling (torch + "
    "non-torch): 113.65 GiB, available KV cache memory when calculating max tokens: 5.95 GiB, "
    "fraction is set 0.8999999761581421, kv size is 73728. device total memory 119.70 GiB"
)
GRAPHS = "[12/20/2025-04:21:53] [TRT-LLM] [I] Creating CUDA graph instances for 4 batch sizes."
WARM_UP = "[TRT-LLM] [RANK 0] [I] Run generation only CUDA graph warmup for batch size="
END = (
    "[12/20/2025-04:21:57] [TRT-LLM] [I] Setting PyTorch memory fraction to 0.5983721838660735 "
    "(71.62367630004883 GiB)"
)
FP8 = AUTO.replace('"auto"', '"fp8"')
CAPTURED = [f"{WARM_UP}{size}, draft_len=3" for size in (8, 4, 2, 1)]
CUT = "its log is cut, or kept elsewhere: it has no "
PADDED = CudaGraphs(padding=True, batch_sizes=(1, 2, 4, 8))


def of(
    settings: dict[str, Any], log: list[str], report: dict[str, Any] | None = None
) -> tuple[Scenario, EffectiveSettings]:
    case = scenario(settings=EngineSettings(tp=8, **settings))
    return case, resolved.effective_settings(case, report or {}, log)


def silent(case: Scenario, found: EffectiveSettings) -> dict[str, Any]:
    told = not_established(case, found).get("settings_not_established", {})
    assert isinstance(told, dict)
    return told


@each(
    ("settings", "log", "expected"),
    [
        ({"kv_cache_dtype": "fp8"}, [FP8], "fp8"),
        ({"kv_cache_dtype": "fp8"}, [FP8, AUTO], "fp8"),  # a draft model's comes later
        ({"mtp": Mtp(3)}, [AUTO, GRAPHS, *CAPTURED], {"layers": 3}),
        ({"mtp": Mtp(3)}, [f"{WARM_UP}8, draft_len=3, max_seq_len=2048"], {"layers": 3}),
        ({"cuda_graphs": CudaGraphs()}, [GRAPHS], {"enabled": True}),
        ({"cuda_graphs": CudaGraphs(enabled=False)}, [AUTO, SHARE, END], {"enabled": False}),
        (
            {"cuda_graphs": PADDED},
            [CONFIG, GRAPHS],
            {"enabled": True, "padding": True, "batch_sizes": [1, 2, 4, 8]},
        ),
        (
            {"cuda_graphs": CudaGraphs(batch_sizes=(1, 2, 4, 8, 16)), "max_batch_size": 8},
            [GRAPHS, *CAPTURED],
            {"enabled": True, "batch_sizes": [1, 2, 4, 8, 16]},
        ),
        (
            {"cuda_graphs": CudaGraphs(max_batch_size=8)},
            [GRAPHS, *CAPTURED],
            {"enabled": True, "max_batch_size": 8},
        ),
    ],
)
def test_what_is_in_force_as_asked(
    settings: dict[str, Any], log: list[str], expected: object
) -> None:
    case, found = of(settings, log)
    assert found.settings[next(iter(settings))] == expected
    assert not silent(case, found)
    assert require_effective_settings(case, found)["settings_told_by"] == "its log"


@each(
    ("settings", "log", "words"),
    [
        ({"kv_cache_dtype": "fp8"}, [AUTO], "kv_cache_dtype: asked fp8, in force auto"),
        ({"mtp": Mtp(1)}, [GRAPHS, *CAPTURED], "mtp: asked {'layers': 1}, in force {'layers': 3}"),
        ({"mtp": Mtp(1)}, [f"{WARM_UP}8, draft_len=0"], "in force {'layers': 0}"),
        ({"cuda_graphs": CudaGraphs()}, [AUTO, SHARE, END], "in force {'enabled': False}"),
        ({"cuda_graphs": CudaGraphs(enabled=False)}, [GRAPHS], "in force {'enabled': True}"),
        ({"cuda_graphs": CudaGraphs(padding=False)}, [CONFIG], "'padding': True}"),
        ({"cuda_graphs": CudaGraphs(max_batch_size=64)}, [CONFIG], "'max_batch_size': 8}"),
        ({"cuda_graphs": CudaGraphs(batch_sizes=(1, 8))}, [CONFIG], "[1, 2, 4, 8]}"),
    ],
)
def test_an_option_that_was_ignored_is_an_error_with_both_values(
    settings: dict[str, Any], log: list[str], words: str
) -> None:
    with pytest.raises(RunError) as caught:
        require_effective_settings(*of(settings, log))
    assert caught.value.failure == "not_in_force"
    assert words in caught.value.message


ASKED = {"kv_cache_dtype": "fp8", "mtp": Mtp(3), "cuda_graphs": PADDED, "attention_dp": True}


@each(
    ("log", "names", "why"),
    [
        ([CONFIG, FP8, SHARE, GRAPHS, *CAPTURED, END], ["attention_dp"], "its log does not tell"),
        # Old releases: neither the configuration, nor what is drafted, nor the end.
        ([FP8, SHARE], ["mtp", "cuda_graphs", "attention_dp"], "its log does not tell"),
        ([], [*ASKED], f"{CUT}line of the engine's start"),
        ([FP8], ["mtp", "cuda_graphs", "attention_dp"], f"{CUT}end of the engine's start"),
        ([SHARE, END], [*ASKED], f"{CUT}beginning of the engine's start"),
        # Each line cut where its value stands.
        ([FP8[:-2], CONFIG[:130], CAPTURED[0][:-13]], [*ASKED], f"{CUT}line of the engine's start"),
        ([FP8[:-1]], [*ASKED], f"{CUT}line of the engine's start"),
        ([AUTO[:-9], SHARE[:160], GRAPHS[:-8], END[:-30]], [*ASKED], f"{CUT}line"),
    ],
)
def test_what_the_log_does_not_tell_is_not_established_and_a_cut_log_is_named(
    log: list[str], names: list[str], why: str
) -> None:
    case, found = of(ASKED, log)
    told = silent(case, found)
    assert list(told) == names
    assert all(reason.startswith(why) for reason in told.values())
    assert list(differences(case, found)) == []


def test_what_a_report_of_trtllm_bench_shows_is_established_without_the_log() -> None:
    case, found = of(ASKED, [], {"kv_cache_dtype": "FP8", "decoding_mode": "MTP"})
    assert list(silent(case, found)) == ["mtp.layers", "cuda_graphs", "attention_dp"]


def test_the_share_of_the_kv_cache_is_kept() -> None:
    assert of({}, [SHARE])[1].told == {"kv_cache_fraction": 0.8999999761581421}


@each("version", ["0.20.0", "1.0.0rc1", "1.0.0", "1.1.0rc6", "1.3.0rc3"])
def test_what_a_stand_in_prints_of_each_scenarios_own_file_is_in_force(
    version: str, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = release_numbers(version)
    well: Any = SimpleNamespace(numbers=numbers, fault_at=lambda _place: None)
    for case in documented_suite().scenarios:
        if case.engine.name != "tensorrt-llm" or case.workload is None:
            continue
        program = THROUGHPUT if case.workload.client == "trtllm-bench" else SERVE
        try:
            settings = programs.pinned(case, EngineBuild("tensorrt-llm", version, version), program)
            tree = llm_api_yaml.document(case, settings, release(version), program)
        except PerfgateError:  # the release cannot express it
            continue
        by_default = program == THROUGHPUT or numbers >= (1, 0)
        said = llm_api.resolved(well, tree, graphs_by_default=by_default)
        capsys.readouterr()
        llm_api.engine_starts("model", 8, 0.9, said)
        log = capsys.readouterr().out.splitlines()
        assert list(differences(case, resolved.effective_settings(case, {}, log))) == [], case.id
