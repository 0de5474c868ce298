"""The wheel's list of its packages (CycloneDX, PEP 770) names what is installed beside it.

Run by the Python of an environment that holds perfgate and what it imports. Standard library alone.
Exit status: 0 it does, 1 it does not, or there is no list.
"""

import json
import re
import sys
from importlib.metadata import distribution, distributions

# What an environment brings along itself.
_ENVIRONMENT = {"pip", "setuptools", "wheel", "perfgate"}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> int:
    """Compare, name by name and version by version."""
    own = distribution("perfgate")
    (listed,) = [one for one in own.files or () if "sboms/" in str(one)] or (None,)
    if listed is None:
        print("the wheel has no list of its packages")
        return 1
    bill = json.loads(listed.read_text())
    root = bill["metadata"]["component"]
    named = {_normal(one["name"]): one["version"] for one in bill["components"]}
    there = {_normal(one.metadata["Name"]): one.version for one in distributions()}
    faults = [
        f"{name} {version} is installed, listed is {named.get(name)}"
        for name, version in sorted(there.items())
        if name not in _ENVIRONMENT and named.get(name) != version
    ]
    if (root["name"], root["version"]) != ("perfgate", own.version):
        faults.append(f"the list is of {root['name']} {root['version']}, not {own.version}")
    for fault in faults:
        print(f"{listed}: {fault}")
    print(f"{listed}: {len(named)} packages listed, {len(faults)} faults")
    return 1 if faults or not named else 0


if __name__ == "__main__":
    sys.exit(main())
