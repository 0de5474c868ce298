"""Scenario: one documented workload as frozen values; `files` reads it from YAML.

The whole vocabulary of scenario files stands here, in their order, so that it is read in one go;
hence the length.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from perfgate.core.plain import to_plain
from perfgate.core.rule import ControlPolicy


@dataclass(frozen=True)
class Source:
    """Where a scenario is documented."""

    document: str
    section: str
    url: str | None = None
    engine_version: str | None = None
    engine_commit: str | None = None


@dataclass(frozen=True)
class Hardware:
    """What a scenario needs: GPU name ("none" for CPU only), GPUs in all, nodes."""

    gpu: str
    gpus: int
    nodes: int = 1

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
    """What a complete folder of weights holds: number of safetensors shards, size in GiB."""

    shards: int
    gib: int


@dataclass(frozen=True)
class Model:
    """The model under test.

    Attributes:
        name: public name, ``organisation/model``.
        precision: precision of its weights: ``fp8``, ``nvfp4``, …
        folder: name of its local folder, which commands on paper have; None: the last part of
            `name`, and on paper none.
        weights: what a complete local folder holds, as documented.
        quantization: keys that ``hf_quant_config.json`` of a local folder must have under
            ``quantization``, ``none`` for null or no such key; with `folder` there must be one.
    """

    name: str
    precision: str
    folder: str | None = None
    weights: Weights | None = None
    quantization: Mapping[str, str] | None = None

    @property
    def other_folder(self) -> str | None:
        """`folder`, except where it is the last part of `name`: that names the same weights."""
        return None if self.folder == self.name.rpartition("/")[2] else self.folder


@dataclass(frozen=True)
class Mtp:
    """Multi-token prediction: number of draft layers (0: off)."""

    layers: int


@dataclass(frozen=True)
class CudaGraphs:
    """CUDA graph capture: padding and the batch sizes to capture."""

    enabled: bool = True
    padding: bool | None = None
    batch_sizes: tuple[int, ...] = ()
    max_batch_size: int | None = None


@dataclass(frozen=True)
class MoeLoadBalancer:
    """Online expert balancing of wide expert parallelism: expert slots, layers moved a step."""

    num_slots: int
    layer_updates_per_iter: int


@dataclass(frozen=True)
class EngineSettings:
    """Engine-neutral settings; None leaves the engine's own default.

    Sizes are tokens or requests. `kv_cache_fraction` is of the GPU memory left after loading with
    TensorRT-LLM, of all of it with vLLM and SGLang. `dp` counts replicas, or with `attention_dp`
    the parts of the attention's data parallelism; `kv_cache_reuse` is the prefix cache.
    `slowed_percent` makes the embedded default slower on purpose, by so much of its own time.
    """

    tp: int = 1
    pp: int | None = None
    ep: int | None = None
    attention_dp: bool | None = None
    max_batch_size: int | None = None
    max_num_tokens: int | None = None
    max_seq_len: int | None = None
    kv_cache_fraction: float | None = None
    kv_cache_dtype: str | None = None
    moe_backend: str | None = None
    moe_max_num_tokens: int | None = None
    moe_load_balancer: MoeLoadBalancer | None = None
    attention_backend: str | None = None
    mtp: Mtp | None = None
    cuda_graphs: CudaGraphs | None = None
    chunked_context: bool | None = None
    overlap_scheduler: bool | None = None
    torch_compile: bool | None = None
    pdl: bool | None = None
    stream_interval: int | None = None
    iteration_log: bool | None = None
    trust_remote_code: bool | None = None
    cpu_threads: int | None = None
    slowed_percent: int | None = None
    backend: str | None = None
    dp: int | None = None
    kv_cache_reuse: bool | None = None
    quantization: str | None = None
    seed: int | None = None

    @property
    def stages(self) -> int:
        """Pipeline stages: one where the scenario leaves `pp` to the engine."""
        return self.pp or 1


@dataclass(frozen=True)
class EngineChoice:
    """The engine under test and how it is set.

    Attributes:
        name: the registered engine.
        settings: what the vocabulary has words for.
        extra_yaml: further keys of the engine's own settings file, nested as there.
        extra_args: program → further options of its command line, as words.
        inert: setting → why it is known not to be in force with the document's own command line,
            which is rendered nonetheless; None: every setting must be in force.
        stubbed: which parts of the engine are mocks, so that its numbers are synthetic; None:
            all of it is real.
    """

    name: str
    settings: EngineSettings = EngineSettings()
    extra_yaml: Mapping[str, Any] | None = None
    extra_args: Mapping[str, tuple[str | int | float, ...]] | None = None
    inert: Mapping[str, str] | None = None
    stubbed: str | None = None


@dataclass(frozen=True)
class Workload:
    """The load of one scenario; a sweep has one point per concurrency.

    Attributes:
        client: name of the load client.
        dataset: kind of prompts.
        isl: input tokens of each request.
        osl: output tokens of each request.
        concurrency: requests in flight, ascending, one sweep point each.
        requests_per_concurrency: requests of a point = this × its concurrency …
        requests: … unless this gives the number outright.
        capped: whether the client holds requests back; False: all requests of the (single) point
            are in flight at once, documented as concurrency -1 or by no limit at all.
        warmup_per_concurrency: warm-up requests of a point = this × its concurrency …
        warmup_requests: … unless this gives the number outright.
        streaming: without it TTFT, TPOT and ITL do not exist.
        ignore_eos: every answer has exactly `osl` tokens.
        seed: seed of the prompts; every sweep point adds its own offset.
        max_request_rate: requests/s at which free slots are refilled; None: at once.
        api: the server's endpoint that requests go to; offline clients have none.
        client_version: release of the client that the document measured with.
        input_tokens: tokens of all prompts together as the document's client counted them, which
            tell one dataset from another.
    """

    client: str
    dataset: Literal["synthetic", "real", "sharegpt"]
    isl: int | None
    osl: int | None
    concurrency: tuple[int, ...]
    requests_per_concurrency: int | None = None
    requests: int | None = None
    capped: bool = True
    warmup_per_concurrency: int = 1
    warmup_requests: int | None = None
    streaming: bool = True
    ignore_eos: bool = True
    seed: int = 0
    max_request_rate: float | None = None
    api: Literal["completions", "chat"] = "completions"
    client_version: str | None = None
    input_tokens: int | None = None


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
        evaluator: name of the evaluator.
        task: the task as the evaluator knows it.
        fewshot: examples before each question.
        concurrency: requests in flight.
        batch_size: questions in one request.
        limit: only the first questions; None: all.
        temperature: sampling temperature.
        add_special_tokens: whether the tokenizer may add BOS; None: the engine's default.
        extra_body: further fields of each request.
    """

    evaluator: str
    task: str
    fewshot: int
    concurrency: int = 1
    limit: int | None = None
    temperature: float = 0.0
    add_special_tokens: bool | None = None
    extra_body: Mapping[str, bool | int | float | str] = field(default_factory=dict)
    batch_size: int = 1


@dataclass(frozen=True)
class DocumentedAnswer:
    """What is known of the answer to one prompt of a first answer; what is None is not looked at.

    Attributes:
        prompt: the prompt, one of the smoke test's.
        contains: texts that the answer holds, all of them, at every release.
        texts: whole answers as documented, white space counted as one blank. At the release of
            the scenario's source the answer is one of them; elsewhere a difference is reported.
        finish_reason: why the answer ends, of a server.
        prompt_tokens: tokens of the prompt as the server counts them, its BOS among them.
        completion_tokens: tokens of the answer as the server counts them.
    """

    prompt: str
    contains: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    finish_reason: Literal["length", "stop"] | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True)
class Smoke:
    """One first answer: does the engine answer at all, before anything is measured?

    Attributes:
        client: ``completion`` asks the running server; any other name is an offline program.
        prompts: what is asked.
        max_tokens: most tokens of each answer; None: the program's own default.
        answers: what is known of the answers, at most once for each prompt.
    """

    client: str
    prompts: tuple[str, ...]
    max_tokens: int | None = None
    answers: tuple[DocumentedAnswer, ...] = ()

    @property
    def label(self) -> str:
        """Short name in test ids, folders and reports."""
        return "smoke"


Measurable = LoadPoint | AccuracyTask | Smoke  # what one probe of a scenario can be


@dataclass(frozen=True)
class Floor:
    """A headline claim: the metric must reach at least (or at most, if lower is better) `value`."""

    metric: str
    value: float
    concurrency: int | None = None


@dataclass(frozen=True)
class DisturbanceLimits:
    """How much may disturb a measurement before it is not used; shares from 0 to 1.

    Attributes:
        others_cpu: load of processes that are not ours, as a share of the usable cores.
        steal: CPU time that the hypervisor gave to other machines, as a share of the usable cores.
        cpu_clock: lowest median clock of the cores that worked, as a share of the highest that the
            CPU names.
        slowdown: samples in which a GPU's clocks were held down by heat, power brake or hardware
            fault, as a share of all.
    """

    others_cpu: float = 0.2
    steal: float = 0.05
    cpu_clock: float = 0.4
    slowdown: float = 0.05


@dataclass(frozen=True)
class GatePolicy:
    """How the scenario is judged.

    Attributes:
        metrics: metrics that gate; all others are reported.
        bands: metric → loss as a fraction (accuracy: absolute) that counts; else the default.
        reference: "stored": the baseline comes from `baselines/`; "self": the machine measures its
            own reference with `reference_starts` fresh starts, kept in the machine's own store.
        reference_starts: fresh starts of a self-measured reference.
        blocks: pairs of short blocks of load with one stream, on two builds that are both up; 0:
            whole loads, one build after the other.
        whole_load: whether the load client puts its whole load on the first start beside blocks,
            for the metrics that only it reports.
        max_starts: fresh starts of the build under test, at most.
        noise: "prior": pool the family's prior with the baseline's spread; "measured": the spread
            that this machine showed decides, and widens the band where it must.
        budget_s: no further fresh start, of any build, once so many seconds have gone into this
            scenario's starts but those of a reference; None: only `max_starts` counts.
        disturbance: what may disturb a measurement that is used.
        control: "auto": a suspected loss is checked against a fresh start of the baseline's build
            where that can be started; "required": without one a loss is at most INCONCLUSIVE;
            "none": never.
    """

    metrics: tuple[str, ...]
    bands: Mapping[str, float] = field(default_factory=dict)
    reference: Literal["stored", "self"] = "stored"
    reference_starts: int = 5
    blocks: int = 0
    whole_load: bool = True
    max_starts: int = 5
    noise: Literal["prior", "measured"] = "prior"
    budget_s: float | None = None
    disturbance: DisturbanceLimits = DisturbanceLimits()
    control: ControlPolicy = "auto"


@dataclass(frozen=True)
class Limits:
    """Time limits in seconds: until ready, without any output, and of one program in all."""

    start_s: float
    silence_s: float
    total_s: float


@dataclass(frozen=True)
class Launch:
    """How the document starts the ranks of the engine, on one node or several.

    Attributes:
        by: ``mpirun``, ``srun`` (inside an allocation, or allocating one) or ``sbatch``.
        output: log file or folder name that the document gives it.
        ssh_port: port of the nodes' SSH daemon, for ``mpirun``.
        time_limit: limit of the job as Slurm writes it, ``HH:MM:SS``.
        pass_on: environment variables that ``mpirun`` hands to every rank.
    """

    by: Literal["mpirun", "srun", "sbatch"]
    output: str | None = None
    ssh_port: int | None = None
    time_limit: str | None = None
    pass_on: Mapping[str, str] = field(default_factory=dict)

    @property
    def by_slurm(self) -> bool:
        """Whether the engine runs on nodes that Slurm chooses."""
        return self.by in ("srun", "sbatch")


@dataclass(frozen=True)
class Container:
    """The container that the document runs the engine in."""

    image: str
    name: str | None = None


@dataclass(frozen=True)
class Listen:
    """Where the document lets the server listen; a run of the suite chooses its own place."""

    host: str
    port: int


@dataclass(frozen=True)
class Claim:
    """What a document says about a result, or about two results of one session.

    Attributes:
        id: unique name.
        title: the statement, one line for people.
        source: where it is documented.
        metric: canonical metric name.
        scenario: id of the scenario it speaks of.
        concurrency: sweep point of a performance metric; None: the only one.
        expect: ``better`` or ``worse`` than the other, or ``not_worse`` or ``not_better`` by more
            than `margin`.
        versus: id of the scenario it is compared with …
        value: … or the number it must reach (higher is better: at least, else at most).
        margin: loss that still counts as not worse, or gain that still counts as not better, as a
            fraction (accuracy: absolute); 0: the band of the metric's family.
        minimum_effect: gain that ``better`` must show at least, as a fraction (accuracy: absolute):
            ours, where the document says "significant" or "meaningful" and gives no number.
        documented: change against the other that the document gives, as a fraction of the other's
            value, with its sign; None: it gives no number.
        tolerance: how far the change may fall short of `documented`, as a loss of the value: ours,
            as a document gives one number without a spread.
    """

    id: str
    title: str
    source: Source
    metric: str
    scenario: str
    expect: Literal["better", "worse", "not_worse", "not_better"]
    concurrency: int | None = None
    versus: str | None = None
    value: float | None = None
    margin: float = 0.0
    minimum_effect: float = 0.0
    documented: float | None = None
    tolerance: float = 0.0

    @property
    def sides(self) -> tuple[str, ...]:
        """Ids of the scenarios that it speaks of."""
        return (self.scenario,) if self.versus is None else (self.scenario, self.versus)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One documented workload: what to launch, on what, what it should reach, how it is judged."""

    id: str
    title: str
    source: Source
    hardware: Hardware
    model: Model
    engine: EngineChoice
    workload: Workload | None = None
    accuracy: tuple[AccuracyTask, ...] = ()
    gate: GatePolicy
    limits: Limits
    environment: Mapping[str, str] = field(default_factory=dict)
    smoke: Smoke | None = None
    launch: Launch | None = None
    container: Container | None = None
    listen: Listen | None = None
    floors: tuple[Floor, ...] = ()
    markers: tuple[str, ...] = ()
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
        own_seed = load.capped and not is_alone
        return tuple(
            LoadPoint(
                concurrency=concurrency,
                requests=load.requests or (load.requests_per_concurrency or 1) * concurrency,
                warmup_requests=(
                    load.warmup_per_concurrency * concurrency
                    if load.warmup_requests is None
                    else load.warmup_requests
                ),
                seed=load.seed + (concurrency if own_seed else 0),
                capped=load.capped,
            )
            for concurrency in load.concurrency
        )

    def content_hash(self) -> str:
        """What shapes any measurement of this scenario, as 16 hex digits of SHA-256.

        Titles, sources, documented values, the gate's policy, limits and markers may be edited
        without making stored baselines incomparable, so they are left out.
        """
        return self._hash(_as_measured(self.workload), self.accuracy)

    def point_hash(self, point: LoadPoint) -> str:
        """What shapes the measurement of one sweep point: other points may come and go."""
        load = _as_measured(self.workload)
        load = load and replace(
            load, concurrency=(), requests=None, requests_per_concurrency=None, seed=0
        )
        return self._hash(load, point)

    def smoke_hash(self) -> str:
        """What shapes the first answer; what is known of it does not."""
        return self._hash(self.smoke and replace(self.smoke, answers=()))

    def task_hash(self, task: AccuracyTask) -> str:
        """What shapes the measurement of one accuracy task; the machine and the load do not."""
        return self._hash(replace(task, concurrency=1))

    def _hash(self, *parts: object) -> str:
        # One stage measures the same, said or not; so does the folder that a model has anyway.
        settings = self.engine.settings
        engine = replace(self.engine, settings=replace(settings, pp=settings.stages), inert=None)
        model = replace(self.model, folder=self.model.other_folder)
        return content_hash(self.hardware, model, engine, self.environment, *parts)


def _as_measured(load: Workload | None) -> Workload | None:
    """The load without what is only known of the document's own measurement."""
    return load and replace(load, client_version=None, input_tokens=None)


def content_hash(*parts: object) -> str:
    """16 hex digits of the SHA-256 of `parts`, which are dataclasses and plain values.

    What is not set is left out, so that a field added later keeps the hashes of stored baselines.

    Raises:
        TypeError: a part has a value that JSON does not know.
    """
    plain = to_plain(parts, leave_out_none=True)
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
