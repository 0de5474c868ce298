#!/usr/bin/env bash
# Tells a chat what changed since the last run of this series. Without PERFGATE_WEBHOOK nothing is told.
# Environment: PERFGATE_WEBHOOK, TITLE, LINK; run folders in collected/, what was told in notify-state/.
set -euo pipefail
shopt -s nullglob
folders=(collected/*/)
mkdir -p notify-state
if [ ${#folders[@]} -eq 0 ]; then
  echo "::warning::no row left a run folder, so there is nothing to tell"
  exit 0
fi
perfgate notify "${folders[@]}" --state notify-state/told.json --title "$TITLE" --link "$LINK"
