#!/usr/bin/env bash
# From run folders to a proposal: baselines.patch, and body.md with the evidence, in the folder PROPOSAL.
# Environment: RUNS (a folder with one run folder a row), BY, REASON, ACCEPT_REGRESSION, PROPOSAL.
set -euo pipefail
shopt -s nullglob
folders=("$RUNS"/*/)
[ ${#folders[@]} -gt 0 ] || { echo "::error::that workflow run left no run folder"; exit 1; }
mkdir -p "$PROPOSAL"
perfgate baseline record "${folders[@]}" --format json >"$PROPOSAL/candidates.json"
python3 -c 'import json, sys; print(*json.load(sys.stdin)["candidates"], sep="\0", end="")' \
  <"$PROPOSAL/candidates.json" >"$PROPOSAL/files"
mapfile -d '' -t files <"$PROPOSAL/files"
[ ${#files[@]} -gt 0 ] || { echo "::error::nothing that was measured can become a baseline"; exit 1; }
accepted=()
[ -z "$ACCEPT_REGRESSION" ] || accepted=(--accept-regression "$ACCEPT_REGRESSION")
for file in "${files[@]}"; do
  perfgate baseline promote "$file" --by "$BY" --reason "$REASON" "${accepted[@]}"
done
git add --all baselines
git diff --cached --binary --no-color -- baselines >"$PROPOSAL/baselines.patch"
[ -s "$PROPOSAL/baselines.patch" ] || { echo "::error::the baselines are as they were"; exit 1; }
# GitHub takes 65,536 characters of a description; what is cut off is in the artifact perfgate-proposal.
status=0
perfgate report "${folders[@]}" --to "$PROPOSAL/report" >"$PROPOSAL/report.txt" || status=$?
[ -s "$PROPOSAL/report/report.md" ] || { echo "::error::no report (status $status)"; exit 1; }
{
  echo "The runs ended in status $status. Who merges this accepts these numbers as the baselines."
  echo
  head -c 60000 "$PROPOSAL/report/report.md" | iconv -c -f UTF-8 -t UTF-8
} >"$PROPOSAL/body.md"
