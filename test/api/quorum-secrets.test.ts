/**
 * What nobody sees of a quorum before it is decided, and whom it does not pay. quorum.test.ts has the rest,
 * quorum-doors.test.ts webhooks and MCP.
 */
import { transcripts } from "../support/transcript.ts";

const LIE = "the-moon-is-made-of-cheese";
const quorum = (of: number, more = ""): string =>
  `q = task/create {quorum: {results: 2, of: ${of}}, lux_reward: 1.000001, backoff_s: 0, creator_node: boss, ${more}}
  until task $q -> quorum.copies #2`;
const says = (output: unknown): string => `{result: {output: ${output}}}`;

/** A task of two copies is decided by two callers, which then have so much more. */
const shared = (
  creator: string,
  workers: readonly (readonly [node: string, caller: string, lux: number])[],
) => `
  q = ${creator}task/create {quorum: {results: 2, of: 2}, lux_reward: 2}
  until task $q -> quorum.copies #2
  ${workers
    .map(
      ([node, caller]) => `was_${node} = node ${node}
  c = ${caller}task/next ${node}
  ${caller}task/complete $c ${node} ${says(1)}`,
    )
    .join("\n")}
  until task $q -> status completed
  ${workers.map(([node, , lux]) => `node ${node} -> lux_balance $was_${node}.lux_balance+${lux}`).join("\n")}`;

transcripts(`
-- a quorum: of three, of whom one lies, one dies and one copies
  nodes liar dying copier honest another {auto_assign: false}
  ${quorum(4)}
  lied = task/next liar
  died = task/next dying
  task/extend $lied liar {note: ${LIE}, checkpoint: {answer: ${LIE}}}
  task/output $lied liar {offset: 0, data: ${LIE}}
  task/complete $lied liar ${says(LIE)}
  # The one who copies tries everything that shows what others have sent.
  trap = task/create {depends_on: [$lied], priority: 2}
  GET task/<$lied|$q|$trap>?context=1 -> all !~${LIE}
  GET <task/list|lessons|file/list|events?since=0&limit=1000|task/wait?task_ids=$lied> -> all !~${LIE}
  GET task/<$lied/output|$trap/inputs|$q/inputs> -> all !~${LIE}
  task/next copier {task_types: [none]} -> all !~${LIE}
  task $lied -> {status: completed, result: null, sealed: true}
  upload result.txt {task_id: $lied, node: liar} -> 409 task_sealed
  # Its node leaves, which opens the copy again.
  node/leave dying
  task/next copier -> task.task_id $died
  task/complete $died copier ${says(7)}
  until task $q -> quorum.copies #3
  task/next liar -> task.task_id $trap
  c = task/next honest
  task/complete $c honest ${says(42)}
  until task $q -> quorum.copies #4
  task/next honest -> task null
  c = task/next another
  task/complete $c another ${says(42)}
  until task $q -> status completed
  -> {result: {output: 42}, quorum: {agreed: [honest, another]}}
  task $lied -> result.output ${LIE}
  node <liar|copier> -> lux_balance 0

== a quorum: hides the errors of a copy from a cheating worker until it is decided, at every door
  nodes honest cheat third {auto_assign: false}
  k = admin key/add cheat {name: cheat}
  ${quorum(4, "task_type: sum")}
  failing = task/next honest
  own = as $k task/next cheat
  task/ask $failing honest {question: ${LIE}} -> 409 task_sealed
  task/release $failing honest {reason: ${LIE}}
  task/claim $failing honest
  task/fail $failing honest {error: ${LIE}}
  task/claim $failing honest
  task/fail $failing honest {error: ${LIE}, retry: false} -> task.failure {kind: failed, node_id: honest}
  as $k GET task/$failing<|?context=1|/explain|/questions|/output|/inputs> -> all !~${LIE}
  as $k GET task/<$q|$own>?context=1 -> all !~${LIE}
  as $k GET task/<list?per_page=50|list?fields=summary|list?status=failed&order=updated|list?node_id=honest> -> all !~${LIE}
  as $k GET <task/wait?task_ids=$failing|task/stats|stats/failures|stats/types|questions|lessons|reviews> -> all !~${LIE}
  as $k GET <events?since=0&limit=1000|poll?since=0|usage?by=node|node/honest> -> all !~${LIE}
  # When it is decided, the creator sees why the copy failed.
  as $k task/complete $own cheat ${says(42)}
  until task $q -> quorum.copies #3
  c = task/next third
  task/complete $c third ${says(42)}
  until task $q -> status completed
  until task $failing -> failure.message ${LIE}
  GET stats/failures -> all ~${LIE}

-- a quorum: does not pay the key of its creator either, through whatever node it works {selfReward: false}
  nodes a b c {auto_assign: false}
  creator = admin key/add {name: creator}
  other = admin key/add {name: other}
  own = admin key/add c {name: own}
  ${shared("as $creator ", [
    ["a", "as $creator ", 0],
    ["b", "as $other ", 1],
  ])}
  ${shared("as $creator ", [
    ["a", "as $other ", 1],
    ["b", "as $other ", 1],
  ])}
  # As its node, with another secret.
  ${shared("as $own ", [
    ["c", "", 0],
    ["b", "as $other ", 1],
  ])}
  # The secret that all share is nobody's own.
  ${shared("", [
    ["a", "", 1],
    ["b", "", 1],
  ])}
`);
