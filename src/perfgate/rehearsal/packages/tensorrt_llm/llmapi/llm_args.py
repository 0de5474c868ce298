"""The model of the LLM API's options, as a recorded page tells it."""

from perfgate.rehearsal.programs.llm_api import played_model

TorchLlmArgs = played_model()
