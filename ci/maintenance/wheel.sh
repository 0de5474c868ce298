#!/usr/bin/env bash
# perfgate as people have it who install it: the wheel in an environment of its own, a gate repository
# outside the checkout, a rehearsal, a first run, a promoted baseline, a verdict, a regression, a
# release with its evidence, which another environment verifies.
# usage: ci/maintenance/wheel.sh [PYTHON]    (default: python3)
# The engine is a mock program, whose speed is made up: it is a gate repository's own engine here.
set -euo pipefail
python=${1:-python3}
checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

expect() {  # STATUS COMMAND... : show the command, run it, and compare its exit status
  local expected=$1 status=0
  shift
  echo "\$ $*"
  "$@" </dev/null || status=$?
  if [ $status -ne "$expected" ]; then
    echo "== FAILED: exit status $status, expected $expected: $*" >&2
    exit 1
  fi
  echo "== exit status $status"
}

echo "== a wheel, and an environment that holds nothing else: $("$python" --version)"
"$python" -m venv "$work/build"
"$python" -m venv --without-pip "$work/env"
pinned=(install --quiet --no-deps --no-build-isolation --no-compile)
"$work/build/bin/python" -m pip "${pinned[@]}" --require-hashes -r "$checkout/requirements/build.txt"
"$work/build/bin/python" -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$work/dist" "$checkout"
pip_in() {  # ENVIRONMENT WORD... : the pip of the build's environment, for one that has none
  "$work/build/bin/python" -m pip --python "$work/$1/bin/python" "${@:2}"
}
pip_in env "${pinned[@]}" --require-hashes -r "$checkout/requirements/base.txt"
pip_in env "${pinned[@]}" "$work"/dist/*.whl
pip_in env check
"$work/env/bin/python" "$checkout/ci/maintenance/bill_of_materials.py"
PATH=$work/env/bin:$PATH
unset PYTHONPATH PYTHONDONTWRITEBYTECODE "${!PERFGATE_@}"
cp -r "$checkout/tests/standins" "$work/engines"

cd "$work"
expect 0 perfgate init gate
expect 0 perfgate init gate --ci github
expect 0 perfgate init gate --ci gitlab
cd gate
expect 0 perfgate init .
expect 0 perfgate --version
expect 0 perfgate scenarios list -m b200
expect 0 pytest -m b200 --collect-only --quiet
expect 13 pytest -m b200 --rehearse -n 2
expect 12 pytest -m b200
expect 12 pytest -m b200 --record

echo "== an engine and a scenario of one's own"
export PYTHONPATH=$work/engines PERFGATE_STANDIN_COUNTER=$work/starts
sed -e 's/reference: self/reference: stored/; s/reference_starts: 4/reference_starts: 1/' \
  -e 's/noise: measured/bands: {output_throughput: 0.25}/' "$work/engines/standin.yaml" > scenarios/standin.yaml
echo 'pytest_plugins = ["perfgate.suite.plugin", "standin"]' > conftest.py
tests=(perf_tests/test_serving.py perf_tests/test_sweep.py -m standin)
expect 12 pytest "${tests[@]}" --engine-commit aaa --run-dir runs/unjudged
expect 0 pytest "${tests[@]}" --engine-commit aaa --run-dir runs/first --record
expect 0 perfgate baseline record runs/first
expect 0 perfgate baseline promote .perfgate/candidates/cpu/standin-serve/aaa.json --by Ada --reason "the first"
expect 0 perfgate baseline list
expect 0 pytest "${tests[@]}" --engine-commit bbb --gate --run-dir runs/second
expect 1 pytest "${tests[@]}" --engine-commit ccc --gate --inject engine.settings.cpu_threads=1
test -s baselines/cpu/standin-serve/aaa.json
test -s runs/second/summary.md

echo "== a release: its policy, its evidence, its signature"
commit=$(printf 'b%.0s' $(seq 40))
expect 0 pytest "${tests[@]}" --engine-commit "$commit" --gate --run-dir runs/third
cat > release.yaml <<EOF
schema_version: 1
release: stand-in 1.0
build: {engine: stand-in, commit: $commit}
required: [{name: serving, tests: [standin-serve-c1, standin-serve-c2], hardware: cpu}]
false_alarms: 0.5
EOF
imports=(--import standin)
expect 0 perfgate release check release.yaml runs/third "${imports[@]}"
expect 23 perfgate release check release.yaml runs/second "${imports[@]}"
expect 0 perfgate release pack release.yaml runs/third --output ../one.tar --yes "${imports[@]}"
expect 0 perfgate release pack release.yaml runs/third --output ../two.tar --yes "${imports[@]}"
expect 0 cmp ../one.tar ../two.tar
expect 0 perfgate release keygen --output ../key
expect 0 perfgate release sign ../one.tar --key ../key "${imports[@]}"

echo "== and its verification, in an environment that has nothing but perfgate, the pack and the key"
"$python" -m venv --without-pip "$work/auditor"
pip_in auditor "${pinned[@]}" --require-hashes -r "$checkout/requirements/base.txt"
pip_in auditor "${pinned[@]}" "$work"/dist/*.whl
mkdir "$work/audit" && cp ../one.tar ../key.pub "$work/audit" && cd "$work/audit"
rm -rf "$work/gate"
verify=("$work/auditor/bin/perfgate" release verify)
expect 0 "${verify[@]}" one.tar --key key.pub --commit "$commit" "${imports[@]}"
expect 30 "${verify[@]}" one.tar --key key.pub --commit "$(printf 'c%.0s' $(seq 40))" "${imports[@]}"
printf x | dd of=one.tar bs=1 seek=100000 conv=notrunc status=none
expect 25 "${verify[@]}" one.tar --key key.pub "${imports[@]}"
