"""The commands of `perfgate`, one module each: `add_to` its parser, run with its arguments."""
