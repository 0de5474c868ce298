#!/usr/bin/env bash
# From run folders to a proposal: baselines.patch, and body.md with the evidence, in the folder PROPOSAL.
# Environment: RUNS (a folder with one run folder a row), BY, REASON (empty: none), PROPOSAL,
# MODULES (engines of your own, blanks between).
set -euo pipefail
shopt -s nullglob
folders=("$RUNS"/*/)
[ ${#folders[@]} -gt 0 ] || { echo "::error::that workflow run left no run folder"; exit 1; }
mkdir -p "$PROPOSAL"
words=("--by=$BY")
[ -z "$REASON" ] || words+=("--reason=$REASON")
read -ra modules <<<"${MODULES:-}"
for module in "${modules[@]}"; do words+=(--import "$module"); done
export GIT_AUTHOR_NAME="github-actions[bot]" GIT_COMMITTER_NAME="github-actions[bot]"
export GIT_AUTHOR_EMAIL="41898282+github-actions[bot]@users.noreply.github.com"
export GIT_COMMITTER_EMAIL=$GIT_AUTHOR_EMAIL
perfgate baseline propose "${folders[@]}" "${words[@]}" \
  --patch "$PROPOSAL/baselines.patch" --body "$PROPOSAL/proposal.md"
# GitHub takes 65,536 characters of a description; what is cut off is in the artifact perfgate-proposal.
status=0
perfgate report "${folders[@]}" --to "$PROPOSAL/report" >"$PROPOSAL/report.txt" || status=$?
[ -s "$PROPOSAL/report/report.md" ] || { echo "::error::no report (status $status)"; exit 1; }
{
  cat "$PROPOSAL/proposal.md"
  printf '\nThe runs ended in status %s.\n\n' "$status"
  cat "$PROPOSAL/report/report.md"
} >"$PROPOSAL/whole.md"
head -c 60000 "$PROPOSAL/whole.md" | iconv -c -f UTF-8 -t UTF-8 >"$PROPOSAL/body.md"
