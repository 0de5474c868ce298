#!/usr/bin/env bash
# A whole release of the embedded default: the newest run in runs/ held against release.local.yaml,
# packed, signed with a key that is made for it, and verified.
# usage: ci/maintenance/local_release.sh [FOLDER]
# FOLDER, which must not be there, gets pack and keys (default: release).
# Exit status: that of the first verb that refuses; 2 where no run is there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=${1:-release}
perfgate=$PWD/.venv/bin/perfgate
run=$(find runs -mindepth 2 -maxdepth 2 -name run.json -printf '%T@ %h\n' 2>/dev/null | sort -n | tail -n 1 | cut -d' ' -f2-)
[ -n "$run" ] || { echo "no run in runs/: make local first" >&2; exit 2; }
[ ! -e "$folder" ] || { echo "$folder is there already: remove it, or give another folder" >&2; exit 2; }
mkdir "$folder"
verb() {
  echo "\$ perfgate release $*"
  "$perfgate" release "$@"
}
verb check release.local.yaml "$run"
verb pack release.local.yaml "$run" --output "$folder/release.tar" --yes
verb keygen --output "$folder/key"
verb sign "$folder/release.tar" --key "$folder/key"
verb verify "$folder/release.tar" --key "$folder/key.pub" --policy release.local.yaml
