#!/usr/bin/env bash
# Signs the pack in EVIDENCE with SIGNING_KEY (empty: it stays unsigned, and that is said), then verifies it.
# Environment: SIGNING_KEY (text of the private key), POLICY, PUBLIC_KEY (a file; empty: the policy's signers),
# EVIDENCE, RUNNER_TEMP.
set -euo pipefail
pack=$EVIDENCE/release.tar
if [ -z "${SIGNING_KEY:-}" ]; then
  echo "::warning::no key (secret PERFGATE_RELEASE_KEY): the pack is not signed, and proves nothing to others"
  printf '\nThe pack is **not signed**.\n' >>"$GITHUB_STEP_SUMMARY"
  exit 0
fi
key=$RUNNER_TEMP/perfgate-release-key
trap 'rm -f "$key"' EXIT
(umask 077 && printf '%s\n' "$SIGNING_KEY" >"$key")
unset SIGNING_KEY
perfgate release sign "$pack" --key "$key"
rm -f "$key"
trust=(--policy "$POLICY")
[ -z "$PUBLIC_KEY" ] || trust+=(--key "$PUBLIC_KEY")
perfgate release verify "$pack" "${trust[@]}"
printf '\nThe pack is signed, and was verified.\n' >>"$GITHUB_STEP_SUMMARY"
