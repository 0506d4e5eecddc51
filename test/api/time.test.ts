/**
 * Time (docs/failures.md, The clock): the effect of a jump of the wall clock on leases, ACKs, sign-ins, events,
 * retention, keys and stored answers. wrong-clock.test.ts has a stopped process and a clock that was never set.
 */
import { transcripts } from "../support/transcript.ts";

/** Time passes, second by second as the hub's periodic work sees it would be too many: in steps below every lease. */
const live = (seconds: number): string =>
  "tick 10s; sweep\n".repeat(Math.floor(seconds / 10)) + (seconds % 10 ? `tick ${seconds % 10}s; sweep` : "");
/** The wall clock jumps, and the hub notices. */
const jump = (time: string): string => `jump ${time}; sweep`;
/** The prune chore is due once a minute. */
const PRUNE = "tick 61s; sweep";
const statuses = (a: string, b: string): string =>
  `GET node/list -> nodes [{node_id: a, status: ${a}}, {node_id: b, status: ${b}}]`;
/** The days of 50 years. */
const JUMPS = "<1h|-1h|18250d>";

transcripts(`
-- a lease over a jump (${JUMPS}): nobody goes offline, and who is silent does in its full time
  nodes a
  B nodes b
  t = task/create
  task/claim $t b
  # Well before b would go: a machine that is busy adds time of its own.
  ${live(60)}
  ${jump(JUMPS)}
  ${live(60)}
  ${statuses("online", "online")}
  task $t -> {assigned_node: b, attempts: 0}
  ${live(31)}
  ${statuses("online", "offline")}
  ${live(90)}
  ${statuses("offline", "offline")}
  GET events?since=0&kind=node.offline -> events #2

-- a lease: time that passes while the hub works is no stop
  nodes a
  B nodes b
  tick 91s; sweep
  ${statuses("online", "offline")}

-- an ACK over a jump (${JUMPS}): a message is redelivered once, after 30 s
  nodes n1
  message/send op n1 {require_ack: true}
  message/receive n1 -> messages [{deliveries: 1}]
  ${live(15)}
  ${jump(JUMPS)}
  ${live(16)}
  message/receive n1 -> messages []
  ${live(15)}
  message/receive n1 -> messages [{deliveries: 2, redelivered: true}]
  message/receive n1 -> messages []

-- sign-in: pays each day once, however often the clock crosses midnight
  day 23:30:00
  nodes n1
  signin n1 -> lux_earned 10
  ${jump("1h")}
  signin n1 -> lux_earned 10
  ${jump("-1h")}
  signin n1 -> lux_earned 0
  ${jump("1h")}
  signin n1 -> {lux_earned: 0, lux_balance: 20}

-- sign-in: after a step back over midnight, the previous day is not paid again
  day 00:01:00
  nodes n1
  first = signin n1
  ${jump("-1h")}
  signin n1 -> {lux_earned: 0, already_signed_in: true, next_signin_at: $first.next_signin_at}

-- sign-in: one that is dated years ahead blocks no later one, and its own day is not paid twice
  day 00:00:00
  nodes n1
  ${jump("1095d")}
  signin n1 -> lux_earned 10
  ${jump("-1095d")}
  signin n1 -> {lux_earned: 10, lux_balance: 20}
  signin n1 -> {lux_earned: 0, already_signed_in: true}
  ${jump("1095d")}
  signin n1 -> {lux_earned: 0, lux_balance: 20}

-- retention over a jump (${JUMPS}): an answer is replayed for its 24 hours as they were lived
  nodes n1
  first = key k signin n1
  tick 12h
  ${jump(JUMPS)}
  ${PRUNE}
  replay
  tick 715m
  replay
  # After a jump back it lasts as much longer.
  tick <10m|70m|10m>
  ${PRUNE}
  key k signin n1

-- retention over a jump (${JUMPS}): messages and events stay until they have lived their time
  nodes n1
  message/send op n1
  tick 167h; tick 30m
  ${PRUNE}
  e = GET events?since=0
  ${jump(JUMPS)}
  ${PRUNE}
  GET events?since=0&limit=5 -> events $e.events
  message/receive n1 -> messages #1
  tick 193h
  ${PRUNE}
  GET message/history?node_id=n1 -> messages []
  GET events?since=0 -> events #1

-- retention: a jump that is undone has no effect
  nodes n1
  message/send op n1
  ${jump("5d")}
  ${jump("-5d")}
  tick 7d
  ${PRUNE}
  message/receive n1 -> messages []

-- event ids keep growing when the clock goes back, and a cursor misses none
  nodes n1
  e = GET events?since=0
  ${jump("-1h")}
  nodes n2
  GET events?since=$e.cursor -> events [{node_id: n2, id: $e.cursor+1, at: +0s}, {node_id: n2, id: $e.cursor+2, at: +0s}]

-- a key expires by the wall clock
  k = admin key/add {name: short, expires_in_s: 1800}
  as $k B GET status
  ${jump("1h")}
  as $k B GET status -> 401 unauthorized
  ${jump("-1h")}
  as $k B GET status
`);
