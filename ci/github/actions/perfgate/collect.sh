#!/usr/bin/env bash
# All rows as one run: the report, the step summary, annotations; the status into the output `status`, the
# scenarios with enough recorded sessions for a first baseline into `enough`.
# Environment: MATRIX (the rows), MATRIX_RESULT and ROWS_RESULT (how those jobs ended), REHEARSE, MODE,
# RUNS (a folder with one run folder a row), REPORT (where the report goes).
# Ends in 0 where the status could be told, whatever it is: the gate is another step.
set -euo pipefail
refuse() {  # SENTENCE : nothing is claimed, in the summary and as an annotation
  printf '**Nothing is claimed of the build:** %s\n' "$1" >>"$GITHUB_STEP_SUMMARY"
  echo "::error::nothing is claimed of the build: $1"
  exit 1
}
# shellcheck source-path=SCRIPTDIR source=unheeded.sh
. "${BASH_SOURCE[0]%/*}/unheeded.sh"
[ "$MATRIX_RESULT" = success ] || refuse "the job that makes the matrix ended as: $MATRIX_RESULT"
case $ROWS_RESULT in
  success | failure) ;;
  *) refuse "the GPU jobs ended as: $ROWS_RESULT" ;;
esac
mkdir -p "$REPORT"
printf '%s\n' "$MATRIX" >"$REPORT/matrix.json"
shopt -s nullglob
folders=("$RUNS"/*/)
[ ${#folders[@]} -gt 0 ] || refuse "no row left a run folder"
gate=(--gate)
case $REHEARSE/$MODE in true/gate | */record) gate=() ;; esac
status=0
unheeded perfgate report "${folders[@]}" --matrix "$REPORT/matrix.json" --to "$REPORT" "${gate[@]}" \
  2>"$REPORT/errors.txt" || status=$?
unheeded cat "$REPORT/errors.txt"
if [ ! -s "$REPORT/report.md" ]; then
  # Every line indented: whatever it holds, Markdown shows it as it is.
  { echo; head -c 2000 "$REPORT/errors.txt" | sed 's/^/    /'; echo; } >>"$GITHUB_STEP_SUMMARY"
  refuse "the runs could not be made one report (status $status)"
fi
cat "$REPORT/report.md" >>"$GITHUB_STEP_SUMMARY"
cat "$REPORT/annotations.txt"
enough=$(perfgate baseline ready "${folders[@]}") || enough=
enough=${enough//$'\n'/ }
# Names of scenarios and nothing else: a person may paste the command.
[[ $enough =~ ^[a-z0-9\ -]*$ ]] || enough=
if [ -n "$enough" ]; then
  start="gh workflow run baseline_update.yml --field run-id=$GITHUB_RUN_ID --field scenarios='$enough'"
  # shellcheck disable=SC2016 # Markdown's own
  printf '\n**Enough for a baseline.** The nightly of the default branch proposes it. By hand: `%s`\n' "$start" \
    >>"$GITHUB_STEP_SUMMARY"
  echo "::notice::enough for a baseline; the nightly of the default branch proposes it; by hand: $start"
fi
printf 'enough=%s\n' "$enough" >>"$GITHUB_OUTPUT"
echo "status=$status" >>"$GITHUB_OUTPUT"
