"""`perfgate release`: hold runs against a policy, pack the evidence, sign it, verify it.

docs/reference/release.md has the exit statuses of its verbs.
"""

from perfgate.cli.release.verbs import add_options

__all__ = ["add_options"]
