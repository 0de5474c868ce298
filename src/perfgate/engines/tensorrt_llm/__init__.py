"""TensorRT-LLM: what each release knows, and how a scenario is spelled for it."""

from perfgate.engines.tensorrt_llm import engine

__all__ = ["engine"]
