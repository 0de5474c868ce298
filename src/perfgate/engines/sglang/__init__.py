"""SGLang: what each release knows, and how a scenario is spelled for it."""

from perfgate.engines.sglang import engine

__all__ = ["engine"]
