"""The preflight of this node: a program that a launcher runs on each node of a start.

``python -P -m perfgate.launchers.nodes.node_doctor [--contained] [--import MODULE]… FOLDER`` reads
the one scenario of FOLDER/scenario.yaml and prints the checks of this machine as a line of JSON.

Exit status: 0 the checks were made, whatever they show; 2 the node could not be checked.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from perfgate.core.errors import PerfgateError
from perfgate.core.locations import Locations
from perfgate.core.measurement import Json
from perfgate.machine.hardware import detect
from perfgate.machine.preflight import PreflightTarget, look
from perfgate.plan.registered import registered
from perfgate.plan.toolchain import toolchain_for
from perfgate.scenarios.files import load_suite

SCENARIO = "scenario.yaml"


def main(words: Sequence[str]) -> int:
    """Check this node; returns the exit status."""
    parser = argparse.ArgumentParser(prog="node_doctor")
    parser.add_argument("--contained", action="store_true")
    parser.add_argument("--import", dest="modules", action="append", default=[])
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args(words)
    try:
        for module in arguments.modules:
            import_module(module)
        answer = _checks(arguments.folder, contained=arguments.contained)
    except (PerfgateError, ImportError) as error:
        print(f"perfgate: {error}", file=sys.stderr)
        return 2
    print(json.dumps(answer))
    return 0


def _checks(folder: Path, *, contained: bool) -> dict[str, Json]:
    (scenario,) = load_suite(folder / SCENARIO, registered()).scenarios
    machine = detect()
    target = PreflightTarget(run_folder=folder, on_node=True, contained=contained)
    report = look(scenario, toolchain_for(scenario, Locations.of_environment()), machine, target)
    return {
        "machine": asdict(machine),
        "checks": [asdict(check) for check in report.checks],
        "observed": dict(report.observed),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
