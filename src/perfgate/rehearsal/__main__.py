"""``python -m perfgate.rehearsal MODULE …``: play the program that this module stands in for."""

import sys
from importlib import import_module

import_module(f"perfgate.rehearsal.{sys.argv[1]}").main(sys.argv[2:])
