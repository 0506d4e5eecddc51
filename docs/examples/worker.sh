#!/usr/bin/env bash
# A worker: does tasks with your program, one at a time. Needs bash 4 or later, curl and jq.
#
#   HUB=http://127.0.0.1:19104 SECRET=$(cat luxhub-data/secret) bash worker.sh worker-1 ./work
#
# The program gets the task as JSON on standard input. Exit status 0 completes the task, and its output becomes
# `output` of its result. Any other status is a failed attempt with the last lines as its error; 65 fails the task permanently.
# SIGTERM or Ctrl-C: the worker finishes its task, leaves the hub and ends; while it waits for a task, within 25 s.
# Two workers of the same name would take tasks from each other: give each its own name.
set -uo pipefail
node=${1:?the name of this worker} && shift
: "${1:?the program that does a task}" "${HUB:?}" "${SECRET:?}"
command -v "$1" >/dev/null || { echo "worker: there is no program $1" >&2 && exit 1; }
export -n SECRET # the program does not get it
printed=$(mktemp) && trap 'rm -f "$printed"' EXIT
stop=
trap 'stop=yes' TERM INT

# hub PATH JSON: repeats the request until the hub has answered, and prints the answer; fails if the hub refuses. Ends
# with the worker, even if it is killed (kill -0 $$): else it would take tasks for nobody and keep the node online.
hub() {
  local answer
  while :; do
    answer=$(curl -sS -m 60 -w '\n%{http_code}' -H @<(echo "X-Matrix-Secret: $SECRET") -d @- "$HUB/api/v1/$1" <<<"$2")
    case ${answer##*$'\n'} in
      2??) printf '%s\n' "${answer%$'\n'*}" && return ;;
      408 | 429 | 5?? | 000) kill -0 $$ || return 1 && sleep 1 ;; # later; 000: no answer
      *) echo "worker: $1: ${answer%$'\n'*}" >&2 && return 1 ;;
    esac
  done
}

me=$(jq -n --arg node "$node" '{node_id: $node}')
hub node/register "$(jq '. + {name: .node_id}' <<<"$me")" >/dev/null || exit
while [[ ! $stop ]]; do
  # First what a run before this one has begun (resume), then the best open task; waits for one.
  given=$(hub task/next "$(jq '. + {wait: 25, resume: true}' <<<"$me")") || exit
  task=$(jq -e .task <<<"$given") || { sleep 1 && continue; }
  held=$(jq --argjson me "$me" '$me + {task_id: .task.task_id, epoch: .lease.epoch}' <<<"$given")
  # A heartbeat and an extend at least every 30 s, and three times within the timeout of the task.
  pause=$(jq '[30, (.timeout_s // 90) / 3] | min' <<<"$task")

  # The program runs beside this one, which reads its process id and, when it ends, its status.
  exec 3< <("$@" <<<"$task" >"$printed" 2>&1 & echo $!; wait $!; echo $?)
  read -r work <&3
  until read -r -t "$pause" status <&3; do
    (($? > 128)) || { status=unknown && break; } # not the end of the pause
    # Refused: the task was taken from us, and nobody needs what the program does.
    { hub node/heartbeat "$me" && hub task/extend "$held"; } >/dev/null || kill "$work"
  done

  end=$(jq --rawfile printed <(tail -c 9000 "$printed" | tr -d '\0') --arg status "$status" --argjson task "$task" '. + {
    error: "exit status \($status): \($printed[-3000:])",
    retry: ($status != "65"),
    result: {problem: $task.title, improvement: "Done by \(.node_id)", lesson: "None", output: $printed}
  }' <<<"$held")
  if [[ $status == 0 ]]; then hub task/complete "$end" >/dev/null && continue; fi
  hub task/fail "$end" >/dev/null # also what the hub would not accept as a result
done
hub node/leave "$me" >/dev/null
