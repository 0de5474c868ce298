#!/usr/bin/env bash
# Holds the runs against the release policy; where that passes, packs the evidence into EVIDENCE.
# Environment: POLICY, RUNS (a folder with one run folder a row), EVIDENCE.
# Ends in 0 only where the policy is met: `perfgate ci decision` says what each status means.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=unheeded.sh
. "${BASH_SOURCE[0]%/*}/unheeded.sh"
shopt -s nullglob
folders=("$RUNS"/*/)
[ ${#folders[@]} -gt 0 ] || { echo "::error::no row left a run folder, so nothing is released"; exit 1; }
mkdir -p "$EVIDENCE"
status=0
unheeded perfgate release check "$POLICY" "${folders[@]}" || status=$?
perfgate release check "$POLICY" "${folders[@]}" --format markdown >"$EVIDENCE/certificate.md" \
  2>/dev/null || true
cat "$EVIDENCE/certificate.md" >>"$GITHUB_STEP_SUMMARY"
ends_in=0
said=$(perfgate ci decision --event release "$status") || ends_in=$?
printf '\n%s\n' "$said" | tee -a "$GITHUB_STEP_SUMMARY"
case $said in
  pass:*) ;;
  warn:*) echo "::warning::$said" ;;
  *) echo "::error::${said:-no decision, so nothing is released}"; exit $((ends_in ? ends_in : 11)) ;;
esac
unheeded perfgate release pack "$POLICY" "${folders[@]}" --output "$EVIDENCE/release.tar" --yes
