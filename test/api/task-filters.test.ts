/** The filters of task/list beside those of task-texts.test.ts, its order by change, its summaries, and task/count. */
import { SUMMARY_LINE_MAX_CHARS } from "../../src/domain/limits.ts";
import { transcripts } from "../support/transcript.ts";

const fail = 'error: "out of memory\\n  at worker.ts:12", retry: false';

/** Tasks that have failed in another order than they were created, a completed one, and some that wait. */
const scene = `
  nodes n1 n2
  early = task/create {task_type: x}
  late = task/create {task_type: y}
  cancelled = task/create {task_type: x}
  open = task/create {title: plain}
  # In lanes of their own.
  limited = task/create {limit_key: k}
  choosy = task/create {requires: {resources: {gpu: 1}}}
  due = task/create {delay_s: 3600}
  dependent = task/create {depends_on: [$open]}
  done = task/create
  checked = task/create {review: creator}
  task/claim $<early|done|checked> n1
  task/claim $late n2
  task/fail $late n2 {${fail}}
  tick 2s
  task/cancel $cancelled n1 {reason: "not needed"}
  tick 2s
  task/fail $early n1 {${fail}}
  task/complete $<done|checked> n1
  <atLate|atCancelled|atEarly> = task $<late|cancelled|early>`;

const FILTERED = [
  ["failed_by=n1", "$cancelled, $early"],
  ["failed_by=n2", "$late"],
  ["failed_by=n2&status=failed&task_type=y", "$late"],
  ["failed_by=n1&status=open", ""],
  ["failure_kind=cancelled", "$cancelled"],
  ["failure_kind=FAILED", "$late, $early"],
  ["failure_kind=failed&task_type=x", "$early"],
  ["status=failed&since=$atCancelled.updated_at", "$cancelled, $early"],
  ["status=failed&until=$atCancelled.updated_at", "$late"],
  ["status=failed&since=$atLate.updated_at&until=$atEarly.updated_at", "$cancelled, $late"],
  ["since=$atEarly.updated_at", "$checked, $done, $early"],
  ["failure_kind=failed,cancelled&task_type=x", "$cancelled, $early"],
  ["status=cancelled", "$cancelled"],
  ["status=cancelled&failure_kind=failed", ""],
  ["status=in_review", "$checked"],
  ["status=in_review&node_id=n2", ""],
  ["status=in_review&node_id=n1", "$checked"],
  ["status=completed", "$checked, $done"],
  ["held=none", "$limited, $open"],
  ["held=no_node", "$choosy"],
  ["held=any", "$dependent, $due, $choosy"],
  ["held=not_before", "$due"],
  ["held=depends_on", "$dependent"],
  ["held=question", ""],
  ["held=any&status=failed", ""],
  ["held=depends_on&status=pending", "$dependent"],
] as const;

transcripts(`
== filters select on both variants what they say, and task/count counts it
  ${scene}
  ${FILTERED.map(([query, ids]) => {
    const count = ids.split("$").length - 1;
    return `<|B >GET task/list?per_page=50&${query} -> {total: ${count}, tasks: [${ids.replaceAll(/\$\w+/g, "{task_id: $&}")}]}
      <|B >GET task/count?${query} -> {count: ${count}, exact: true}`;
  }).join("\n")}
  GET task/count -> {count: 10, exact: true}
  GET task/count?<status=failed|node_id=n1|node_id=ghost> -> {count: <3|4|0>, exact: true}
  GET task/count?statu=failed -> ignored [statu]
  t = task/create
  task/claim $t n2
  task/ask $t n2 {park: true}
  GET task/list?held=question -> tasks.task_id [$t]
  GET task/count?held=not_before -> count 1

-- an unknown word, a wrong time and filters that exclude each other are errors
  GET task/<list|count>?failure_kind=broken -> 400 failure_kind
  GET task/<list|count>?held=1 -> 400 held
  GET task/<list|count>?since=yesterday&until=2026-02-31T00:00:00Z -> 400 since until
  GET task/<list|count>?failed_by=n1&node_id=n1 -> 400 failed_by
  GET task/list?order=size -> 400 order
  GET task/list?fields=some -> 400 fields
  GET task/list?order=updated<|&status=completed> -> 400 order
  GET task/list?order=updated&status=failed&page=1 -> 400 page

== order=updated lists the task that failed last first, with the other filters, and cursors of its own
  ${scene}
  <one|oneB> = <|B >GET task/list?status=failed&order=updated&per_page=1 -> {page: null, total: null, pages: null, per_page: 1}
  -> tasks.task_id [$early]
  <two|twoB> = <|B >GET task/list?status=failed&order=updated&per_page=1&cursor=$<one|oneB>.next_cursor -> tasks.task_id [$cancelled]
  <|B >GET task/list?status=failed&order=updated&per_page=1&cursor=$<two|twoB>.next_cursor -> {tasks: [{task_id: $late}], next_cursor: null}
  GET task/list?order=updated&<failed_by=n1|status=failed&task_type=x|status=failed&since=$atCancelled.updated_at> -> tasks.task_id [$early, $cancelled]
  GET task/list?order=updated&status=failed&<q=zzz|held=any> -> tasks []
  GET task/list?order=updated&status=failed&until=$atEarly.updated_at -> tasks.task_id [$cancelled, $late]
  GET task/list?status=failed&cursor=$one.next_cursor -> 400 cursor
  created = GET task/list?status=failed&order=created&per_page=1
  GET task/list?status=failed&order=updated&cursor=$created.next_cursor -> 400 cursor

== fields=summary has what a row of a list shows, without long texts
  ${scene}
  <all|allB> = <|B >GET task/list?per_page=50
  <|B >GET task/list?per_page=50&fields=summary -> {total: 10, page: 1, tasks: !~description}; -> tasks !~worker.ts;
  -> tasks.task_id $<all|allB>.tasks.task_id; -> tasks.status $<all|allB>.tasks.status;
  -> tasks.assigned_node $<all|allB>.tasks.assigned_node; -> tasks.priority $<all|allB>.tasks.priority;
  -> tasks.<result|depends_on> [absent, absent, absent, absent, absent, absent, absent, absent, absent, absent];
  -> tasks.unmet_count [0, 0, 1, 0, 0, 0, 0, 0, 0, 0]; -> tasks.9.failure {kind: failed, message: "out of memory", node_id: n1}
  t = task/create {description: x*60000, group: large}
  GET task/list?group=large&fields=summary -> tasks [{task_id: $t, description: absent}]
  task/claim $t n2
  task/fail $t n2 {error: "\\n \\n${"é".repeat(SUMMARY_LINE_MAX_CHARS + 1)}", retry: false}
  GET task/list?fields=summary&group=large -> tasks [{failure: {message: ${"é".repeat(SUMMARY_LINE_MAX_CHARS - 1)}…}}]
`);
