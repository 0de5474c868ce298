"""vLLM: what each release knows, and how a scenario is spelled for it."""

from perfgate.engines.vllm import engine

__all__ = ["engine"]
