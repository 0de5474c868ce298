"""tensorrt_llm as a mock's Python has it: a greeting, a version, and the model of the LLM API."""

from perfgate.rehearsal.playbook import banner, here

__version__ = here("tensorrt-llm").version
banner(__version__)
