/** The events of a group and of a tag, in lists and in streams. */
import { transcripts } from "../support/transcript.ts";

const TAG = encodeURIComponent("50% _'x");

transcripts(`
== a group selects events, also those of a stream
  s = & stream 3 events/stream?since=0&group=g
  a = task/create {group: g, creator_node: n9}
  task/create {<group: other|group: null>}
  group/cancel {group: g}
  until GET events?since=0&group=g -> [task.created, task.failed, group.ended]
  -> events [{task_id: $a, data: {group: g}}, {task_id: $a, data: {group: g}}, {task_id: null, data: {group: g}}]
  $s -> [task.created, task.failed, group.ended]

== a tag selects events, also those of a stream: a tag is a whole word, which the task had at that time
  s = & stream 3 events/stream?since=0&tag=${TAG}
  a = task/create {tags: [red, "50% _'x"]}
  task/create {tags: [redder, "50% y'x"], group: red, title: red}
  task/update $a {tags: [green, "50% _'x"]}
  task/cancel $a
  GET events?since=0&tag=red -> events [{kind: task.created, task_id: $a}]
  GET events?since=0&tag=green -> events [{kind: task.updated, task_id: $a}, {kind: task.failed, task_id: $a}]
  GET events?since=0&tag=${TAG} -> [task.created, task.updated, task.failed]
  GET events?since=0&tag=re -> []
  $s -> [task.created, task.updated, task.failed]
`);
