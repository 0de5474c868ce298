#!/usr/bin/env bash
# Refuses a run whose code is not this repository's: the artifacts of a fork's run are whatever the fork made
# of them. Environment: RUN_ID, GH_TOKEN.
set -euo pipefail
[[ $RUN_ID =~ ^[0-9]+$ ]] || { echo "::error::not the number of a workflow run"; exit 1; }
head=$(gh api "repos/$GITHUB_REPOSITORY/actions/runs/$RUN_ID" --jq .head_repository.full_name)
[ "$head" = "$GITHUB_REPOSITORY" ] || {
  echo "::error::run $RUN_ID is of ${head:-a repository that is gone}: baselines come from runs of $GITHUB_REPOSITORY alone"
  exit 1
}
