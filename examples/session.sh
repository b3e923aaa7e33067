#!/usr/bin/env bash
# The session API with nothing but curl: say something, read the answer as it comes, and say
# something more in the same session.
#
#   bash examples/session.sh 'use tool fs_write {"path":"a.txt","content":"hello"}' 'use tool fs_read {"path":"a.txt"}'
#
# POLYLOG_URL is the server; POLYLOG_KEY is sent as X-API-Key where it wants a login.
set -euo pipefail

server=${POLYLOG_URL:-http://127.0.0.1:3000}
agent=
failed=0
if [[ $# == 0 ]]; then set -- 'what time is it' 'hello again'; fi

# Text inside JSON strings has its quotes escaped, so a bare "name":"value" is always a field.
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" <<<"$2"; }

say() {
  local quoted=${1//\\/\\\\}
  quoted=${quoted//\"/\\\"}
  local body="{\"message\":\"$quoted\",\"agentId\":\"$agent\",\"context\":{\"userId\":\"shell\"}}"
  curl -sN -H 'Content-Type: application/json' ${POLYLOG_KEY:+-H "X-API-Key: $POLYLOG_KEY"} "$server/api/chat/stream" -d "$body"
}

for message in "$@"; do
  printf '> %s\n' "$message"
  ended=
  while IFS= read -r -u 3 line || [[ -n $line ]]; do
    frame=${line#data: }
    case $frame in
      '') ;;
      '{"type":"start"'*)
        agent=$(field agentId "$frame")
        printf '(session %s)\n' "$agent" ;;
      '{"type":"heartbeat"'*) ;;
      '{"type":"text"'*) # The text as JSON writes it: quotes are turned back here, the rest by printf.
        text=${frame#'{"type":"text","content":"'}
        text=${text%'","timestamp"'*}
        printf '%b' "${text//\\\"/\"}" ;;
      '{"type":"done"'*) ended=yes ;;
      '{"type":"error"'*) failed=1; printf '\n%s\n' "$frame" ;;
      *) printf '\n%s\n' "$frame" ;; # tools; or what is wrong with the request
    esac
  done 3< <(say "$message")
  printf '\n\n'
  if [[ -z $ended ]]; then exit 1; fi
done
exit "$failed"
