#!/usr/bin/env bash
# What the whole run means for EVENT: pass and warn end in 0, a block does not.
# Environment: EVENT, STATUS (of the merged report; empty: there is none), ROWS_RESULT.
set -euo pipefail
ends_in=0
said=$(perfgate ci decision --event "$EVENT" "$STATUS") || ends_in=$?
printf '\n%s\n' "${said:-block: $EVENT: no report, so nothing is claimed}" | tee -a "$GITHUB_STEP_SUMMARY"
case $said in
  pass:*) ;;
  warn:*) echo "::warning::$said" ;;
  *) echo "::error::${said:-no report, so nothing is claimed}" ;;
esac
if [ $ends_in -eq 0 ] && [ "$ROWS_RESULT" != success ]; then
  echo "::error::a GPU job ended as $ROWS_RESULT though its numbers are good: look at its log"
  ends_in=11
fi
exit $ends_in
