"""``python -m perfgate.rehearsal MODULE:FUNCTION …``: play the program that this stands in for."""

import sys

from perfgate.rehearsal.programs import play

play(sys.argv[1], sys.argv[2:])
