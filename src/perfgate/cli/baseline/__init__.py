"""`perfgate baseline`: the life of a baseline, from a run to its retirement.

A recorded run becomes a candidate in the machine's own store; only a person's `promote`, with name
and reason, moves a candidate into the suite's committed store. docs/how-to/baselines.md

Exit status: 0 done, 2 refused or wrong usage; what is refused changes nothing, but that starts of a
run that proves nothing are still noted in the noise history.
"""

from perfgate.cli.baseline.verbs import add_options

__all__ = ["add_options"]
