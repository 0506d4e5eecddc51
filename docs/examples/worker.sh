#!/usr/bin/env bash
# A worker: does tasks with your program, one at a time. Needs bash 4 or later, curl and jq.
#
#   HUB=http://127.0.0.1:19104 SECRET=$(cat luxhub-data/secret) bash worker.sh worker-1 ./work
#
# The program gets the task as JSON on standard input. Exit status 0 completes the task, and its output becomes
# `output` of its result. Any other status is a failed attempt with the last lines as its error; 65 fails the task
# permanently. When the task is cancelled or taken away, the program gets SIGTERM.
# SIGTERM or Ctrl-C: the worker finishes its task, leaves the hub and ends.
# Two workers of the same name would take tasks from each other: give each its own name.
set -uo pipefail
node=${1:?the name of this worker} && shift
: "${1:?the program that does a task}" "${HUB:?}" "${SECRET:?}"
command -v "$1" >/dev/null || { echo "worker: there is no program $1" >&2 && exit 1; }
export -n SECRET # the program does not get it
me=$(jq -n --arg node "$node" '{node_id: $node}')
dir=$(mktemp -d)

# request PATH [CURL-OPTION…]; the secret is not in the arguments of curl, which every user of the machine can see.
request() {
  curl -sS -H @<(echo "X-Matrix-Secret: $SECRET") "${@:2}" "$HUB/api/v1/$1"
}

# hub PATH JSON: repeats the request until the hub has answered, and prints the response; fails if the hub refuses.
hub() {
  local response
  while :; do
    response=$(request "$1" -m 60 -w '\n%{http_code}' -d @- <<<"$2")
    case ${response##*$'\n'} in
      2??) printf '%s\n' "${response%$'\n'*}" && return ;;
      408 | 429 | 5?? | 000) sleep 1 ;; # later; 000: no response
      *) echo "worker: $1: ${response%$'\n'*}" >&2 && return 1 ;;
    esac
  done
}

# Prints a line whenever a task of this worker may be lost: when its event stream begins, and after each such event.
follow() {
  local lost='attempt_failed|deleted|failed|released|requeued|revoked|timed_out'
  while :; do
    request "agent/sse?node_id=$node" -N 2>/dev/null | grep --line-buffered -E "^(retry:|event: task\.($lost)$)"
    sleep 3
  done
}

# keep HELD SECONDS PROGRAM: a heartbeat and an extend after each pause, and after each line of follow. If the hub refuses,
# the task was taken from us, and nobody needs what the program does.
keep() {
  while :; do
    read -r -t "$2" <&3
    hub node/heartbeat "$me" >/dev/null && hub task/extend "$1" >/dev/null || break
  done
  kill "$3"
}

# do_task TASK HELD PROGRAM [ARGUMENT…]: runs the program, and reports how it ended.
do_task() {
  local task=$1 held=$2 pause work keeper status end
  shift 2
  "$@" <<<"$task" >"$dir/printed" 2>&1 3>&- &
  work=$!
  pause=$(jq '[30, (.timeout_s // 90) / 3] | min' <<<"$task") # extends three times within the timeout of the task
  keep "$held" "$pause" "$work" &
  keeper=$!
  while kill -0 "$work" 2>/dev/null; do wait "$work"; done # SIGTERM ends a wait, but not the program
  wait "$work"
  status=$?
  kill "$keeper" 2>/dev/null

  end=$(jq --rawfile printed <(tail -c 9000 "$dir/printed" | tr -d '\0') --arg status "$status" --argjson task "$task" '. + {
    error: "exit status \($status): \($printed[-3000:])",
    retry: ($status != "65"),
    result: {problem: $task.title, improvement: "Done by \(.node_id)", lesson: "None", output: $printed}
  }' <<<"$held")
  if [[ $status == 0 ]]; then hub task/complete "$end" >/dev/null && return; fi
  hub task/fail "$end" >/dev/null # also what the hub would not accept as a result
}

# Takes one task after the other, until SIGTERM or until the hub refuses the worker.
take_tasks() {
  local stop='' given task held
  trap 'stop=yes' TERM
  mkfifo "$dir/lost" && exec 3<>"$dir/lost"
  hub node/register "$(jq '. + {name: .node_id}' <<<"$me")" >/dev/null || exit 1
  follow >&3 &
  while [[ ! $stop ]]; do
    # First what a run before this one has begun (resume), then the best open task; waits for one.
    hub task/next "$(jq '. + {wait: 25, resume: true}' <<<"$me")" >"$dir/given" &
    wait $! || { [[ $stop ]] && break || exit 1; }
    task=$(jq -e .task "$dir/given") || { sleep 1 && continue; }
    held=$(jq --argjson me "$me" '$me + {task_id: .task.task_id, epoch: .lease.epoch}' "$dir/given")
    do_task "$task" "$held" "$@"
  done
  hub node/leave "$me" >/dev/null
}

# All that works is one process group (set -m). It ends with this shell, even by kill -9: then nobody can write to the
# pipe of the coprocess any more, and its `cat` ends. Otherwise a curl that waits could be given a task that nobody does.
set -m
take_tasks "$@" &
group=$!
coproc { trap '' INT TERM HUP && cat; kill -KILL -- "-$group"; rm -rf "$dir"; } 2>/dev/null
trap 'kill -TERM "$group"' INT TERM
while kill -0 "$group" 2>/dev/null; do wait "$group"; done
wait "$group"
