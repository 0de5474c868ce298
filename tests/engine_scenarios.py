"""A valid scenario of any engine, with what a test is about."""

from typing import Any

from perfgate.scenarios.scenario import (
    EngineChoice,
    EngineSettings,
    GatePolicy,
    Hardware,
    Limits,
    Model,
    Scenario,
    Source,
)


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
