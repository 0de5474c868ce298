#!/usr/bin/env bash
# For other scripts to source: runs what prints lines of run folders.
set -euo pipefail
# What a run folder holds is no command to the runner, whatever it looks like.
unheeded() {  # COMMAND… : runs it with GitHub's commands stopped; its status
  local token ended=0
  token=$(python3 -c 'import secrets; print(secrets.token_hex(16))')
  echo "::stop-commands::$token"
  "$@" || ended=$?
  printf '\n::%s::\n' "$token"
  return $ended
}
