"""What a scenario must keep beyond its schema; each rule is broken on a line that is told."""

from dataclasses import replace

from building import SCENARIO
from tables import each
from written_files import Change, Write, assert_told, changed, errors_of

from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.rules.scenario_rules import broken_rules, obeyed_on_the_way
from perfgate.scenarios.scenario import Launch

GOOD = """\
schema_version: 1
scenarios:
  - id: b200-r1-sweep
    title: R1 on eight B200
    source: {document: Best practice, section: Serving}
    hardware: {gpu: B200, gpus: 8, nodes: 1}
    model: {name: nvidia/DeepSeek-R1-FP4, precision: nvfp4}
    engine:
      name: tensorrt-llm
      settings: {tp: 8, pp: 1, ep: 4, max_seq_len: 3072}
    workload: {client: benchmark_serving, dataset: synthetic, isl: 1024, osl: 2048,
               concurrency: [1, 64], requests_per_concurrency: 5}
    accuracy:
      - {evaluator: lm_eval, task: gsm8k, fewshot: 5}
    floors:
      - {metric: output_throughput, value: 1000, concurrency: 64}
      - {metric: output_speed_per_user, value: 250, concurrency: 1}
    gate:
      metrics:
        - output_throughput
        - ttft_mean_ms
      bands:
        ttft_mean_ms: 0.2
    limits: {start_s: 60, silence_s: 120, total_s: 600}
    markers:
      - serving
"""
WITHOUT_GPUS = [("gpu: B200", "gpu: none"), ("gpus: 8", "gpus: 0"), ("ep: 4", "ep: 1")]
WITHOUT_WORKLOAD = [
    (GOOD[GOOD.index("    workload:") : GOOD.index("    accuracy:")], ""),
    (GOOD[GOOD.index("    floors:") : GOOD.index("    gate:")], ""),
]
WITHOUT_ACCURACY = [(GOOD[GOOD.index("    accuracy:") : GOOD.index("    floors:")], "")]
GATES = GOOD[GOOD.index("        - output_") : GOOD.index("    limits:")]
GSM8K = "{evaluator: lm_eval, task: gsm8k, fewshot: 0}"
SMOKE = ("    gate:", "    smoke: {client: completion, prompts: [Where is New York?]}\n    gate:")


def engine(line: str) -> Change:
    return "name: tensorrt-llm", f"name: tensorrt-llm\n      {line}"


def load(line: str) -> Change:
    return "osl: 2048", f"osl: 2048, {line}"


def smoke(answer: str, client: str = "completion") -> Change:
    asked = f"client: {client}, prompts: [Who?], max_tokens: 16"
    return "eight B200", f"eight B200\n    smoke: {{{asked}, answers: [{{{answer}}}]}}"


# All that can be said of an answer, of no release.
SAID = "prompt: Who?, contains: [I], finish_reason: length, prompt_tokens: 6, completion_tokens: 16"
ONE_POINT = [("concurrency: [1, 64]", "concurrency: 64"), (", concurrency: 1}", "}")]
UNSTREAMED = load("streaming: false")
PAIRED = "reference: self\n      noise: measured\n      "

# Field, words, changes: the first one on the line that is told.
BROKEN: list[tuple[str, str, list[Change]]] = [
    ("environment.LD_PRELOAD", "programs on the way to the engine obey it",
     [("id: b200-r1-sweep", "id: b200-r1-sweep\n    environment: {LD_PRELOAD: x}")]),
    ("engine.inert.dp", "not a setting of this scenario", [engine("inert: {dp: why}")]),
    ("engine.extra_yaml.a.b", "fix: take the key out", [engine("extra_yaml: {a: {b: null}}")]),
    ("engine.extra_yaml.a.b", "without dots", [engine("extra_yaml: {a.b: 1}")]),
    ("engine.extra_args.serve[0]", "without its option", [engine("extra_args: {serve: [4]}")]),
    ("engine.extra_args.serve[0]", "long name", [engine("extra_args: {serve: [-x]}")]),
    ("engine.extra_args.serve[0]", "write [--x, 4]", [engine("extra_args: {serve: ['--x 4']}")]),
    ("engine.extra_args.serve[2]", "option given twice",
     [engine("extra_args: {serve: [--a_b, 1, --a-b, 2]}")]),
    ("engine.extra_args.serve[0]", "one of --workers and engine.extra_yaml.workers",
     [engine("extra_args: {serve: [--workers, 4]}"), engine("extra_yaml: {workers: 1}")]),
    ("", "nothing to measure",
     [("id: b200-r1-sweep", "id: b200-r1-sweep"), *WITHOUT_WORKLOAD, *WITHOUT_ACCURACY,
      (GATES, "        - output_throughput\n")]),
    ("hardware.gpus", "0, as gpu is none",
     [("gpus: 8", "gpus: 8"), ("gpu: B200", "gpu: none"), ("- serving", "- cpu")]),
    ("hardware.gpus", "no B200 requested",
     [("gpus: 8", "gpus: 0"), ("tp: 8", "tp: 1"), ("ep: 4", "ep: 1")]),
    ("hardware.nodes", "8 GPUs on 3 nodes", [("nodes: 1", "nodes: 3")]),
    ("engine.settings.tp", "tp 4 × pp 1 = 4", [("tp: 8", "tp: 4")]),
    ("engine.settings.tp", "tp = pp = 1 without GPUs", [("tp: 8", "tp: 2"), *WITHOUT_GPUS]),
    ("engine.settings.pp", "tp = pp = 1 without GPUs",
     [("pp: 1", "pp: 2"), ("tp: 8", "tp: 1"), *WITHOUT_GPUS]),
    ("engine.settings.ep", "one of 1, 2, 4, 8", [("ep: 4", "ep: 3")]),
    ("engine.settings.ep", "one of 1, 2, 4, 8", [("ep: 4", "ep: 16")]),
    ("workload.concurrency", "expected: [1, 8, 64]", [("[1, 64]", "[64, 8, 1]")]),
    ("workload.concurrency", "sweep names a point twice", [("[1, 64]", "[1, 64, 64]")]),
    ("workload", "requests_per_concurrency or requests",
     [("workload:", "workload:"), (", requests_per_concurrency: 5", "")]),
    ("workload.requests", "given twice", [load("requests: 640")]),
    ("workload.requests", "at least 64", [("requests_per_concurrency: 5", "requests: 63")]),
    ("workload.isl", "missing", [("workload:", "workload:"), (" isl: 1024,", "")]),
    ("engine.settings.max_seq_len", "isl 1024 + osl 2048 = 3072", [("len: 3072", "len: 3071")]),
    ("gate.metrics[1]", "did you mean ttft_mean_ms?", [("- ttft_mean_ms", "- ttft_maen_ms")]),
    ("gate.bands.ttft_avg", "unknown metric", [("ttft_mean_ms: 0.2", "ttft_avg: 0.2")]),
    ("floors[1].metric", "unknown metric", [("metric: output_speed_per_user", "metric: speed")]),
    ("gate.metrics[1]", "does not exist without streaming",
     [("- ttft_mean_ms", "- ttft_mean_ms"), UNSTREAMED]),
    ("floors[1].metric", "does not exist without streaming",
     [("metric: output_speed_per_user", "metric: output_speed_per_user"), UNSTREAMED]),
    ("gate.metrics[0]", "metric needs a workload",
     [("- output_throughput", "- output_throughput"), *WITHOUT_WORKLOAD]),
    ("gate.metrics[0]", "accuracy:<task>:… of gsm8k",
     [("- output_throughput", "- accuracy:gpqa:exact_match:none")]),
    ("accuracy[1].task", "declared twice", [("fewshot: 5}", "fewshot: 5}\n      - " + GSM8K)]),
    ("floors[0].concurrency", "not a point of the sweep\n  found: 32\n  expected: 1, 64",
     [("concurrency: 64}", "concurrency: 32}")]),
    ("floors[0].concurrency", "a score has no sweep point",
     [("concurrency: 64}", "concurrency: 64}"),
      ("{metric: output_throughput", "{metric: accuracy:gsm8k:exact_match:strict-match")]),
    ("gate.metrics[2]", "metric named twice",
     [("- ttft_mean_ms", "- ttft_mean_ms\n        - output_throughput")]),
    ("gate.metrics[0]", "gate.bands, e.g. ttft_p99_ms: 0.25",
     [("- output_throughput", "- ttft_p99_ms")]),
    ("gate.bands.duration_s", "output_throughput, ttft_mean_ms",
     [("ttft_mean_ms: 0.2", "ttft_mean_ms: 0.2\n        duration_s: 0.1")]),
    ("gate.metrics", "nothing gates", [("      metrics:\n", "      metrics: []\n"), (GATES, "")]),
    ("gate.metrics[0]", "metric needs a workload",
     [(GATES, "        - output_throughput\n"), *WITHOUT_WORKLOAD, *WITHOUT_ACCURACY, SMOKE]),
    ("workload.concurrency", "concurrency 64, 320 requests\n  expected: concurrency 320",
     [*ONE_POINT, ("requests_per_concurrency: 5", "requests: 320, capped: false")]),
    ("workload.concurrency", "a load without a cap has one point",
     [("[1, 64]", "[1, 64]"), load("capped: false"), ("concurrency: 5", "concurrency: 1")]),
    ("workload.input_tokens", "the points of a sweep have prompts of their own",
     [load("input_tokens: 9000")]),
    ("launch.pass_on.TRTLLM_DG_ENABLED", "found: '0', environment has '1'",
     [("eight B200", 'eight B200\n    launch: {by: mpirun, pass_on: {TRTLLM_DG_ENABLED: "0"}}'),
      ("- id: b200-r1-sweep", '- id: b200-r1-sweep\n    environment: {TRTLLM_DG_ENABLED: "1"}')]),
    ("smoke.answers[0].prompt", "not asked", [smoke("prompt: Where?")]),
    ("smoke.answers[1].prompt", "two answers to one prompt", [smoke(f"{SAID}}}, {{{SAID}")]),
    ("smoke.answers[0]", "nothing said of the answer", [smoke("prompt: Who?")]),
    ("smoke.answers[0].texts", "no release", [smoke("prompt: Who?, texts: [I am]")]),
    ("smoke.answers[0].finish_reason", "only a server tells", [smoke(SAID, "other")]),
    ("smoke.answers[0].prompt_tokens", "only a server tells", [smoke(SAID, "other")]),
    ("smoke.answers[0].completion_tokens", "only a server tells", [smoke(SAID, "other")]),
    ("smoke.answers[0].completion_tokens", "more tokens than are requested",
     [smoke(SAID.replace("16", "17"))]),
    ("limits.total_s", "at least 120", [("total_s: 600", "total_s: 100")]),
    ("gate.reference_starts", "3 or more",
     [("    gate:", f"    gate:\n      {PAIRED}max_starts: 4\n      reference_starts: 2")]),
    ("gate.max_starts", "4 or more", [("    gate:", f"    gate:\n      {PAIRED}max_starts: 3")]),
    ("gate.blocks", "noise: measured beside it", [("    gate:", "    gate:\n      blocks: 4")]),
    ("gate.whole_load", "blocks beside it", [("    gate:", "    gate:\n      whole_load: false")]),
    ("markers[0]", "b200, which is added by itself", [("- serving", "- h200")]),
]  # fmt: skip


@each(("field", "words", "changes"), BROKEN)
def test_a_broken_rule_is_told_with_file_line_and_field(
    field: str, words: str, changes: list[Change], write: Write
) -> None:
    text, line = changed(GOOD, *changes)
    assert_told(write(text), line, f"scenarios[0].{field}".rstrip(".") + ": ", words)


SCORE = "accuracy:gsm8k:exact_match:strict-match"


@each(
    "changes",
    [
        [],
        ONE_POINT,
        [("requests_per_concurrency: 5", "requests: 64")],
        [("ep: 4", "ep: 8")],
        [("nodes: 1", "nodes: 2")],
        [("tp: 8", "tp: 4"), ("pp: 1", "pp: 2")],
        [("max_seq_len: 3072", "max_batch_size: 8")],
        [("ttft_mean_ms: 0.2", "output_throughput: 0.1")],
        WITHOUT_ACCURACY,
        [("- serving", "- b200")],
        [*ONE_POINT, ("requests_per_concurrency: 5", "requests: 64, capped: false")],
        [smoke(f"{SAID}, texts: [I am]"), ("section: Serving", "section: A, engine_version: '1'")],
        [*WITHOUT_WORKLOAD, *WITHOUT_ACCURACY, SMOKE, ("metrics:\n" + GATES, "metrics: []\n")],
        [*WITHOUT_WORKLOAD, (GATES, f"        - {SCORE}\n")],
    ],
)
def test_what_keeps_the_rules_is_let_through(changes: list[Change], write: Write) -> None:
    assert len(load_scenarios(write(changed(GOOD, *changes)[0]))) == 1


def test_all_broken_rules_of_a_scenario_are_told_at_once(write: Write) -> None:
    text, _ = changed(GOOD, ("ep: 4", "ep: 3"), ("nodes: 1", "nodes: 3"), ("600", "100"))
    assert [error.field for error in errors_of(write(text))] == [
        "scenarios[0].hardware.nodes",
        "scenarios[0].engine.settings.ep",
        "scenarios[0].limits.total_s",
    ]


# Variables that a scenario may not set: programs between perfgate and the engine obey them.
OBEYED = """
PATH HOME IFS BASH_ENV ENV PS4 SHELLOPTS LD_PRELOAD LD_LIBRARY_PATH PYTHONPATH PYTHONSTARTUP
DOCKER_HOST SLURM_CONF SBATCH_EXPORT OMPI_MCA_plm_rsh_agent PERFGATE_PROGRAM_DOCKER SSH_ASKPASS
http_proxy HTTPS_PROXY
"""
OF_THE_ENGINE = """
TRTLLM_DG_ENABLED NCCL_DEBUG CUDA_HOME PYTORCH_CUDA_ALLOC_CONF PYTHONUNBUFFERED OMP_NUM_THREADS
HF_HOME UCX_TLS MY_SWITCH PATHS ENVIRONMENT
"""


VARIABLES = dict.fromkeys(OBEYED.split(), True) | dict.fromkeys(OF_THE_ENGINE.split(), False)


@each(("name", "is_obeyed"), VARIABLES.items())
def test_what_is_obeyed_on_the_way_is_refused(name: str, is_obeyed: bool) -> None:
    assert obeyed_on_the_way(name) is is_obeyed
    own = replace(SCENARIO, environment={name: "x"})
    handed = replace(SCENARIO, launch=Launch("mpirun", pass_on={name: "x"}))
    told = [problem.path for one in (own, handed) for problem in broken_rules(one)]
    paths = [("environment", name), ("launch", "pass_on", name)]
    assert told == (paths if is_obeyed else [])
