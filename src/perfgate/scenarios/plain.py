"""Scenario ⇄ plain values of a scenario file; checks nothing: `schema` did that before."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from perfgate.core.measurement import Json
from perfgate.scenarios.scenario import (
    AccuracyTask,
    Claim,
    Container,
    CudaGraphs,
    DisturbanceLimits,
    EngineChoice,
    EngineSettings,
    Floor,
    GatePolicy,
    Hardware,
    Launch,
    Limits,
    Listen,
    Model,
    MoeLoadBalancer,
    Mtp,
    Scenario,
    Smoke,
    Source,
    Weights,
    Workload,
)

Plain = Mapping[str, Any]


def from_plain(plain: Plain, file: Path | None = None) -> Scenario:
    """The scenario of plain values that fit the schema and have their defaults merged in.

    Whole numbers become floats where the field is one: 60 and 60.0 give the same content hash.
    """
    workload, smoke = plain.get("workload"), plain.get("smoke")
    return Scenario(
        id=plain["id"],
        title=plain["title"],
        source=Source(**plain["source"]),
        hardware=Hardware(**plain["hardware"]),
        model=_model(plain["model"]),
        engine=_engine(plain["engine"]),
        workload=None if workload is None else _workload(workload),
        accuracy=tuple(
            AccuracyTask(**_floats(task, "temperature")) for task in plain.get("accuracy", ())
        ),
        gate=_gate(plain["gate"]),
        limits=Limits(**_floats(plain["limits"], "start_s", "silence_s", "total_s")),
        environment=plain.get("environment", {}),
        smoke=None if smoke is None else Smoke(**{**smoke, "prompts": tuple(smoke["prompts"])}),
        launch=None if (launch := plain.get("launch")) is None else Launch(**launch),
        container=None if (box := plain.get("container")) is None else Container(**box),
        listen=None if (listen := plain.get("listen")) is None else Listen(**listen),
        floors=tuple(Floor(**_floats(value, "value")) for value in plain.get("floors", ())),
        markers=tuple(plain.get("markers", ())),
        file=file,
    )


def claim_from_plain(plain: Plain) -> Claim:
    """The claim of plain values that fit the schema."""
    return Claim(**{**_floats(plain, "value", "margin"), "source": Source(**plain["source"])})


def to_plain(scenario: Scenario) -> dict[str, Json]:
    """The scenario as a scenario file has it, with its content hash.

    All defaults are written out; what is left to the engine is left out. Without `content_hash` it
    can stand in a scenario file and gives an equal scenario.
    """
    plain: dict[str, Json] = _plain(scenario)
    plain["content_hash"] = scenario.content_hash()
    return plain


def _model(plain: Plain) -> Model:
    weights = plain.get("weights")
    return Model(**{**plain, "weights": None if weights is None else Weights(**weights)})


def _engine(plain: Plain) -> EngineChoice:
    settings = _floats(plain.get("settings", {}), "kv_cache_fraction")
    if "mtp" in settings:
        settings["mtp"] = Mtp(**settings["mtp"])
    if "cuda_graphs" in settings:
        graphs = dict(settings["cuda_graphs"])
        graphs["batch_sizes"] = tuple(graphs.get("batch_sizes", ()))
        settings["cuda_graphs"] = CudaGraphs(**graphs)
    if "moe_load_balancer" in settings:
        settings["moe_load_balancer"] = MoeLoadBalancer(**settings["moe_load_balancer"])
    return EngineChoice(plain["name"], EngineSettings(**settings))


def _workload(plain: Plain) -> Workload:
    values = {"isl": None, "osl": None, **_floats(plain, "max_request_rate")}
    sweep = values["concurrency"]
    values["concurrency"] = tuple(sweep) if isinstance(sweep, list) else (sweep,)
    return Workload(**values)


def _gate(plain: Plain) -> GatePolicy:
    values = _floats(plain, "budget_s")
    bands = {name: float(band) for name, band in plain.get("bands", {}).items()}
    limits = {name: float(limit) for name, limit in plain.get("disturbance", {}).items()}
    return GatePolicy(
        **{
            **values,
            "metrics": tuple(plain["metrics"]),
            "bands": bands,
            "disturbance": DisturbanceLimits(**limits),
        }
    )


def _floats(plain: Plain, *names: str) -> dict[str, Any]:
    """A copy of `plain` in which the fields called `names` are floats."""
    return {name: float(value) if name in names else value for name, value in plain.items()}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        named = ((part.name, getattr(value, part.name)) for part in fields(value))
        return {
            name: _plain(part)
            for name, part in named
            if part is not None and not isinstance(part, Path)
        }
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value
