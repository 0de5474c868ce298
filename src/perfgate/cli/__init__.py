"""The commands of `perfgate`, one module each: it adds its options and runs with their values."""
