#!/usr/bin/env bash
# What executes the pipelines' files in the tests: node, npm, rsync and the packages of package-lock.json.
#   node.sh [LOG]      installs node and npm from Debian as root, where they are missing
# Exit status: 0 all is there; 3 it cannot be had here.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
log=${1:-$(mktemp)}
missing=()
command -v node >/dev/null || missing+=(nodejs)
command -v npm >/dev/null || missing+=(npm)
command -v rsync >/dev/null || missing+=(rsync)  # gitlab-ci-local copies with it
[ ${#missing[@]} -eq 0 ] || "$here/../slurm/packages.sh" "$log" "${missing[@]}"
node -e 'process.exit(Number(process.versions.node.split(".")[0]) < 20 ? 1 : 0)' ||
  { echo "node $(node --version) is too old: 20 or newer is needed" >&2; exit 3; }
cd "$here"
if ! cmp -s package-lock.json node_modules/.installed-lock; then
  npm ci --no-progress >>"$log" 2>&1 || { tail -n 15 "$log" >&2; exit 3; }
  cp package-lock.json node_modules/.installed-lock
fi
