#!/usr/bin/env bash
# Start a real, private Slurm on this one machine: Debian 12, root, no systemd.
#
#   up.sh STATE      start it, or fix what is missing; then:  . STATE/env.sh
#
# STATE is an empty or new folder, or that of an earlier call; path of 70 characters at most.
# What the cluster is: nodes n1, n2, ... with a slurmd, an address, a host name and a /dev/shm of
# their own, 8 pretended GPUs each, PMIx. Everything is below STATE, but for the packages.
#
# Settings, from the environment (a change of one makes the cluster again):
#   SLURM_WITH_NODES=4     number of nodes, 1 to 9
#   SLURM_WITH_GPUS=8      GPUs of a node, 1 to 9
#   SLURM_WITH_SSHD=1      an sshd on each node, port SLURM_WITH_SSH_PORT=2233, for mpirun
#   SLURM_WITH_CGROUP=1    memory limits end in OUT_OF_MEMORY; needs a writable cgroup v1, and only
#                          one such cluster per machine (the nodes' names are in the groups' names)
#   SLURM_WITH_UTS=0       no host names of their own (what happens anyway where unshare is refused)
#   SLURM_WITH_CONF=FILE   more lines for slurm.conf
#   SLURM_WITH_INSTALL=0   do not install packages
#
# Exit status: 0 all nodes are ready; 1 the cluster does not start; 2 wrong usage or settings;
# 3 this machine cannot have it (not root, or packages that are missing cannot be installed).
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=ci/slurm/cluster.sh
. "$HERE/cluster.sh"

if [ $# -ne 1 ] || [ -z "$1" ]; then die 2 "usage: up.sh STATE"; fi
nodes=${SLURM_WITH_NODES:-4} gpus=${SLURM_WITH_GPUS:-8} conf=${SLURM_WITH_CONF:-}
sshd=${SLURM_WITH_SSHD:-0} ssh_port=${SLURM_WITH_SSH_PORT:-2233}
cgroup=${SLURM_WITH_CGROUP:-0} uts=${SLURM_WITH_UTS:-1} install=${SLURM_WITH_INSTALL:-1}
case "$nodes$gpus" in [1-9][1-9]) ;; *) die 2 "nodes and GPUs: 1 to 9, not $nodes and $gpus" ;; esac
[ -z "$conf" ] || [ -r "$conf" ] || die 2 "SLURM_WITH_CONF: cannot read $conf"
[ "$(id -u)" = 0 ] || die 3 "must run as root"
mkdir -p "$1" && S=$(cd "$1" && pwd -P)
case $S in *[!A-Za-z0-9._/-]*) die 2 "STATE may hold only A-Z a-z 0-9 . _ / - : $S" ;; esac
[ ${#S} -le 70 ] || die 2 "STATE is longer than 70 characters (a socket's path ends at 107): $S"
[ -e "$S/.cluster" ] || [ -z "$(ls -A "$S")" ] || die 2 "neither empty nor a cluster's: $S"
forget_the_callers_slurm
umask 022
# One call at a time for a STATE. The daemons must not inherit the lock, hence 9<&- below.
exec 9<"$S"
flock -w 120 9 || die 1 "another up.sh or down.sh works on $S"

# A change of settings makes the cluster again.
settings="v1 $nodes $gpus $sshd $ssh_port $cgroup $uts $(cksum < "${conf:-/dev/null}")"
if [ -s "$S/.cluster" ] && [ "$(cat "$S/.cluster")" != "$settings" ]; then
  flock -u 9 && "$HERE/down.sh" "$S" >/dev/null && flock -w 120 9
  rm -rf "${S:?}"/{etc,state,log}
fi
echo "$settings" > "$S/.cluster"
mkdir -p "$S"/{dev,etc,log,run,state}
chmod a+x "$S"   # munged refuses a socket that not all can reach; mktemp -d makes such folders
for ((i = 1; i <= nodes; i++)); do mkdir -p "$S/spool/n$i" "$S/tmp/n$i"; done

packages=(slurmctld slurmd slurm-client munge libpmix2 openmpi-bin)
[ "$sshd" = 0 ] || packages+=(openssh-server openssh-client)
INSTALL=$install "$HERE/packages.sh" "$S/log/apt.log" "${packages[@]}" 9<&-

# ---------------------------------------------------------------- files
unshare_works() { unshare --uts --mount -- "$HERE/as_host.sh" probe "$1" true 2>/dev/null; }
if [ ! -e "$S/etc/complete" ]; then
  # Addresses and a block of 10 ports of its own, so that clusters can run side by side. The lock
  # is for two that start at once; it is held until the daemons listen.
  exec 8<"$HERE"
  flock -w 120 8 || die 1 "another up.sh does not get its daemons started"
  while
    net=127.$((64 + RANDOM % 64)).$((RANDOM % 256)) port=$((17000 + RANDOM % 1500 * 10))
    taken "$net.1" "$ssh_port" $(seq $port $((port + nodes)))
  do :; done
  track=linuxproc task=none over_memory=OverMemoryKill
  if [ "$cgroup" = 1 ]; then
    for group in freezer memory; do
      [ -w /sys/fs/cgroup/$group/tasks ] || die 2 "SLURM_WITH_CGROUP=1 needs $group of cgroup v1"
    done
    track=cgroup task=cgroup over_memory=UsePss
  fi
  fill() {  # TEMPLATE NODE : the template with this cluster's values
    sed -e "s|@STATE@|$S|g; s|@NET@|$net|g; s|@PORT@|$port|g; s|@NODE_PORTS@|$((port + 1))-$((port + nodes))|g; s|@SSH_PORT@|$ssh_port|g" \
      -e "s|@NODES@|$nodes|g; s|@NODE@|$2|g; s|@GPUS@|$gpus|g; s|@LAST_GPU@|$((gpus - 1))|g" \
      -e "s|@TRACK@|$track|g; s|@TASK@|$task|g; s|@OVER_MEMORY@|$over_memory|g" "$HERE/etc/$1"
  }
  { fill slurm.conf ''; cat "${conf:-/dev/null}"; } > "$S/etc/slurm.conf"
  fill gres.conf '' > "$S/etc/gres.conf"
  fill cgroup.conf '' > "$S/etc/cgroup.conf"
  if [ "$cgroup" = 1 ]; then echo ConstrainRAMSpace=yes >> "$S/etc/cgroup.conf"; fi
  cp "$HERE/etc/epilog.sh" "$S/etc/epilog.sh" && chmod 755 "$S/etc/epilog.sh"
  [ -e /etc/hosts ] || echo '127.0.0.1 localhost' > /etc/hosts
  cp /etc/hosts "$S/etc/hosts"
  for ((i = 1; i <= nodes; i++)); do echo "$net.$i n$i" >> "$S/etc/hosts"; done
  echo "127.0.0.1 login" >> "$S/etc/hosts"   # srun there listens at what its host's name stands for
  cp "$S/etc/hosts" "$S/etc/hosts.login"   # another file: down.sh knows the nodes by the first
  (umask 077 && head -c 1024 /dev/urandom > "$S/etc/munge.key")
  if [ "$sshd" = 1 ]; then
    rm -f "$S"/etc/ssh_{host_key,id}{,.pub}
    for k in ssh_host_key ssh_id; do ssh-keygen -q -t ed25519 -N '' -C "$k" -f "$S/etc/$k"; done
    fill ssh_config '' > "$S/etc/ssh_config"
    for ((i = 1; i <= nodes; i++)); do
      printf 'Host n%d\n  HostName %s.%d\n' "$i" "$net" "$i" >> "$S/etc/ssh_config"
      fill sshd_config "$i" > "$S/etc/sshd_config.n$i"
    done
  fi
  [ "$uts" = 0 ] || unshare_works "$S/etc/hosts" || uts=0
  # Daemons that listen at what their host's name stands for need names of their own.
  [ "$uts" = 1 ] || sed -i 's/,NoInAddrAny$//' "$S/etc/slurm.conf"
  fill env.sh '' > "$S/env.sh"
  if [ "$sshd" = 1 ]; then
    echo "export OMPI_MCA_plm_rsh_agent='ssh -F $S/etc/ssh_config'" >> "$S/env.sh"
  fi
  # Without host names of their own, two nodes take each other's shared memory for theirs.
  if [ "$uts" = 0 ]; then echo "export OMPI_MCA_btl=self,tcp" >> "$S/env.sh"; fi
  echo "$uts" > "$S/etc/complete"
fi
for ((i = 0; i < gpus; i++)); do   # a GPU's file must be a device: copies of /dev/null
  [ -c "$S/dev/nvidia$i" ] || mknod -m 666 "$S/dev/nvidia$i" c 1 3
done

# ---------------------------------------------------------------- daemons
uts=$(cat "$S/etc/complete")
export SLURM_CONF=$S/etc/slurm.conf CI_SLURM_STATE=$S   # the second marks the daemons, and only them
started=0
begin() {  # NAME PROGRAM ARGUMENT... : start that daemon, which leaves NAME.pid, unless it runs
  local name=$1; shift
  ! alive "$S/run/$name.pid" "${1##*/}" || return 0
  started=1
  case $name in *.n[1-9])
    if [ "$uts" = 1 ]; then
      set -- unshare --uts --mount -- "$HERE/as_host.sh" "${name#*.}" "$S/etc/hosts" "$@"
    fi ;;
  esac
  "$@" </dev/null >"$S/log/$name.err" 2>&1 8<&- 9<&- ||
    { tail -qn 20 "$S/log/$name".{err,log} >&2; die 1 "$1 ($name) did not start"; }
}
alive "$S/run/munged.pid" munged || rm -f "$S"/run/munge.sock*
begin munged munged --key-file="$S/etc/munge.key" --socket="$S/run/munge.sock" --num-threads=4 \
  --pid-file="$S/run/munged.pid" --seed-file="$S/run/munged.seed" --log-file="$S/log/munged.log"
begin slurmctld slurmctld
for ((i = 1; i <= nodes; i++)); do begin "slurmd.n$i" slurmd -N "n$i"; done
if [ "$sshd" = 1 ]; then
  mkdir -p /run/sshd   # sshd insists on it
  for ((i = 1; i <= nodes; i++)); do
    begin "sshd.n$i" "$(command -v sshd)" -f "$S/etc/sshd_config.n$i" -E "$S/log/sshd.n$i.log"
  done
fi

# ---------------------------------------------------------------- ready?
for _ in $(seq 150); do   # slurmctld and slurmd may fail after they said they had started
  states=$(sinfo -h -N -o '%N %T' 2>/dev/null | sort -u) || states=
  running=0
  for ((i = 1; i <= nodes; i++)); do
    if alive "$S/run/slurmd.n$i.pid" slurmd; then running=$((running + 1)); fi
  done
  ready=$(grep -cE ' (idle|mixed|allocated|completing)$' <<< "$states" || true)
  if [ "$running $ready" = "$nodes $nodes" ]; then
    word="up already"; [ $started = 0 ] || word=started
    echo "$word: $nodes nodes, $gpus pretended GPUs each, own host names: $uts, sshd: $sshd" \
      "(. $S/env.sh)"
    exit 0
  fi
  # What a test drained, or whose slurmd was killed, comes back to service.
  bad=$(awk '$2 ~ /drain|down|fail|inval/ {print $1}' <<< "$states" | paste -sd, -)
  [ -z "$bad" ] || scontrol update "NodeName=$bad" State=RESUME >/dev/null 2>&1 || true
  sleep 0.1
done
{ sinfo -N -l; sinfo -R; tail -n 5 "$S"/log/slurm{ctld,d.n*}.log; } >&2 || true
die 1 "the nodes were not ready after 15 s"
