"""Baselines: accepted measurements of one scenario, on one hardware, at one engine commit.

One file a commit, ``<store>/<hardware>/<scenario>/<engine-commit>.json``, so that branches merge
without conflict. The suite's own store is `baselines/`; a machine's own numbers live in a second,
git-ignored store of the same format. A baseline moves only when a person promotes it. How one
lives, from record to retire: docs/how-to/baselines.md
"""

from perfgate.baselines.baseline import (
    ENOUGH_SESSIONS,
    MOST_RUNS,
    NOBODY,
    SELF,
    Baseline,
    BaselineRun,
    Change,
    ChosenBaseline,
    Entry,
    Retired,
    as_run,
)
from perfgate.baselines.file import SCHEMA_VERSION, read
from perfgate.baselines.store import (
    Anchor,
    Store,
    candidate_store,
    own_store,
    rehearsal_candidate_store,
    rehearsal_store,
    suite_store,
)

__all__ = [
    "ENOUGH_SESSIONS",
    "MOST_RUNS",
    "NOBODY",
    "SCHEMA_VERSION",
    "SELF",
    "Anchor",
    "Baseline",
    "BaselineRun",
    "Change",
    "ChosenBaseline",
    "Entry",
    "Retired",
    "Store",
    "as_run",
    "candidate_store",
    "own_store",
    "read",
    "rehearsal_candidate_store",
    "rehearsal_store",
    "suite_store",
]
