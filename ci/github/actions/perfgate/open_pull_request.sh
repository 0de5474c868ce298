#!/usr/bin/env bash
# Opens the pull request of a proposal, which may change nothing but files in baselines/.
# Nights share one branch. While its pull request is open, a night changes nothing: what a reviewer reads stays.
# Environment: PROPOSAL (baselines.patch, body.md), RUN_ID, NIGHT (true: it proposes its own numbers), GH_TOKEN.
set -euo pipefail
[[ $RUN_ID =~ ^[0-9]+$ ]] || { echo "::error::not the number of a workflow run"; exit 1; }
branch=perfgate/baselines-$RUN_ID-$GITHUB_RUN_ID
force=()
level=error
if [ "$NIGHT" = true ]; then
  branch=perfgate/baselines-nightly
  force=(--force)  # over what an earlier night left
  level=warning
  # The owner before the colon: a fork's branch of that name is another one.
  open=$(gh api "repos/$GITHUB_REPOSITORY/pulls?state=open&head=${GITHUB_REPOSITORY%%/*}:$branch" --jq '.[].html_url')
  if [ -n "$open" ]; then
    echo "::notice::no second proposal while one is open; merge or close it: $open"
    exit 0
  fi
fi
refused() {  # SENTENCE : GitHub's settings forbid it; no night fails for that
  echo "::$level::$1"
  [ "$NIGHT" = true ] || exit 1
  exit 0
}
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
git push --quiet "${force[@]}" origin "$branch" ||
  refused "no proposal: GitHub did not take the branch $branch; the artifact perfgate-proposal has the patch, for git am"
title="Baselines of run $RUN_ID"
gh pr create --head "$branch" --title "$title" --body-file "$PROPOSAL/body.md" ||
  refused "the branch $branch is pushed, but GitHub did not open its pull request (Settings → Actions → General → Allow GitHub Actions to create and approve pull requests); to open it: gh pr create --repo $GITHUB_REPOSITORY --head $branch --title '$title' --body ''"
