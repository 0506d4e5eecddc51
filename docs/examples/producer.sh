#!/usr/bin/env bash
# A producer: creates a task, waits until a worker has completed it, and prints its result. Needs bash, curl and jq.
#
#   HUB=http://127.0.0.1:19104 SECRET=$(cat luxhub-data/secret) bash producer.sh 'Say hello' 'To everyone'
#
# Exit status 0: completed, the result is on standard output. 1: the task failed, or the hub refused; see standard
# error. A third argument is the task's type. If the producer ends before the task, the task continues.
set -euo pipefail
title=${1:?the title of the task} description=${2:?its description} type=${3:-}
: "${HUB:?}" "${SECRET:?}"

# hub PATH [CURL-OPTION…]: repeats the request until the hub has answered, and sets `response`. Not in a subshell, which
# would go on if the producer is killed.
hub() {
  local path=$1 status
  shift
  while :; do
    response=$(curl -sS -m 60 -w '\n%{http_code}' -H @<(echo "X-Matrix-Secret: $SECRET") "$@" "$HUB/api/v1/$path") || true
    status=${response##*$'\n'}
    response=${response%$'\n'*}
    case $status in
      2??) return ;;
      408 | 429 | 5?? | 000) sleep 1 ;; # later; 000: no response
      *) echo "producer: $path: $response" >&2 && return 1 ;;
    esac
  done
}

asked=$(jq -n --arg title "$title" --arg description "$description" --arg type "$type" \
  '{title: $title, description: $description, task_type: $type}')
# With the key a repeated request creates no second task.
key=producer-$(date +%s)-$$-$RANDOM$RANDOM
hub task/create -H "Idempotency-Key: $key" -d "$asked"
task=$(jq -r .task_id <<<"$response")

until [[ ${status:-} == completed || ${status:-} == failed ]]; do
  hub "task/$task?wait=25" # returns as soon as the task has ended
  status=$(jq -r .task.status <<<"$response")
done
if [[ $status == failed ]]; then
  jq -r '"the task has failed (\(.task.failure.kind)): \(.task.failure.message)"' <<<"$response" >&2
  exit 1
fi
jq .task.result <<<"$response"
