"""`perfgate ci`: what pipelines call: the jobs of a selection, a status's decision, GitLab's child.

Each verb is a module of its own: `ci_matrix`, `ci_decision`, `ci_gitlab`.
"""

import argparse
import importlib

# Verb → what it is for. The module `ci_<verb>` adds its options and runs it.
VERBS: dict[str, str] = {
    "matrix": "the jobs that measure a selection, as JSON for CI systems",
    "decision": "what a pipeline does with a run's exit status: pass, warn or block",
    "gitlab": "the child pipeline of a matrix, for GitLab",
}


def add_options(command: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    verbs = command.add_subparsers(required=True, metavar="VERB")
    for name, help_line in VERBS.items():
        verb = verbs.add_parser(
            name, help=help_line, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        module = importlib.import_module(f"perfgate.cli.ci_{name}")
        verb.description = module.__doc__
        module.add_options(verb)
