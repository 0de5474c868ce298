#!/usr/bin/env bash
# Start a cluster in a folder of its own, run a command on its login node, end the cluster.
#   with.sh COMMAND...      settings: those of up.sh
# Exit status: the command's; up.sh's if the cluster does not start; 130 or 143 after a signal, which
# the command gets too; 1 if the command succeeded and something of the cluster is left.
set -uo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
[ $# -ge 1 ] || { echo "usage: with.sh COMMAND..." >&2; exit 2; }
state=$(mktemp -d /var/tmp/pgs.XXXXXX) || exit 1

end() {
  local status=$?
  trap '' INT TERM
  "$HERE/down.sh" "$state" --purge >/dev/null || [ $status -ne 0 ] || status=1
  exit $status
}
interrupt() {  # SIGNAL STATUS : pass it on, give the command time to clean up, then end it
  local command=${!-}   # the one in the background
  trap '' INT TERM
  if [ -n "$command" ]; then
    kill -"$1" -- -"$command" 2>/dev/null
    for _ in $(seq 300); do
      kill -0 -- -"$command" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL -- -"$command" 2>/dev/null
  fi
  exit "$2"
}
trap end EXIT
trap 'interrupt INT 130' INT
trap 'interrupt TERM 143' TERM

"$HERE/up.sh" "$state" || exit
# In the background, as bash heeds a signal at once only while it waits; in a session of its own,
# so that it can be ended with its children; and heeding INT, which bash turns off back there.
env --default-signal=INT setsid "$HERE/login.sh" "$state" "$@" <&0 &
wait $!
