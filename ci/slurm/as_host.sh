#!/bin/sh
# Become a host: its name, its /etc/hosts, its shared memory; then run a command as it.
#   unshare --uts --mount -- as_host.sh NAME HOSTS_FILE COMMAND...
set -eu
name=$1 hosts=$2
shift 2
hostname "$name"
mount --bind "$hosts" /etc/hosts
mount -t tmpfs -o mode=1777 shm /dev/shm
exec "$@"
