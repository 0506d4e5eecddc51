/** Who is paid what: the right to mint (keys add --mint), --self-reward off, the daily bonus. mcp-limits.test.ts has MCP. */
import { transcripts } from "../support/transcript.ts";

/** The middle of a day to come, with a key that may promise 10 LUX a day. */
const TEN = `
  day 12:00:00
  nodes n1
  ten = admin key/add {name: ten, mint_per_day: 10}`;
const create = (lux: number, more = ""): string => `task/create {lux_reward: ${lux}, ${more}}`;
const REFUSED = "-> 403 mint_limit";

/** A task of n1 in the group that its worker has completed. */
const done = (worker: string, lux: number, more = ""): string => `
  t = task/create {group: g, creator_node: n1, lux_reward: ${lux}, ${more}}
  task/claim $t ${worker}
  task/complete $t ${worker}`;
const paid = (lux: number): string => `
  GET group/g -> lux_paid ${lux}
  GET group/list -> groups [{lux_paid: ${lux}}]
  GET stats/minutes -> total.lux_paid ${lux}
  metrics -> text "~luxhub_lux_paid_total ${lux}\\n"`;

/** A quorum of two is decided by what n1 and n2 say. */
const agree = (task: string): string => `
  until task $${task} -> quorum.copies #2
  c = task/next n1
  task/complete $c n1 {result: {output: 1}}
  c = task/next n2
  task/complete $c n2 {result: {output: 1}}
  until task $${task} -> status completed`;

transcripts(`
== the right to mint: bounds the rewards of the tasks that a key creates in a UTC day
  ${TEN}
  as $ten ${create(6)}
  as $ten ${create(4.000001)} ${REFUSED}
  as $ten ${create(4)}
  as $ten ${create(0)}
  as $ten ${create(0.000001)} ${REFUSED}
  other = admin key/add {name: other}
  as $other ${create(1_000)}
  tick 12h
  as $ten ${create(10)}
  as $ten ${create(1)} ${REFUSED}
  admin GET key/list -> keys.mint_per_day [null, null, 10, null]

== the right to mint: counts batches, concurrent requests, updates and repeats once
  ${TEN}
  as $ten batch
  + ${create(6)}
  + ${create(6)} ${REFUSED}
  + ${create(4)}
  + ${create(1)} ${REFUSED}
  three = admin key/add {name: three, mint_per_day: 3}
  at once -> statuses {"200": 3, "403": 5}
  ${`+ as $three ${create(1)}\n`.repeat(8)}
  five = admin key/add {name: five, mint_per_day: 5}
  t = as $five key k ${create(2)}
  replay
  as $five task/update $t {lux_reward: 5.5} ${REFUSED}
  as $five task/update $t {lux_reward: <5|5>}
  as $five task/update $t {lux_reward: 5.000001} ${REFUSED}

-- the right to mint: what was promised stays so: a task that is cancelled or deleted gives nothing back
  ${TEN}
  t = as $ten ${create(10)}
  as $ten task/cancel $t
  admin task/delete $t
  as $ten ${create(1)} ${REFUSED}

-- the right to mint: a schedule counts for the key that put it, however often it runs
  ${TEN}
  as $ten schedule/put {name: s, every_s: 3600, overlap: queue, task: {title: t, description: d, lux_reward: 5}}
  as $ten schedule/run {name: s}
  tick 1h; sweep
  tick 1h; sweep
  GET task/list -> total 2
  GET events?since=0&kind=schedule.skipped -> events [{data: {reason: mint_limit}}]
  as $ten schedule/run {name: s} ${REFUSED}

-- the right to mint: counts a quorum once: neither its copies nor the shares of its reward count
  ${TEN}
  nodes n2
  as $ten ${create(10.000001, "quorum: {results: 2, of: 2}")} ${REFUSED}
  t = as $ten ${create(8, "quorum: {results: 2, of: 2}")}
  until task $t -> quorum.copies #2
  as $ten ${create(2.000001)} ${REFUSED}
  as $ten task/update $t {lux_reward: 10.5} ${REFUSED}
  as $ten task/update $t {lux_reward: 9}
  ${agree("t")}
  node <n1|n2> -> lux_balance 4.5
  as $ten ${create(1.000001)} ${REFUSED}
  as $ten ${create(1)}

-- the right to mint: is none for a bound key of a strict hub, unless it is given; all for others {isStrict: true}
  own = admin key/add n1 {name: own}
  as $own ${create(0.5)} ${REFUSED}
  as $own ${create(0)}
  given = admin key/add n1 {name: given, mint_per_day: 1}
  as $given ${create(0.5)}
  full = admin key/add {name: full}
  as $full ${create(1_000)}
  ${create(1_000)}

-- the right to mint: a loop of a bound key ends at its limit {offlineTasks: keep}
  ${TEN}
  own = admin key/add n1 {name: own, mint_per_day: 7}
  ${`t = as $own ${create(3, "retain_s: 0, creator_node: n1")}
  as $own task/claim $t n1
  as $own task/complete $t n1
  sweep\n`.repeat(2)}
  as $own ${create(3, "retain_s: 0, creator_node: n1")} ${REFUSED}
  node n1 -> lux_balance 6

== --self-reward off: neither a node nor a key is paid for a task of its own {selfReward: false}
  ${TEN}
  nodes n2
  <a|b> = admin key/add {name: <a|b>}
  ${[
    ["a", "b", "n1", 0, "creator_node: n1"],
    ["a", "b", "n1", 3, "creator_node: n2"],
    ["a", "b", "n1", 3, ""],
    ["a", "a", "n1", 0, ""],
    ["a", "a", "n2", 0, "creator_node: n1"],
  ]
    .map(
      ([creator, worker, node, lux, fields]) => `t = as $${creator} ${create(3, String(fields))}
  as $${worker} task/claim $t ${node}
  as $${worker} task/complete $t ${node} -> {lux_paid: ${lux}, receipt: ${lux === 0 ? "null" : "*"}}
  as $${worker} task/complete $t ${node} -> {lux_paid: ${lux}, receipt: ${lux === 0 ? "null" : "*"}}`,
    )
    .join("\n")}
  node n1 -> {lux_balance: 6, tasks_completed: 4}
  as $a schedule/put {name: s, every_s: 60, task: {title: t, description: d, lux_reward: 3}}
  t = as $b schedule/run {name: s}
  as $a task/claim $t n1
  as $a task/complete $t n1 -> lux_paid 0

-- --self-reward is on by default: a node may complete its own task
  nodes n1
  ${done("n1", 2)} -> lux_paid 2

= groups, statistics and metrics say what was paid, not what was promised or held {selfReward: false}
  nodes n1 n2
  ${done("n1", 100)}
  ${paid(0)}
  ${done("n2", 1)}
  ${paid(1)}
  ${done("n2", 2, "review: creator")}
  passed = task $t
  ${done("n2", 50, "review: creator")}
  rejected = task $t
  ${done("n1", 75, "review: node:n2")}
  ${paid(1)}
  task/review <$passed|$t> {verdict: pass}
  task/review $rejected {verdict: reject}
  ${paid(3)}
  task/cancel $rejected
  q = task/create {group: g, creator_node: n1, lux_reward: 8, quorum: {results: 2, of: 2}}
  ${agree("q")}
  # The share of n1 is paid to nobody.
  ${paid(7)}

-- the daily bonus: is as many LUX as the operator says {signinLux: 2.5}
  nodes n1
  signin n1 -> {lux_earned: 2.5, lux_balance: 2.5}

-- the daily bonus: 0 switches it off: a sign-in pays nothing, and is no entry {signinLux: 0}
  nodes n1
  <signin|signin> n1 -> {lux_earned: 0, already_signed_in: false, lux_balance: 0}
  GET lux/head -> head {seq: 0, hash: null}

-- the daily bonus: bound: only a key of the node's own collects it {signinBound: true}
  nodes n1 n2
  signin n1 -> 403 key_not_bound
  own = admin key/add n1 {name: own}
  as $own signin n2 -> 403 key_bound_to_other_node
  as $own signin n1 -> lux_earned 10
`);
