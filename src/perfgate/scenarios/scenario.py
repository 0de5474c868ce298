"""Scenario: one documented workload as frozen values; `files` reads it from YAML.

The whole vocabulary of scenario files stands here, in their order, so that it is read in one go;
hence the length. It is the one source of it: `make reference` makes scenario.schema.json and the
lists of docs/reference/scenarios.md of the types here and of what is said of each field.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from perfgate.core.measurement import Json
from perfgate.core.plain import from_plain, to_plain
from perfgate.core.verdict import ControlPolicy


def _like(pattern: str, words: str, least: int | None = None) -> Meta:
    """The rule of texts that look so, of `least` characters; `words` say in messages how."""
    return Meta(pattern=pattern, min_length=least, extra_json_schema={"$comment": words})


# What fields hold: a type, and what of its values.
_PLAIN = "letters, digits, dots, hyphens and underscores"
_ID = "lower-case words joined by hyphens, e.g. b200-r1-max-throughput"
_IMAGE = "letters, digits and . _ / : @ # + -, or a <PLACEHOLDER>"
_FOLDER = "the name of one folder, not beginning with a hyphen"
GPUS = ("none", "A100", "H20", "H100", "H200", "B200", "GB200")

Text = Annotated[str, Meta(min_length=1)]
Id = Annotated[str, _like("^[a-z0-9]+(-[a-z0-9]+)*$", _ID)]
Url = Annotated[str, _like(r"^https?://[^\s]+$", "an address that starts with https:// or http://")]
Commit = Annotated[str, _like("^[0-9a-f]{7,40}$", "7 to 40 lower-case hex digits")]
FileName = Annotated[str, _like("^[A-Za-z0-9_%][A-Za-z0-9_.%-]*$", "a plain file name", 1)]
_HOST = _like(r"^[A-Za-z0-9:\[][A-Za-z0-9.:\[\]_%-]*$", "a host name or an address", 1)
_MARKER = _like("^[a-z][a-z0-9_]*$", "a lower-case word: letters, digits and underscores")
Marker = Annotated[str, _MARKER]
_VARIABLE = _like("^[A-Za-z_][A-Za-z0-9_]*$", "a variable name: letters, digits and underscores")
Variable = Annotated[str, _VARIABLE]
_PROGRAM = _like("^[A-Za-z0-9][A-Za-z0-9_.-]*$", "the name of a program, e.g. trtllm-serve")
Program = Annotated[str, _PROGRAM]
_WORD = Meta(extra_json_schema={"type": ["string", "number"], "minLength": 1})
Natural = Annotated[int, Meta(ge=0)]
Count = Annotated[int, Meta(ge=1)]
Positive = Annotated[float, Meta(gt=0)]
Fraction = Annotated[float, Meta(gt=0, lt=1)]
Share = Annotated[float, Meta(ge=0, le=1)]
Loss = Annotated[float, Meta(ge=0, lt=1)]
_SWEEP = Meta(extra_json_schema={"type": ["integer", "array"], "minimum": 1, "minItems": 1})
Words = Annotated[tuple[Annotated[str | int | float, _WORD], ...], Meta(min_length=1)]


@dataclass(frozen=True)
class Source:
    """Where a scenario is documented.

    Attributes:
        document: File or title of the document.
        section: Heading inside the document.
        url: Where to read it.
        engine_version: Engine release of the document; quote it.
        engine_commit: Engine commit of the documented numbers.
    """

    document: Text
    section: Text
    url: Url | None = None
    engine_version: Text | None = None
    engine_commit: Commit | None = None


@dataclass(frozen=True)
class Hardware:
    """What a scenario needs: GPU name ("none" for CPU only), GPUs in all, nodes.

    Attributes:
        gpu: GPU as documented; none: CPU only.
        gpus: GPUs over all nodes; 0 with gpu none.
        nodes: Nodes the GPUs are spread over evenly.
    """

    gpu: Annotated[str, Meta(extra_json_schema={"enum": GPUS})]
    gpus: Natural
    nodes: Count = 1

    @property
    def label(self) -> str:
        """Short name, used as folder of baselines: ``cpu``, ``8xB200``, ``2x4xGB200``."""
        if self.gpu == "none":
            return "cpu"
        if self.nodes == 1:
            return f"{self.gpus}x{self.gpu}"
        return f"{self.nodes}x{self.gpus // self.nodes}x{self.gpu}"


@dataclass(frozen=True)
class Weights:
    """What a complete folder of weights holds: number of safetensors shards, size in GiB.

    Attributes:
        shards: Safetensors files.
        gib: Size in GiB, as `ls` shows it.
    """

    shards: Count
    gib: Count


@dataclass(frozen=True)
class Model:
    """The model under test.

    Attributes:
        name: Public name, e.g. nvidia/DeepSeek-R1-0528-FP4.
        precision: Precision of the weights, e.g. fp8, nvfp4, q4_1.
        folder: Local folder in printed commands; default: the name's last part.
        weights: Content of a complete local folder; checked before a start.
        quantization: Required keys under quantization in a local folder's hf_quant_config.json,
            which must exist; none: the key is null, or missing.
    """

    name: Annotated[str, _like("^[^-]", "not beginning with a hyphen", 1)]
    precision: Text
    folder: Annotated[str, _like(r"^(?!\.{1,2}$)[^-/][^/]*$", _FOLDER, 1)] | None = None
    weights: Weights | None = None
    quantization: Mapping[str, Text] | None = None

    @property
    def other_folder(self) -> str | None:
        """`folder`, except where it is the last part of `name`: that names the same weights."""
        return None if self.folder == self.name.rpartition("/")[2] else self.folder


@dataclass(frozen=True)
class Mtp:
    """Multi-token prediction: number of draft layers (0: off).

    Attributes:
        layers: Draft layers; 0: off.
    """

    layers: Natural


@dataclass(frozen=True)
class CudaGraphs:
    """CUDA graph capture: padding and the batch sizes to capture.

    Attributes:
        enabled: Capture graphs.
        padding: Pad batches to the next captured size.
        batch_sizes: Batch sizes to capture, in the documented order.
        max_batch_size: Largest batch size to capture.
    """

    enabled: bool = True
    padding: bool | None = None
    batch_sizes: tuple[Count, ...] = ()
    max_batch_size: Count | None = None


@dataclass(frozen=True)
class MoeLoadBalancer:
    """Online expert balancing of wide expert parallelism: expert slots, layers moved a step.

    Attributes:
        num_slots: Expert slots over all GPUs.
        layer_updates_per_iter: Layers rebalanced in each step.
    """

    num_slots: Count
    layer_updates_per_iter: Natural


@dataclass(frozen=True)
class EngineSettings:
    """Engine-neutral settings; None leaves the engine's own default.

    Sizes are tokens or requests. `kv_cache_fraction` is of the GPU memory left after loading with
    TensorRT-LLM, of all of it with vLLM and SGLang. `dp` counts replicas, or with `attention_dp`
    the parts of the attention's data parallelism; `kv_cache_reuse` is the prefix cache.
    `slowed_percent` makes the embedded default slower on purpose, by so much of its own time.

    Attributes:
        tp: Tensor parallelism, in GPUs.
        pp: Pipeline parallelism, in stages; tp × pp = hardware.gpus.
        ep: Expert parallelism; divides tp.
        attention_dp: Data parallelism of the attention layers.
        max_batch_size: Most requests in a batch (per rank with attention_dp).
        max_num_tokens: Most tokens in a batch.
        max_seq_len: Most tokens of one request, input and output.
        kv_cache_fraction: KV cache's share of GPU memory.
        kv_cache_dtype: Data type of the KV cache, e.g. fp8.
        moe_backend: Expert kernels, e.g. CUTLASS, TRTLLM, DEEPGEMM, WIDEEP.
        moe_max_num_tokens: Most tokens of the experts at once.
        moe_load_balancer: Online balancing of experts over GPUs.
        attention_backend: Attention kernels, e.g. TRTLLM.
        mtp: Multi-token prediction.
        cuda_graphs: CUDA graph capture.
        chunked_context: Prefill long prompts in chunks.
        overlap_scheduler: Overlap scheduling with the GPUs' work.
        torch_compile: Compile the model with torch.compile.
        pdl: Programmatic dependent launch of kernels.
        stream_interval: Tokens between two streamed chunks.
        iteration_log: Log every iteration.
        trust_remote_code: Allow code that comes with the model.
        cpu_threads: Compute threads of a CPU engine.
        slowed_percent: Deliberate slowdown of the embedded default, in percent of its time.
        backend: Execution backend of the engine, e.g. pytorch.
        dp: Replicas; with attention_dp parts of the attention.
        kv_cache_reuse: Use the prefix cache.
        quantization: Quantization, e.g. fp8; default: the checkpoint's.
        seed: Seed of the engine.
    """

    tp: Count = 1
    pp: Count | None = None
    ep: Count | None = None
    attention_dp: bool | None = None
    max_batch_size: Count | None = None
    max_num_tokens: Count | None = None
    max_seq_len: Count | None = None
    kv_cache_fraction: Fraction | None = None
    kv_cache_dtype: Text | None = None
    moe_backend: Text | None = None
    moe_max_num_tokens: Count | None = None
    moe_load_balancer: MoeLoadBalancer | None = None
    attention_backend: Text | None = None
    mtp: Mtp | None = None
    cuda_graphs: CudaGraphs | None = None
    chunked_context: bool | None = None
    overlap_scheduler: bool | None = None
    torch_compile: bool | None = None
    pdl: bool | None = None
    stream_interval: Count | None = None
    iteration_log: bool | None = None
    trust_remote_code: bool | None = None
    cpu_threads: Count | None = None
    slowed_percent: Annotated[int, Meta(ge=1, le=500)] | None = None
    backend: Text | None = None
    dp: Count | None = None
    kv_cache_reuse: bool | None = None
    quantization: Text | None = None
    seed: Natural | None = None

    @property
    def stages(self) -> int:
        """Pipeline stages: one where the scenario leaves `pp` to the engine."""
        return self.pp or 1


@dataclass(frozen=True)
class EngineChoice:
    """The engine under test and how it is set.

    Attributes:
        name: Registered engine, e.g. tensorrt-llm, vllm, sglang, llama.cpp.
        settings: Engine-neutral settings; default: the engine's own.
        extra_yaml: Further keys of the engine's settings file, nested as there.
        extra_args: Program → list of further command-line words.
        inert: Setting → why the document's command does not put it in force.
        stubbed: Mocked parts; every number is then synthetic.
    """

    name: Text
    settings: EngineSettings = EngineSettings()
    extra_yaml: Annotated[Mapping[str, Any], Meta(min_length=1)] | None = None
    extra_args: Annotated[Mapping[Program, Words], Meta(min_length=1)] | None = None
    inert: Annotated[Mapping[str, Text], Meta(min_length=1)] | None = None
    stubbed: Text | None = None


@dataclass(frozen=True)
class Workload:
    """The load of one scenario; a sweep has one point per concurrency.

    A load that is not capped has all requests of its one point in flight at once: documented as
    concurrency -1, or by no limit at all. `input_tokens` tell one dataset from another.

    Attributes:
        client: Registered load client, e.g. trtllm-bench, aiperf.
        dataset: Kind of prompts.
        isl: Input tokens of a request; required for synthetic prompts.
        osl: Output tokens of a request; required for synthetic prompts.
        concurrency: Requests in flight; an ascending list is a sweep.
        requests_per_concurrency: Requests of a point per unit of concurrency.
        requests: Requests of each point.
        capped: Limit requests in flight; false: send all at once.
        warmup_per_concurrency: Warm-up requests of a point per unit of concurrency.
        warmup_requests: Warm-up requests of each point.
        streaming: Stream answers; TTFT, TPOT and ITL need it.
        ignore_eos: Make every answer exactly osl tokens.
        seed: Seed of the prompts; each sweep point adds an offset.
        max_request_rate: Refill rate of free slots, per second; default: at once.
        api: Endpoint of the requests.
        client_version: The document's release of the client.
        input_tokens: Tokens of all prompts, counted by the document's client.
    """

    client: Text
    dataset: Literal["synthetic", "real", "sharegpt"]
    isl: Count | None
    osl: Count | None
    concurrency: Annotated[tuple[Count, ...], _SWEEP]
    requests_per_concurrency: Count | None = None
    requests: Count | None = None
    capped: bool = True
    warmup_per_concurrency: Natural = 1
    warmup_requests: Natural | None = None
    streaming: bool = True
    ignore_eos: bool = True
    seed: Natural = 0
    max_request_rate: Positive | None = None
    api: Literal["completions", "chat"] = "completions"
    client_version: Text | None = None
    input_tokens: Count | None = None


@dataclass(frozen=True)
class LoadPoint:
    """One point of a sweep: what the client is asked to do on a running server."""

    concurrency: int
    requests: int
    warmup_requests: int
    seed: int
    capped: bool = True

    @property
    def label(self) -> str:
        """Short name in test ids, folders and reports, e.g. ``c4``."""
        return f"c{self.concurrency}"


@dataclass(frozen=True)
class AccuracyTask:
    """One evaluation of the served model.

    Attributes:
        evaluator: Registered evaluator, e.g. lm_eval.
        task: Name of the task, e.g. gsm8k.
        fewshot: Examples before each question.
        concurrency: Requests in flight.
        limit: Number of first questions; default: all.
        temperature: Sampling temperature.
        add_special_tokens: Let the tokenizer add BOS; default: the engine's.
        extra_body: Further fields of each request.
        batch_size: Questions in one request.
    """

    evaluator: Text
    task: Annotated[str, _like("^[A-Za-z0-9_][A-Za-z0-9_.-]*$", _PLAIN)]
    fewshot: Natural
    concurrency: Count = 1
    limit: Count | None = None
    temperature: Annotated[float, Meta(ge=0)] = 0.0
    add_special_tokens: bool | None = None
    extra_body: Mapping[str, bool | int | float | str] = field(default_factory=dict)
    batch_size: Count = 1


@dataclass(frozen=True)
class DocumentedAnswer:
    """What is known of the answer to one prompt.

    It is one of a first answer's; what is None is not looked at.

    Attributes:
        prompt: One of smoke.prompts.
        contains: Texts that the answer contains, at every release.
        texts: Whole answers; one is required at the document's release.
        finish_reason: Why a server's answer ends.
        prompt_tokens: The server's count of prompt tokens, with BOS.
        completion_tokens: The server's count of answer tokens.
    """

    prompt: Text
    contains: tuple[Text, ...] = ()
    texts: tuple[Text, ...] = ()
    finish_reason: Literal["length", "stop"] | None = None
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None


SERVED_SMOKE = "completion"  # the smoke client that asks the running server


@dataclass(frozen=True)
class Smoke:
    """One first answer: does the engine answer at all, before anything is measured?

    Attributes:
        client: completion: the server; else an offline client.
        prompts: Prompts to send.
        max_tokens: Most tokens of an answer; default: the program's.
        answers: Expected answers, at most one per prompt.
    """

    client: Text
    prompts: Annotated[tuple[Text, ...], Meta(min_length=1)]
    max_tokens: Count | None = None
    answers: tuple[DocumentedAnswer, ...] = ()

    @property
    def label(self) -> str:
        """Short name in test ids, folders and reports."""
        return "smoke"


Measurable = LoadPoint | AccuracyTask | Smoke  # what one probe of a scenario can be


@dataclass(frozen=True)
class Floor:
    """A headline claim that the metric must reach.

    It is at least (or at most, if lower is better) `value`.

    Attributes:
        metric: Canonical metric name.
        value: Worst value allowed, in the metric's unit.
        concurrency: Sweep point; default: the scenario.
    """

    metric: Text
    value: float
    concurrency: Count | None = None


@dataclass(frozen=True)
class DisturbanceLimits:
    """How much may disturb a measurement before it is not used; shares from 0 to 1.

    Attributes:
        others_cpu: Foreign processes' share of the usable cores.
        steal: CPU share that the hypervisor gave to others.
        cpu_clock: Lowest median clock of busy cores, as a share of the highest.
        slowdown: Share of samples with a GPU slowed by heat, power brake or a fault.
    """

    others_cpu: Share = 0.2
    steal: Share = 0.05
    cpu_clock: Share = 0.4
    slowdown: Share = 0.05


@dataclass(frozen=True)
class GatePolicy:
    """How the scenario is judged.

    A self reference is measured by `reference_starts` and kept in the machine's own store. With
    measured noise the spread that this machine showed decides, and widens the band where it must.
    `budget_s` counts the starts of all builds but those of a reference.

    Attributes:
        metrics: Gating metrics; others are reported.
        bands: Metric → loss that counts, a fraction (accuracy: absolute); default: the metric's.
        reference: stored: in baselines/; self: measured by this machine.
        reference_starts: Fresh starts of a self reference.
        blocks: Pairs of load blocks at one stream, on two running builds; an n-th at n, least 2. 0:
            whole loads.
        whole_load: Beside blocks: run the whole load on the first start, for metrics that only it
            reports.
        max_starts: Most fresh starts of the build under test.
        noise: prior: the family's prior pooled with the baseline's spread; measured: this machine's
            spread.
        budget_s: Seconds of starts after which none begins; default: no limit.
        disturbance: Limits beyond which a measurement is repeated.
        control: Start the baseline's build on a suspected loss. auto: if possible; required: else
            INCONCLUSIVE; none: never.
    """

    metrics: tuple[Text, ...]
    bands: Mapping[str, Fraction] = field(default_factory=dict)
    reference: Literal["stored", "self"] = "stored"
    reference_starts: Count = 5
    blocks: Natural = 0
    whole_load: bool = True
    max_starts: Count = 5
    noise: Literal["prior", "measured"] = "prior"
    budget_s: Positive | None = None
    disturbance: DisturbanceLimits = DisturbanceLimits()
    control: ControlPolicy = "auto"


@dataclass(frozen=True)
class Limits:
    """Time limits in seconds: until ready, without any output, and of one program in all.

    Attributes:
        start_s: Until the server is ready.
        silence_s: Without output of a running program.
        total_s: Of one program in total.
    """

    start_s: Positive
    silence_s: Positive
    total_s: Positive


@dataclass(frozen=True)
class Launch:
    """How the document starts the ranks of the engine, on one node or several.

    Attributes:
        by: Program that reaches the nodes.
        output: The document's log file or folder.
        ssh_port: Nodes' SSH port, for mpirun.
        time_limit: Limit of the Slurm job; quote it.
        pass_on: Variables that mpirun passes to every rank; quote values.
    """

    by: Literal["mpirun", "srun", "sbatch"]
    output: FileName | None = None
    ssh_port: Count | None = None
    time_limit: Annotated[str, _like("^[0-9]+:[0-9]{2}:[0-9]{2}$", "HH:MM:SS")] | None = None
    pass_on: Mapping[Variable, str] = field(default_factory=dict)

    @property
    def by_slurm(self) -> bool:
        """Whether the engine runs on nodes that Slurm chooses."""
        return self.by in ("srun", "sbatch")


@dataclass(frozen=True)
class Container:
    """The container that the document runs the engine in.

    Attributes:
        image: Image with its tag.
        name: Name of the container.
    """

    image: Annotated[str, _like("^[A-Za-z0-9/<][A-Za-z0-9._/:@#+<>-]*$", _IMAGE, 1)]
    name: Annotated[str, _like("^[A-Za-z0-9][A-Za-z0-9_.-]*$", _PLAIN, 1)] | None = None


@dataclass(frozen=True)
class Listen:
    """Where the document lets the server listen; a run of the suite chooses its own place.

    Attributes:
        host: Host name or address.
        port: TCP port.
    """

    host: Annotated[str, _HOST]
    port: Annotated[int, Meta(ge=1, le=65535)]


@dataclass(frozen=True)
class Claim:
    """What a document says about a result, or about two results of one session.

    `margin`, `minimum_effect` and `tolerance` are fractions (accuracy: absolute), the last a loss
    of the value. Minimum effects and tolerances are ours: where a document says "significant"
    without a number, and as it gives one number without a spread.

    Attributes:
        id: Unique name over all files.
        title: The statement, one line.
        source: Where it is documented.
        metric: Canonical metric name.
        scenario: Id of the scenario it speaks of.
        expect: better or worse than the other, or not_worse or not_better by more than margin.
        concurrency: Sweep point; left out: the only one.
        versus: Id of the scenario it is compared with; or give value.
        value: Number it must reach; or give versus.
        margin: Allowed loss (not_worse) or gain (not_better); default: the family's band.
        minimum_effect: Least gain for better.
        documented: Documented change: 0.076 is +7.6 %.
        tolerance: Accepted loss against the documented change.
    """

    id: Id
    title: Text
    source: Source
    metric: Text
    scenario: Text
    expect: Literal["better", "worse", "not_worse", "not_better"]
    concurrency: Count | None = None
    versus: Text | None = None
    value: Positive | None = None
    margin: Loss = 0.0
    minimum_effect: Loss = 0.0
    documented: Annotated[float, Meta(gt=-1)] | None = None
    tolerance: Loss = 0.0

    @property
    def sides(self) -> tuple[str, ...]:
        """Ids of the scenarios that it speaks of."""
        return (self.scenario,) if self.versus is None else (self.scenario, self.versus)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One documented workload: what to launch, on what, what it should reach, how it is judged.

    Attributes:
        id: Unique name over all files.
        title: One line for people.
        source: Where the scenario is documented.
        hardware: What the scenario needs.
        model: The model under test.
        engine: The engine under test and its settings.
        workload: The load; without it only accuracy is measured.
        accuracy: Evaluations of the served model.
        gate: How the scenario is judged.
        limits: Time limits, in seconds.
        environment: Environment variables of the engine; quote every value.
        smoke: One first answer, before anything is measured.
        launch: How ranks are started.
        container: The document's container.
        listen: The document's listening address; a run chooses its own.
        floors: Headline claims.
        markers: Further pytest markers, beside those of hardware and test kind.
        file: where it was read from.
    """

    id: Id
    title: Text
    source: Source
    hardware: Hardware
    model: Model
    engine: EngineChoice
    workload: Workload | None = None
    accuracy: tuple[AccuracyTask, ...] = ()
    gate: GatePolicy
    limits: Limits
    environment: Mapping[Variable, str] = field(default_factory=dict)
    smoke: Smoke | None = None
    launch: Launch | None = None
    container: Container | None = None
    listen: Listen | None = None
    floors: tuple[Floor, ...] = ()
    markers: tuple[Marker, ...] = ()
    file: Path | None = field(default=None, compare=False)

    @property
    def is_synthetic(self) -> bool:
        """Whether mock programs in its engine make its numbers, whatever runs it."""
        return self.engine.stubbed is not None

    def points(self) -> tuple[LoadPoint, ...]:
        """The sweep, from low to high concurrency; empty without a workload.

        Every point has its own seed, so that no point's prompts are in the prefix cache of the
        point before; an uncapped one is alone, and keeps the workload's. So does the only point of
        ShareGPT, whose conversations the seed chooses.
        """
        load = self.workload
        if load is None:
            return ()
        is_alone = len(load.concurrency) == 1 and load.dataset == "sharegpt"
        found = []
        for point in load.concurrency:
            requests = load.requests or (load.requests_per_concurrency or 1) * point
            warmup = load.warmup_requests
            warmup = load.warmup_per_concurrency * point if warmup is None else warmup
            seed = load.seed + (point if load.capped and not is_alone else 0)
            found.append(LoadPoint(point, requests, warmup, seed, load.capped))
        return tuple(found)

    def content_hash(self, what: Measurable | None = None) -> str:
        """What shapes any measurement of this scenario, as 16 hex digits of SHA-256.

        Titles, sources, documented values, the gate's policy, limits and markers may be edited
        without making stored baselines incomparable, so they are left out; so is what is only known
        of the document's own measurement.

        Args:
            what: the one thing that is measured: a sweep point, of which other points may come and
                go; a first answer, whatever is known of it; or an evaluation, whose score neither
                the load nor its concurrency shapes.
        """
        load = self.workload and replace(self.workload, client_version=None, input_tokens=None)
        if isinstance(what, LoadPoint):
            load = load and replace(load, concurrency=(), requests=None, seed=0)
            return self._hash(load and replace(load, requests_per_concurrency=None), what)
        if isinstance(what, Smoke):
            return self._hash(replace(what, answers=()))
        if isinstance(what, AccuracyTask):
            return self._hash(replace(what, concurrency=1))
        return self._hash(load, self.accuracy)

    def _hash(self, *parts: object) -> str:
        # One stage measures the same, said or not; so does the folder that a model has anyway.
        settings = self.engine.settings
        engine = replace(self.engine, settings=replace(settings, pp=settings.stages), inert=None)
        model = replace(self.model, folder=self.model.other_folder)
        return content_hash(self.hardware, model, engine, self.environment, *parts)


def scenario_from_plain(plain: Mapping[str, Any], file: Path | None = None) -> Scenario:
    """The scenario of plain values that fit the schema and have their defaults merged in.

    A sweep of one point may be written without a list, and a load without lengths, of which every
    reader must say what they are.
    """
    load = plain.get("workload")
    if load is not None:
        load = {"isl": None, "osl": None, **load}
        if isinstance(load["concurrency"], int):
            load["concurrency"] = [load["concurrency"]]
    return replace(from_plain(Scenario, {**plain, "workload": load}), file=file)


def scenario_to_plain(scenario: Scenario) -> dict[str, Json]:
    """The scenario as a scenario file has it, with its content hash.

    All defaults are written out; what is left to the engine is left out. Without `content_hash` it
    can stand in a scenario file and gives an equal scenario.
    """
    plain: dict[str, Json] = to_plain(replace(scenario, file=None), leave_out_none=True)
    plain["content_hash"] = scenario.content_hash()
    return plain


def content_hash(*parts: object) -> str:
    """16 hex digits of the SHA-256 of `parts`, which are dataclasses and plain values.

    What is not set is left out, so that a field added later keeps the hashes of stored baselines.

    Raises:
        TypeError: a part has a value that JSON does not know.
    """
    plain = to_plain(parts, leave_out_none=True)
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
