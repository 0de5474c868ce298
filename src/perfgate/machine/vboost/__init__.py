"""vboost: the slider of the GPUs, read, set and put back by a process of its own."""
