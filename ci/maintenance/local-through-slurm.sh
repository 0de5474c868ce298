#!/usr/bin/env bash
# The embedded default through Slurm to a verdict: from the login node, each fresh start a job of its
# own. With PERFGATE_NIGHTLY=1 its answers too, and all again inside an allocation, against the
# reference that the first one measured; on each push tests/slurm does that with a mock program.
#   ci/slurm/with.sh ci/maintenance/local-through-slurm.sh PYTHON
# Exit status: 0 each ended in an answer (INCONCLUSIVE is one); else that of the first that did not.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: local-through-slurm.sh PYTHON" >&2; exit 2; }
python=$1
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# A store of its own: what was measured without Slurm stays the reference of `make local-slow`.
export PERFGATE_HOME=$PWD/.perfgate/slurm

to_a_verdict() {  # WHERE COMMAND... : run it; its status, but 0 for INCONCLUSIVE
  local where=$1 status=0
  shift
  echo "== the embedded default $where"
  "$@" || status=$?
  if [ $status -eq 10 ]; then
    echo "INCONCLUSIVE is an answer, not a failure: this machine is too noisy right now to tell"
    status=0
  fi
  return $status
}

# One point of the sweep: what the rest would show, `make local` has shown.
tests=c1
[ "${PERFGATE_NIGHTLY-}" != 1 ] || tests="c1 or arithmetic"
measure=("$python" -m pytest -m local -k "$tests" --launcher slurm --self-reference)
to_a_verdict "from a login node" "${measure[@]}" fresh
[ "${PERFGATE_NIGHTLY-}" = 1 ] || exit 0
to_a_verdict "inside an allocation" \
  salloc --quiet --nodes=1 --exclusive --mem=0 "${measure[@]}" stored
