"""Expected results of a scenario: documented values, and what to make up for the rest.

What is made up follows what the documents say of settings: MTP speeds up the single request,
chunked context lowers the time per token, a smaller chunk that and the throughput; an 8-bit KV
cache, DeepGEMM, and that compiled by NVCC raise the throughput; batches without padding lower it,
and a BOS before the prompt the score. How much is invented.
"""

import math
from collections.abc import Mapping

from perfgate.core.metrics import is_accuracy
from perfgate.rehearsal.playbook import ScenarioPart
from perfgate.rehearsal.synthetic_metrics import Guess
from perfgate.scenarios.documented import DocumentedValue, documented_values
from perfgate.scenarios.scenario import Scenario

# GPU → (output tokens/s of a single request, requests in flight per GPU that halve it).
_SPEEDS = {"H200": (70.0, 24.0), "B200": (110.0, 40.0), "GB200": (115.0, 44.0)}
_ANY_GPU = (60.0, 20.0)
_FP8_SHARE = 0.8  # of the speed with 4-bit weights, on GPUs that have them
# Tokens a step with so many draft layers. Source of the order of magnitude: 2.4 with three layers,
# TensorRT-LLM's blog on MTP.
_TOKENS_PER_STEP = {0: 1.0, 1: 1.8, 2: 2.2, 3: 2.45}
_SHAREGPT = (219.171, 200.813)  # ISL and OSL, GPUStack H200 lab, "Choosing the Inference Engine"
_QUESTIONS = {"gsm8k": 1319, "gpqa_diamond": 198}
_SCORES = {"gsm8k": 0.95, "gpqa_diamond": 0.68}
_SCORE_WITH_8_BIT_KV = -0.001  # "drop less than 1%", DeepSeek-V3 example, "FP8 KV Cache and MLA"
_SCORE_WITH_BOS = -0.04  # "leads to accuracy regression", quick start recipe
_AROUND = ", says a mock program of perfgate"


def scenario_part(scenario: Scenario, release: str, imitated: str | None = None) -> ScenarioPart:
    """The part of playbook.json that is about this scenario.

    Args:
        scenario: the scenario.
        release: to imitate where its document names none.
        imitated: to imitate whatever its document says; None: as the document says.

    Raises:
        SeveralInputErrors: its documented values are not as they should be.
    """
    documented = documented_values(scenario)
    values = documented.values if documented else {}
    isl, osl = _lengths(scenario, values)
    return ScenarioPart(
        engine=scenario.engine.name,
        engine_version=imitated or scenario.source.engine_version or release,
        client_version=(scenario.workload and scenario.workload.client_version) or "",
        gpu=scenario.hardware.gpu,
        gpus=scenario.hardware.gpus,
        isl=isl,
        osl=osl,
        guess=_guess(scenario),
        documented=_documented(scenario, values),
        questions={one.task: _QUESTIONS.get(one.task, 200) for one in scenario.accuracy},
        common_score=_common_score(scenario),
        replies=_replies(scenario),
    )


def _lengths(scenario: Scenario, values: Mapping[str, DocumentedValue]) -> tuple[float, float]:
    """Mean input and output tokens of a request: as documented, else as asked."""
    load = scenario.workload
    if load is None:
        return 1024.0, 1024.0
    isl, osl = float(load.isl or _SHAREGPT[0]), float(load.osl or _SHAREGPT[1])
    if load.input_tokens is not None:
        requests = scenario.points()[0].requests
        isl = load.input_tokens / requests
        if load.osl is None and {"output_throughput", "duration_s"} <= values.keys():
            osl = values["output_throughput"].value * values["duration_s"].value / requests
    return isl, osl


def _documented(
    scenario: Scenario, values: Mapping[str, DocumentedValue]
) -> dict[str, dict[str, float]]:
    """Label of a point, or task → what the document says of it."""
    found = {}
    for point in scenario.points():
        found[point.label] = {
            name: value.value
            for name, value in values.items()
            if not is_accuracy(name) and value.concurrency in (None, point.concurrency)
        }
    for task in (one.task for one in scenario.accuracy):
        scores = (name for name in values if name.startswith(f"accuracy:{task}:"))
        found[task] = {name: values[name].value for name in scores}
    return found


def _common_score(scenario: Scenario) -> float:
    task = scenario.accuracy[0].task if scenario.accuracy else ""
    score = _SCORES.get(task, 0.9) + (_SCORE_WITH_8_BIT_KV if _has_8_bit_kv(scenario) else 0.0)
    with_bos = any(one.add_special_tokens for one in scenario.accuracy)
    return score + (_SCORE_WITH_BOS if with_bos else 0.0)


def _replies(scenario: Scenario) -> dict[str, str]:
    """Documented answers, of several the first; where only parts are known, words around them."""
    return {
        one.prompt: one.texts[0] if one.texts else f"{', '.join(one.contains)}{_AROUND}"
        for one in (scenario.smoke.answers if scenario.smoke else ())
        if one.texts or one.contains
    }


def _guess(scenario: Scenario) -> Guess:
    speed, knee = _SPEEDS.get(scenario.hardware.gpu, _ANY_GPU)
    if scenario.hardware.gpu != "H200" and "4" not in scenario.model.precision:
        speed *= _FP8_SHARE
    settings = scenario.engine.settings
    tokens = _TOKENS_PER_STEP.get(settings.mtp.layers if settings.mtp else 0, 2.6)
    load, chunk = scenario.workload, settings.max_num_tokens
    is_cut = load is not None and chunk is not None and chunk < (load.isl or 0)
    graphs, environment = settings.cuda_graphs, scenario.environment
    is_without_gemm = environment.get("TRTLLM_DG_ENABLED") == "0"
    # Whether it holds, and what it does to the throughput and to the time per token.
    effects = (
        (settings.chunked_context, 1.0, 0.94),
        (settings.chunked_context and is_cut, 0.93, 0.84),
        (graphs is not None and graphs.padding is False, 0.85, 1.0),
        (_has_8_bit_kv(scenario), 1.08, 1.0),
        (is_without_gemm, 0.85, 1.0),
        (not is_without_gemm and environment.get("TRTLLM_DG_JIT_USE_NVCC") == "1", 1.03, 1.0),
    )
    return Guess(
        user_speed=speed * tokens**0.85,  # drafting takes a part of what it gains
        knee=knee * max(1, scenario.hardware.gpus),
        throughput=math.prod((more for holds, more, _ in effects if holds), start=1.0),
        tpot=math.prod((longer for holds, _, longer in effects if holds), start=1.0),
        tokens_per_step=tokens,
    )


def _has_8_bit_kv(scenario: Scenario) -> bool:
    said = scenario.engine.settings.kv_cache_dtype
    if said is None and scenario.model.quantization:
        said = scenario.model.quantization.get("kv_cache_quant_algo")
    return (said or "").lower().startswith("fp8")
