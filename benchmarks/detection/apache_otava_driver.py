"""Runs inside Otava's environment: lists of values on stdin, their change points on stdout (JSON).

It imports neither perfgate nor the rest of this study.
"""

import json
import sys

from otava.analysis import compute_change_points


def main() -> int:
    found = []
    for values in json.load(sys.stdin):
        points, _ = compute_change_points(values)
        found.append([(int(one.index), float(one.stats.forward_rel_change())) for one in points])
    json.dump(found, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
