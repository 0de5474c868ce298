# What up.sh and down.sh share. To be sourced.
# shellcheck shell=bash
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH

die() {  # STATUS MESSAGE
  echo "${0##*/}: $2" >&2
  exit "$1"
}

forget_the_callers_slurm() {  # options and job variables of a caller are not for daemons
  local name
  for name in $(compgen -e | grep -E '^(SLURM|SLURMD|SBATCH|SALLOC|SRUN|SCANCEL|SQUEUE|SINFO)_' || true); do
    unset "$name"
  done
}

alive() {  # PIDFILE PROGRAM : does the daemon of that pid file run? (Its number may be another's now.)
  local pid
  [ -s "$1" ] && pid=$(cat "$1" 2>/dev/null) && grep -q "^$pid ($2) [^ZX]" "/proc/$pid/stat" 2>/dev/null
}

taken() {  # ADDRESS PORT... : does one of the ports answer?
  local address=$1 port
  shift
  for port in "$@"; do
    if (exec 3<>"/dev/tcp/$address/$port") 2>/dev/null; then return 0; fi
  done
  return 1
}

processes_of() {  # STATE : the processes of that cluster, however they detached themselves
  # A node's processes see the node's own /etc/hosts (as_host.sh). For the rest, and where unshare
  # is refused: a daemon has a pid file or CI_SLURM_STATE, and a job's process both SLURM_CONF and
  # SLURMD_NODENAME. A client that only read env.sh has none of these; it counts only if it is one
  # of Slurm's that would wait for ever.
  local file folder name pid state
  {
    for file in "$1"/run/*.pid; do
      name=${file##*/}
      if alive "$file" "${name%%.*}"; then cat "$file" 2>/dev/null || true; fi
    done
    for folder in /proc/[0-9]*; do
      if [ "$folder/root/etc/hosts" -ef "$1/etc/hosts" ]; then echo "${folder#/proc/}"; fi
    done
    # grep fails where a process has just ended, or is not to be looked into
    { grep -lzsxF "CI_SLURM_STATE=$1" /proc/[0-9]*/environ || true; } | cut -d/ -f3
    { grep -lzsxF "SLURM_CONF=$1/etc/slurm.conf" /proc/[0-9]*/environ || true; } |
      while read -r file; do
        folder=${file%/environ}
        case $(cat "$folder/comm" 2>/dev/null || true) in
          srun | salloc | sbatch | slurmstepd) echo "${folder#/proc/}" ;;
          *) if grep -qzs '^SLURMD_NODENAME=' "$file"; then echo "${folder#/proc/}"; fi ;;
        esac
      done
  } | sort -un | while read -r pid; do
    state=$(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null) || continue
    case $state in Z* | X* | '') ;; *) [ "$pid" = $$ ] || echo "$pid" ;; esac
  done
}
