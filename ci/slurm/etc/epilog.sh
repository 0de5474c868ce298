#!/bin/sh
# Slurm runs this on each node when a job ends: what the job left behind (setsid, nohup) ends too,
# as it would on a cluster with cgroups.
# shellcheck disable=SC2013  # no blanks in these names
for file in $(grep -lzsxF "SLURM_JOB_ID=$SLURM_JOB_ID" /proc/[0-9]*/environ); do
  pid=${file#/proc/}
  pid=${pid%/environ}
  [ "$pid" != $$ ] || continue
  if grep -qzsxF "SLURM_CONF=$SLURM_CONF" "$file" &&
    grep -qzsxF "SLURMD_NODENAME=$SLURMD_NODENAME" "$file"; then
    kill -KILL "$pid" 2>/dev/null
  fi
done
exit 0
