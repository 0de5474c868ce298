"""A valid scenario of any engine, with what a test is about; values of each setting."""

from typing import Any

from perfgate.scenarios.scenario import (
    CudaGraphs,
    EngineChoice,
    EngineSettings,
    GatePolicy,
    Hardware,
    Limits,
    Model,
    MoeLoadBalancer,
    Mtp,
    Scenario,
    Source,
)

# Of each setting, whatever engine honours it.
VALUES: dict[str, tuple[Any, ...]] = {
    "tp": (4,),
    "pp": (2,),
    "ep": (1, 4, 8),
    "dp": (2,),
    "attention_dp": (True, False),
    "max_batch_size": (64,),
    "max_num_tokens": (512, 4096),
    "max_seq_len": (4096,),
    "kv_cache_fraction": (0.5,),
    "kv_cache_dtype": ("fp8", "auto", "fp8_e4m3"),
    "kv_cache_reuse": (True, False),
    "moe_backend": ("TRTLLM", "DEEPGEMM", "deep_gemm", "triton"),
    "moe_max_num_tokens": (4096,),
    "moe_load_balancer": (MoeLoadBalancer(288, 1),),
    "attention_backend": ("FLASHINFER", "fa3"),
    "mtp": (Mtp(2), Mtp(0)),
    "cuda_graphs": (
        CudaGraphs(),
        CudaGraphs(enabled=False),
        CudaGraphs(enabled=False, padding=True),
        CudaGraphs(padding=False),
        CudaGraphs(batch_sizes=(1,)),
        CudaGraphs(batch_sizes=(1, 8)),
        CudaGraphs(batch_sizes=(1,), max_batch_size=8),
        CudaGraphs(max_batch_size=8),
    ),
    "chunked_context": (True, False),
    "overlap_scheduler": (True, False),
    "torch_compile": (True, False),
    "pdl": (True, False),
    "stream_interval": (10,),
    "iteration_log": (True, False),
    "trust_remote_code": (True, False),
    "cpu_threads": (2,),
    "slowed_percent": (15,),
    "backend": ("pytorch", "tensorrt", "_autodeploy"),
    "quantization": ("fp8", "fp7"),
    "seed": (0, 1),
}


def made(engine: str, settings: EngineSettings, release: str | None, **more: Any) -> Scenario:
    """A scenario of an engine, documented at a release, on eight H200 unless told otherwise."""
    extra = [more.pop(name, None) for name in ("extra_yaml", "extra_args", "inert")]
    values: dict[str, Any] = {
        "id": "case",
        "title": "case",
        "hardware": Hardware("H200", 8),
        "model": Model("deepseek-ai/DeepSeek-R1-0528", "fp8"),
        "workload": None,
        "accuracy": (),
        **more,
    }
    return Scenario(
        source=Source("document.md", "section", engine_version=release),
        engine=EngineChoice(engine, settings, *extra),
        gate=GatePolicy(("output_throughput",)),
        limits=Limits(60.0, 60.0, 60.0),
        **values,
    )
