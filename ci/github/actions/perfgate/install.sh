#!/usr/bin/env bash
# Puts perfgate on PATH for the steps that follow: the environment that PYTHON_WITH_PERFGATE names, or
# PERFGATE_PYTHON of the runner, else one made of REQUIREMENTS (exact versions, with hashes) and, where it is given, REQUIREMENT.
# A build.txt beside REQUIREMENTS comes first: it builds what comes as source, and nothing else is fetched for that.
set -euo pipefail
python_with_perfgate=${PYTHON_WITH_PERFGATE:-${PERFGATE_PYTHON:-}}
if [ -n "$python_with_perfgate" ]; then
  bin=$(dirname "$python_with_perfgate")
else
  python=python3
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    { echo "::error::perfgate needs Python 3.11 or newer on this runner"; exit 1; }
  "$python" -m venv "$RUNNER_TEMP/perfgate"
  bin=$RUNNER_TEMP/perfgate/bin
  pip=("$bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation)
  build=$(dirname "${REQUIREMENTS:?}")/build.txt
  [ ! -f "$build" ] || "${pip[@]}" --require-hashes -r "$build"
  "${pip[@]}" --require-hashes -r "$REQUIREMENTS"
  [ -z "$REQUIREMENT" ] || "${pip[@]}" "$REQUIREMENT"
  "$bin/python" -m pip check
fi
version=$("$bin/perfgate" --version)
echo "$version"
echo "version=$version" >>"$GITHUB_OUTPUT"
echo "$bin" >>"$GITHUB_PATH"
# By its name: also where the checkout belongs to another user than the job.
echo "PERFGATE_ROOT=$GITHUB_WORKSPACE" >>"$GITHUB_ENV"
