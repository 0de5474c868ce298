#!/usr/bin/env bash
# The rows of the GPU jobs, one line of JSON, into the step's output `matrix`.
# Environment: EXPRESSION (of pytest's -m), SHARDS (for each kind of GPU), RUNNERS (JSON: kind of GPU →
# labels), REHEARSE (true: no runner of RUNNERS is used), EVENT and MODE, which are checked here.
set -euo pipefail
case $MODE in
  gate) ;;
  record | auto) [ "$EVENT" != release ] || { echo "::error::a release is gated: mode $MODE is for nights"; exit 1; } ;;
  *) echo "::error::unknown mode: $MODE; expected: gate, record or auto"; exit 1 ;;
esac
matrix=$(perfgate ci matrix -m "$EXPRESSION" --shards "$SHARDS")
python3 - "$matrix" <<'PYTHON'
import json, os, sys
rows = json.loads(sys.argv[1])["include"]
if not rows:
    sys.exit("::error::the expression selects no scenario, so nothing would be measured")
if len(rows) > 256:
    sys.exit(f"::error::{len(rows)} jobs, and GitHub takes 256 of a matrix: fewer shards")
runners = json.loads(os.environ["RUNNERS"])
missing = sorted({row["gpu"] for row in rows} - runners.keys())
if missing and os.environ["REHEARSE"] != "true":
    sys.exit(f"::error::the input runners has no labels for: {', '.join(missing)}")
for row in rows:
    hours = f"{row['hours']:.1f} h" if row["hours_known"] else "not measured before"
    print(f"{row['name']}: {len(row['scenarios'])} scenarios, {hours}, at most {row['timeout_minutes']} min")
PYTHON
printf 'matrix=%s\n' "$matrix" >>"$GITHUB_OUTPUT"
