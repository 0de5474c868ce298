#!/usr/bin/env bash
# Prepare a Debian for the tests of the report's page in a browser: Chromium and its driver from
# Debian, and axe-core, which looks for barriers, from npm by version and hash.
#   packages.sh [FOLDER]     FOLDER gets axe.min.js (default: .perfgate/browser)
# Exit status: 0 all is there; 3 something is missing and cannot be had here.
set -euo pipefail
folder=${1:-.perfgate/browser}
AXE=4.14.1
AXE_SHA256=29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c  # of its axe.min.js
cannot() { echo "cannot test in a browser here: $*" >&2; exit 3; }

missing=()
command -v chromium >/dev/null || missing+=(chromium)
command -v chromedriver >/dev/null || missing+=(chromium-driver)
is_axe() { echo "$AXE_SHA256  $folder/axe.min.js" | sha256sum --check --status 2>/dev/null; }
is_axe || command -v npm >/dev/null || missing+=(npm)

if [ ${#missing[@]} -gt 0 ]; then
  command -v apt-get >/dev/null || cannot "missing: ${missing[*]} (the script installs them on Debian)"
  [ "$(id -u)" = 0 ] || cannot "missing: ${missing[*]}; run it as root"
  apt() {
    DEBIAN_FRONTEND=noninteractive timeout 900 apt-get -qq -o DPkg::Lock::Timeout=300 \
      -o Acquire::Retries=2 -o Acquire::http::Timeout=20 "$@" </dev/null >&2
  }
  # The lists may be good enough; if not, they are fetched.
  apt install -y --no-install-recommends "${missing[@]}" ||
    { apt update && apt install -y --no-install-recommends "${missing[@]}"; } ||
    cannot "apt-get could not install ${missing[*]}"
fi

if ! is_axe; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  (cd "$work" && npm pack "axe-core@$AXE" --silent --ignore-scripts >/dev/null) ||
    cannot "npm could not fetch axe-core $AXE"
  mkdir -p "$folder"
  tar -xOzf "$work/axe-core-$AXE.tgz" package/axe.min.js >"$folder/axe.min.js"
  is_axe || { rm -f "$folder/axe.min.js"; cannot "axe-core $AXE is not what it was: wrong SHA-256"; }
fi
echo "$(chromium --version 2>/dev/null), axe-core $AXE in $folder"
