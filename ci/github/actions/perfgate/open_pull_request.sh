#!/usr/bin/env bash
# Opens the pull request of a proposal, which may change nothing but files in baselines/.
# Environment: PROPOSAL (baselines.patch, body.md), RUN_ID, GH_TOKEN.
set -euo pipefail
[[ $RUN_ID =~ ^[0-9]+$ ]] || { echo "::error::not the number of a workflow run"; exit 1; }
branch=perfgate/baselines-$RUN_ID-$GITHUB_RUN_ID
base=$(git rev-parse HEAD)
git checkout --quiet -b "$branch"
export GIT_COMMITTER_NAME="github-actions[bot]"
export GIT_COMMITTER_EMAIL="41898282+github-actions[bot]@users.noreply.github.com"
git am --quiet "$PROPOSAL/baselines.patch" || { echo "::error::the proposal is no patch for this commit"; exit 1; }
# What git made of the patch, commit by commit, not what the patch looks like: plain files of baselines/.
git log --format= --raw -z --no-renames --no-abbrev "$base..HEAD" |
  while IFS= read -r -d '' change && IFS= read -r -d '' path; do
    [[ $change =~ ^:[0-7]{6}\ 100644\  && $path == baselines/* ]] ||
      { echo "::error::the proposal changes something that is no baseline"; exit 1; }
  done
gh auth setup-git
git push --quiet origin "$branch"
gh pr create --head "$branch" --title "Baselines of run $RUN_ID" --body-file "$PROPOSAL/body.md"
