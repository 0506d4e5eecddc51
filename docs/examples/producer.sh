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

# hub PATH [CURL-OPTION…]: repeats the request until the hub has answered, and prints the answer.
hub() {
  local answer path=$1
  shift
  while :; do
    answer=$(curl -sS -m 60 -w '\n%{http_code}' -H @<(echo "X-Matrix-Secret: $SECRET") "$@" "$HUB/api/v1/$path") || true
    case ${answer##*$'\n'} in
      2??) printf '%s\n' "${answer%$'\n'*}" && return ;;
      408 | 429 | 5?? | 000) sleep 1 ;; # later; 000: no answer
      *) echo "producer: $path: ${answer%$'\n'*}" >&2 && return 1 ;;
    esac
  done
}

asked=$(jq -n --arg title "$title" --arg description "$description" --arg type "$type" \
  '{title: $title, description: $description, task_type: $type}')
# With the key a repeated request creates no second task.
key=producer-$(date +%s)-$$-$RANDOM$RANDOM
task=$(hub task/create -H "Idempotency-Key: $key" -d "$asked" | jq -r .task_id)

until [[ ${status:-} == completed || ${status:-} == failed ]]; do
  answer=$(hub "task/$task?wait=50") # answers as soon as the task has ended
  status=$(jq -r .task.status <<<"$answer")
done
if [[ $status == failed ]]; then
  jq -r '"the task has failed (\(.task.failure.kind)): \(.task.failure.message)"' <<<"$answer" >&2
  exit 1
fi
jq .task.result <<<"$answer"
