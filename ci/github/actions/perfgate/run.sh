#!/usr/bin/env bash
# One row of the matrix: measures a shard, and leaves its run folder in RUN_DIR.
# Environment: EXPRESSION, SHARD (1/2), RUN_DIR, EVENT (of perfgate ci decision), MODE (gate, record, auto),
# REHEARSE (true: mock programs for the engine), ENGINE_IMAGE, PERFGATE_MODELS, PERFGATE_DATASETS, OPTIONS
# (more options of pytest, words separated by blanks).
# Ends in 0 where the event lets the status through, so that a row is red where its shard blocks.
set -euo pipefail
options=()
read -r -a options <<<"${OPTIONS:-}" || true
[ "$REHEARSE" != true ] || options+=(--rehearse)
case $REHEARSE/$MODE in
  true/gate) ;; # it has no baselines of what is real
  */gate) options+=(--gate) ;;
  */record) options+=(--record) ;;
  */auto) options+=(--gate --record) ;;
esac
mkdir -p "$(dirname "$RUN_DIR")"
[ -n "${PERFGATE_MODELS:-}" ] || unset PERFGATE_MODELS
[ -n "${PERFGATE_DATASETS:-}" ] || unset PERFGATE_DATASETS
if [ -n "${ENGINE_IMAGE:-}" ]; then
  # The repository's site.yaml with another image; its other facts hold.
  export PERFGATE_SITE=$RUNNER_TEMP/site-with-image.yaml
  python3 - site.yaml "$PERFGATE_SITE" <<'PYTHON'
import os, pathlib, sys
import yaml
there, made = map(pathlib.Path, sys.argv[1:])
site = (yaml.safe_load(there.read_text()) if there.exists() else None) or {"schema_version": 1}
site["docker"] = {**(site.get("docker") or {}), "image": os.environ["ENGINE_IMAGE"]}
made.write_text(yaml.safe_dump(site))
PYTHON
fi
# What an engine logs is no command to the runner, whatever it looks like.
token=$(python3 -c 'import secrets; print(secrets.token_hex(16))')
echo "::stop-commands::$token"
# In the background, as bash heeds the signal of a cancelled job only while it waits. TERM ends the
# session in order (engines stopped, records closed), and GitHub gives ten seconds for that.
pytest -m "$EXPRESSION" --shard "$SHARD" --run-dir "$RUN_DIR" "${options[@]}" &
session=$!
trap 'kill -TERM "$session" 2>/dev/null || true' INT TERM
status=0
wait "$session" || status=$?
while kill -0 "$session" 2>/dev/null; do
  status=0
  wait "$session" || status=$?
done
echo "::$token::"
echo "status=$status" >>"$GITHUB_OUTPUT"
exec perfgate ci decision --event "$EVENT" "$status"
