#!/usr/bin/env bash
# End the cluster of up.sh, its jobs, and every process that ran on its nodes.
#
#   down.sh STATE [--purge]      --purge removes STATE as well
#
# Safe to call again, on a cluster that never came up, and while up.sh was killed half-way.
# Exit status: 0 nothing of it runs any more; 1 something does; 2 wrong usage.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=ci/slurm/cluster.sh
. "$HERE/cluster.sh"

case "$#${2:-}" in 1 | 2--purge) ;; *) die 2 "usage: down.sh STATE [--purge]" ;; esac
[ -d "$1" ] || { echo "nothing at $1"; exit 0; }
S=$(cd "$1" && pwd -P)
if [ ! -e "$S/.cluster" ]; then   # not ours, so nothing is removed but an empty folder
  [ "${2:-}" != --purge ] || [ -n "$(ls -A "$S")" ] || rmdir "$S"
  echo "no cluster at $S"
  exit 0
fi
forget_the_callers_slurm
export SLURM_CONF=$S/etc/slurm.conf
exec 9<"$S"
flock -w 120 9 || die 1 "another up.sh or down.sh works on $S"

# So that waiting srun and sbatch end with a message, and slurmctld notes how the jobs ended.
if alive "$S/run/slurmctld.pid" slurmctld; then
  mapfile -t jobs < <(timeout 5 squeue -h -o %A 2>/dev/null | sort -u)
  if [ ${#jobs[@]} -gt 0 ]; then
    timeout 5 scancel --signal=KILL --full "${jobs[@]}" >/dev/null 2>&1 || true
    timeout 5 scancel "${jobs[@]}" >/dev/null 2>&1 || true
    for _ in $(seq 20); do
      [ -n "$(timeout 2 squeue -h 2>/dev/null)" ] || break
      sleep 0.1
    done
  fi
  kill -TERM "$(cat "$S/run/slurmctld.pid" 2>/dev/null)" 2>/dev/null || true   # it saves its state
  for _ in $(seq 60); do
    alive "$S/run/slurmctld.pid" slurmctld || break
    sleep 0.05
  done
fi

# The rest has nothing to save. Again and again, as what dies may just have started another.
for _ in $(seq 50); do
  mapfile -t left < <(processes_of "$S")
  [ ${#left[@]} -gt 0 ] || break
  kill -KILL "${left[@]}" 2>/dev/null || true
  sleep 0.1
done
if [ ${#left[@]} -gt 0 ]; then
  for pid in "${left[@]}"; do
    echo "$pid $(tr '\0' ' ' < "/proc/$pid/cmdline")" >&2 || true
  done
  die 1 "still alive: ${left[*]}"
fi
rm -f "$S"/run/*.pid "$S"/run/munge.sock* "$S"/spool/*/*.sock
if grep -qs '^ConstrainRAMSpace' "$S/etc/cgroup.conf"; then
  find /sys/fs/cgroup/*/slurm_n[1-9] -depth -type d -exec rmdir {} \; 2>/dev/null || true
fi
[ "${2:-}" != --purge ] || rm -rf "$S"
echo stopped
