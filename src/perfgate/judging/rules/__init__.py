"""Rules: the statistics behind a verdict. Arithmetic only, no input or output."""
