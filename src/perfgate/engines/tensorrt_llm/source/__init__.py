"""TensorRT-LLM's own sources, read as data: what a release accepts, without running any of it."""
