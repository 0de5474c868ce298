"""TensorRT-LLM 1.3: first candidates, and from rc11 on with MTP's `max_draft_len`.

Sources: #11487 (`--kv_cache_dtype` of the server), #12341 (MTP: opened on 2026-03-19, five days
before 1.3.0rc10 began and twelve before rc11 did; that rc11 is the first with it is inferred),
#15918 and #16369 (the TensorRT backend is gone), documentation pages of 1.3.0rc26.
"""

from dataclasses import replace

from perfgate.engines.tensorrt_llm.releases.table import BENCH, BUILD, PREPARE, SERVE, flag, options
from perfgate.engines.tensorrt_llm.releases.v1_2 import SERVE_1_2, V1_2

V1_3 = replace(
    V1_2,
    since="1.3.0rc0",
    programs={**V1_2.programs, SERVE: {**SERVE_1_2, **options("--kv_cache_dtype")}},
)

V1_3_RC11 = replace(
    V1_3,
    since="1.3.0rc11",
    spelling=replace(V1_3.spelling, mtp_layers="max_draft_len"),
    yaml_keys={
        **V1_3.yaml_keys,
        "speculative_config": {
            "decoding_type": None,
            "max_draft_len": None,
            "use_relaxed_acceptance_for_thinking": None,
            "relaxed_topk": None,
            "relaxed_delta": None,
        },
    },
)

V1_3_RC24 = replace(
    V1_3_RC11,
    since="1.3.0rc24",
    programs={
        **{name: table for name, table in V1_3_RC11.programs.items() if name != BUILD},
        BENCH: {
            **V1_3_RC11.programs[BENCH],
            **options(flag("--telemetry", negation="--no-telemetry")),
        },
        SERVE: {**V1_3_RC11.programs[SERVE], **options("--kv-connector", "--report_addr")},
        PREPARE: {**V1_3_RC11.programs[PREPARE], **options(flag("--stdout"))},
    },
    bench_backends=frozenset({"pytorch", "_autodeploy"}),
    serve_backends=frozenset({"pytorch", "_autodeploy"}),
)
