#!/usr/bin/env bash
# Compares two model configurations with nothing but curl: both answers come side by side,
# you say which is better, and then you learn which was which.
#
#   bash examples/ab.sh "what time is it" default default
#
# POLYLOG_URL is the server; CLIENT_ID is who you are, where nobody is logged in.
set -euo pipefail

server=${POLYLOG_URL:-http://127.0.0.1:3000}
client=${CLIENT_ID:-shell}
input=${1:-what time is it}
quoted=${input//\\/\\\\}
quoted=${quoted//\"/\\\"}
json='Content-Type: application/json'
answers=$(mktemp -d)
trap 'rm -r "$answers"' EXIT

last=
while IFS= read -r frame || [[ -n $frame ]]; do
  case $frame in
    '{"type":"chunk"'*) # The text as JSON writes it: quotes are turned back here, the rest by printf.
      arm=${frame##*'"arm":"'}
      text=${frame#'{"type":"chunk","content":"'}
      text=${text%'","conversation_id"'*}
      printf '%b' "${text//\\\"/\"}" >>"$answers/${arm%%\"*}" ;;
    '{"type":"done"'* | '{"type":"error"'*) last=$frame ;;
    '') ;;
    *) printf '%s\n' "$frame" ;; # tools
  esac
done < <(curl -sN -H "$json" -H 'Accept: application/x-ndjson' "$server/api/ab/compare" \
  -d "{\"message\":\"$quoted\",\"client_id\":\"$client\",\"config_a\":\"${2:-default}\",\"config_b\":\"${3:-default}\"}" | tee "$answers/all")

if [[ $last != *'"vote_requested":true'* ]]; then
  printf 'There is nothing to vote on: %s\n' "$(tail -n 1 "$answers/all")"
  exit 1
fi
for arm in a b; do printf -- '--- Answer %s ---\n%s\n\n' "$arm" "$(cat "$answers/$arm")"; done

id=$(sed 's/.*"comparison_id":"\([^"]*\)".*/\1/' <<<"$last")
read -r -p 'Which one is better? [a/b/tie/both_bad] ' vote
printf '\nYour vote, and which was which:\n'
curl -s -H "$json" "$server/api/ab/preference" -d "{\"comparison_id\":\"$id\",\"preference\":\"$vote\",\"client_id\":\"$client\"}"
printf '\n\nAll your votes so far:\n'
curl -s "$server/api/ab/metrics?client_id=$client"
printf '\n'
