#!/usr/bin/env bash
# Run a command as on the cluster's login node: Slurm's settings are there, n1, n2, ... resolve.
#   login.sh STATE COMMAND...      exit status: the command's
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
[ $# -ge 2 ] || { echo "usage: login.sh STATE COMMAND..." >&2; exit 2; }
S=$(cd "$1" && pwd -P)
shift
# shellcheck source=/dev/null
. "$S/env.sh"
if [ "$(cat "$S/etc/complete")" = 1 ]; then
  set -- unshare --uts --mount -- "$HERE/as_host.sh" login "$S/etc/hosts.login" "$@"
fi
exec "$@"
