#!/usr/bin/env bash
# From run folders to a proposal: baselines.patch, and body.md with the evidence, in the folder PROPOSAL, and
# the output `proposed`. A night whose numbers are refused gives the reason and stays as green as it was.
# Environment: RUNS (a folder with one run folder a row), RUN_ID, NIGHT (true: it proposes its own numbers),
# ACTOR, REASON (empty: none), SCENARIOS (blanks between; empty: all), PROPOSAL, MODULES (engines of your own,
# blanks between).
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=unheeded.sh
. "${BASH_SOURCE[0]%/*}/unheeded.sh"
shopt -s nullglob
folders=("$RUNS"/*/)
[ ${#folders[@]} -gt 0 ] || { echo "::error::that workflow run left no run folder"; exit 1; }
mkdir -p "$PROPOSAL"
by=$ACTOR
# The actor of a scheduled run is who last changed the schedule, and has seen none of these numbers.
[ "$NIGHT" != true ] || by="the merge of the proposal of run $RUN_ID"
words=("--by=$by")
[ -z "$REASON" ] || words+=("--reason=$REASON")
read -ra scenarios <<<"${SCENARIOS:-}"
for scenario in "${scenarios[@]}"; do words+=("--scenario=$scenario"); done
read -ra modules <<<"${MODULES:-}"
for module in "${modules[@]}"; do words+=(--import "$module"); done
export GIT_AUTHOR_NAME="github-actions[bot]" GIT_COMMITTER_NAME="github-actions[bot]"
export GIT_AUTHOR_EMAIL="41898282+github-actions[bot]@users.noreply.github.com"
export GIT_COMMITTER_EMAIL=$GIT_AUTHOR_EMAIL
refused=0
unheeded perfgate baseline promote "${folders[@]}" "${words[@]}" \
  --patch "$PROPOSAL/baselines.patch" --body "$PROPOSAL/proposal.md" || refused=$?
if [ $refused -eq 2 ] && [ "$NIGHT" = true ]; then
  echo "::warning::no proposal, for the reason in the log; by hand:" \
    "gh workflow run baseline_update.yml --field run-id=$RUN_ID --field scenarios='$SCENARIOS' --field reason=WHY"
  exit 0
fi
[ $refused -eq 0 ] || exit $refused
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
echo "proposed=true" >>"$GITHUB_OUTPUT"
