#!/usr/bin/env bash
# Install the Debian packages that are missing, without starting any daemon of theirs.
#   packages.sh LOG PACKAGE...      with INSTALL=0: only say which are missing
# Exit status: 0 all are there; 3 one is missing and cannot be installed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
log=$1
shift
cannot() { echo "cannot have Slurm here: $*" >&2; exit 3; }

for program in dpkg-query apt-get; do
  command -v $program >/dev/null || cannot "no $program (the scripts are for Debian)"
done
exec 8</var/lib/dpkg
flock -w 600 8 || cannot "another installation does not end"
missing=()
for name in "$@"; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || missing+=("$name")
done
if [ ${#missing[@]} -gt 0 ]; then
  [ "${INSTALL:-1}" = 1 ] || cannot "missing packages: ${missing[*]}"
  # The packages' scripts would start daemons of their own, by programs that they find on dpkg's
  # PATH: there stand others before them, which do nothing. So no file of the machine says that no
  # daemon may start, which would go on saying so when this script is killed.
  apt() {
    DEBIAN_FRONTEND=noninteractive timeout 600 apt-get -qq -o DPkg::Lock::Timeout=300 \
      -o DPkg::Path="$here/no-daemons:/usr/sbin:/usr/bin:/sbin:/bin" \
      -o Acquire::Retries=2 -o Acquire::http::Timeout=20 "$@" </dev/null >>"$log" 2>&1 8<&-
  }
  # The lists may be good enough; if not, they are fetched.
  apt install -y --no-install-recommends "${missing[@]}" ||
    { apt update && apt install -y --no-install-recommends "${missing[@]}"; } ||
    { tail -n 15 "$log" >&2; cannot "apt-get could not install ${missing[*]}"; }
fi
# Slurm's PMIx plugin opens libpmix.so, a name that only the package libpmix-dev brings.
for folder in /usr/lib/*/pmix2/lib; do
  if [ -e "$folder/libpmix.so.2" ] && [ ! -e "$folder/libpmix.so" ]; then
    ln -sf libpmix.so.2 "$folder/libpmix.so"
  fi
done
