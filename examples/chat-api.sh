#!/usr/bin/env bash
# The chat API with nothing but curl: ask, read the answer as it comes (and decide about a
# tool that needs consent), look at its trace, like it, and load the conversation.
#
#   bash examples/chat-api.sh "what time is it"
#
# POLYLOG_URL is the server; CLIENT_ID is who you are, where nobody is logged in.
set -euo pipefail

server=${POLYLOG_URL:-http://127.0.0.1:3000}
client=${CLIENT_ID:-shell}
input=${1:-what time is it}
quoted=${input//\\/\\\\}
quoted=${quoted//\"/\\\"}

post() { curl -s -H 'Content-Type: application/json' "$server/api/$1" -d "$2"; }
# Text inside JSON strings has its quotes escaped, so a bare "name":"value" is always a field.
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" <<<"$2"; }

done_frame=
while IFS= read -r -u 3 frame || [[ -n $frame ]]; do
  case $frame in
    '{"type":"chunk"'*) # The text as JSON writes it: quotes are turned back here, the rest by printf.
      text=${frame#'{"type":"chunk","content":"'}
      text=${text%'","conversation_id"'*}
      printf '%b' "${text//\\\"/\"}" ;;
    *'/v1/tool-confirmations/'*)
      printf '\n%s\n' "$frame"
      answer=n
      read -r -p 'Allow it? [y/N] ' answer || true
      decision=reject
      if [[ $answer == y* ]]; then decision=confirm; fi
      id=$(sed 's/.*tool-confirmations\/\([^ "]*\).*/\1/' <<<"$frame")
      curl -s -X POST "$server/v1/tool-confirmations/$id/$decision?client_id=$client" >/dev/null ;;
    '{"type":"done"'*) done_frame=$frame ;;
    *) printf '\n%s\n' "$frame" ;; # tools and errors
  esac
done 3< <(curl -sN -H 'Content-Type: application/json' -H 'Accept: application/x-ndjson' \
  "$server/api/get_chat_response_stream" -d "{\"message\":\"$quoted\",\"client_id\":\"$client\"}")

if [[ -z $done_frame ]]; then exit 1; fi
printf '\n\nThe trace:\n'
curl -s "$server/api/trace/$(field trace_id "$done_frame")?client_id=$client" | sed 's/"events":\[.*\],"started_at"/"events":[…],"started_at"/'
printf '\n\nLiked:\n'
post like "{\"message_id\":\"$(field message_id "$done_frame")\",\"client_id\":\"$client\"}"
printf '\n\nThe conversation:\n'
post load_conversation "{\"conversation_id\":\"$(field conversation_id "$done_frame")\",\"client_id\":\"$client\"}"
printf '\n'
