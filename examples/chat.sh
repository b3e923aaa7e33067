#!/usr/bin/env bash
# A chat with nothing but curl: start a run, hang up after three frames, come back
# with Last-Event-ID, and get exactly the rest. Asks you before a tool that needs consent.
#
#   bash examples/chat.sh "remember that the door code is 4711"
#
# POLYLOG_URL is the server; POLYLOG_TOKEN a token or API key, where a login is needed.
set -euo pipefail

server=${POLYLOG_URL:-http://127.0.0.1:3000}
input=${1:-what time is it}
headers=(-H 'Content-Type: application/json' -H 'Accept: text/event-stream')
if [[ -n ${POLYLOG_TOKEN:-} ]]; then headers+=(-H "Authorization: Bearer $POLYLOG_TOKEN"); fi

# Text inside JSON strings has its quotes escaped, so a bare "name":"value" is always a field.
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" <<<"$2"; }
quoted=${input//\\/\\\\}
quoted=${quoted//\"/\\\"}

# Each frame is four lines: id, event, data, and a blank one. `head` hangs up after three of them.
first=$(curl -sN "${headers[@]}" "$server/v1/agent/chat" -d "{\"input\":\"$quoted\"}" | head -n 12) || true
run=$(field requestId "$first" | head -n 1)
if [[ -z $run ]]; then
  echo "The server did not start a run: ${first:-no answer from $server}" >&2
  exit 1
fi
last=$(sed -n 's/^id: //p' <<<"$first" | tail -n 1)
printf '%s\n\n(hung up after frame %s of run %s, coming back)\n\n' "$first" "$last" "$run"

while IFS= read -r -u 3 line; do
  printf '%s\n' "$line"
  if [[ $line == data:*'"status":"awaiting_input"'* ]]; then
    answer=n
    read -r -p "$(field name "$line") wants to run. Allow it? [y/N] " answer || true
    decision=reject
    if [[ $answer == y* ]]; then decision=confirm; fi
    curl -s "${headers[@]}" -X POST "$server/v1/tool-confirmations/$(field confirmationId "$line")/$decision" >/dev/null
  fi
done 3< <(curl -sN "${headers[@]}" -H "Last-Event-ID: $last" "$server/v1/agent/runs/$run/stream")
