#!/bin/sh
# The nightly gate: measure what MARKERS select, judge it, and end in perfgate's exit status.
# usage: ci/nightly.sh [MARKERS [OPTION...]]    e.g. ci/nightly.sh "b200 and throughput" --launcher slurm
set -eu
cd "$(dirname "$0")/.."
# By its name: also where a runner's checkout belongs to another user than the job.
PERFGATE_ROOT=$(pwd -P)
export PERFGATE_ROOT
markers=${1:-b200}
[ $# -eq 0 ] || shift
exec pytest -m "$markers" --gate --run-dir "runs/nightly-$(date +%Y%m%d-%H%M%S)" "$@"
