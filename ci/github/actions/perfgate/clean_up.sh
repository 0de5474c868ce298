#!/usr/bin/env bash
# After a row, however it ended: ends what a killed session left running, and removes what is large.
# Environment: RUN_DIR. Only processes are ended that carry perfgate's mark, this run's number and this
# runner's folder: rows of one run have one number, and may share a machine that has several runners.
set -euo pipefail
left() {
  local process environment
  for process in /proc/[0-9]*; do
    # In this order, as a process may be another user's, or gone.
    environment=$(tr '\0' '\n' 2>/dev/null <"$process/environ") || continue
    if grep -q '^PERFGATE_LAUNCH=' <<<"$environment" &&
      grep -qxF "GITHUB_RUN_ID=$GITHUB_RUN_ID" <<<"$environment" &&
      grep -qxF "RUNNER_TEMP=$RUNNER_TEMP" <<<"$environment"; then
      echo "${process#/proc/}"
    fi
  done
}
for signal in TERM KILL; do
  mapfile -t pids < <(left)
  [ ${#pids[@]} -gt 0 ] || break
  echo "ending with $signal what the session left: ${pids[*]}"
  kill "-$signal" "${pids[@]}" 2>/dev/null || true
  for _ in $(seq 50); do
    [ -n "$(left)" ] || break
    sleep 0.2
  done
done
rm -rf "${RUN_DIR:?}/rehearsal"
[ -z "$(left)" ] || { echo "::error::could not be ended: $(left | tr '\n' ' ')"; exit 1; }
