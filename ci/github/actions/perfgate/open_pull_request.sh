#!/usr/bin/env bash
# Opens the pull request of a proposal, which may change nothing but files in baselines/.
# Environment: PROPOSAL (baselines.patch, body.md), BY, RUN_ID, GH_TOKEN.
set -euo pipefail
[[ $RUN_ID =~ ^[0-9]+$ ]] || { echo "::error::not the number of a workflow run"; exit 1; }
git apply --numstat -z "$PROPOSAL/baselines.patch" | while IFS=$'\t' read -r -d '' _ _ path; do
  case $path in
    baselines/*) ;;
    *) echo "::error::the proposal changes something that is no baseline"; exit 1 ;;
  esac
done
branch=perfgate/baselines-$RUN_ID-$GITHUB_RUN_ID
git checkout --quiet -b "$branch"
git apply --index "$PROPOSAL/baselines.patch"
git -c user.name="github-actions[bot]" \
  -c user.email="41898282+github-actions[bot]@users.noreply.github.com" \
  commit --quiet --message "Baselines of run $RUN_ID, proposed by $BY"
gh auth setup-git
git push --quiet origin "$branch"
gh pr create --head "$branch" --title "Baselines of run $RUN_ID" --body-file "$PROPOSAL/body.md"
