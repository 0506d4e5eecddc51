/** LUX: the daily sign-in, and a ledger whose entries add up to the balances. races.test.ts has simultaneous sign-ins. */
import { transcripts } from "../support/transcript.ts";

const done = (name: string) => `task/assign $${name} n1; task/complete $${name} n1`;

transcripts(`
== a sign-in earns 10 LUX, once a UTC day
  day 12:00:00
  nodes n1
  s = signin n1 -> {lux_earned: 10, already_signed_in: false, lux_balance: 10, next_signin_at: +12h}
  <|B >signin n1 -> {lux_earned: 0, already_signed_in: true, lux_balance: 10, next_signin_at: $s.next_signin_at}
  tick 1d
  signin n1 -> {lux_earned: 10, already_signed_in: false, lux_balance: 20, next_signin_at: +12h}
  GET events?since=0&kind=lux.signin -> events #2

-- the day of a sign-in begins at midnight UTC, not 24 hours after the last
  day 23:59:30
  nodes n1
  signin n1 -> lux_earned <10|0>
  tick 30s
  signin n1 -> {lux_earned: 10, lux_balance: 20}
  tick 86340s
  signin n1 -> {lux_earned: 0, already_signed_in: true}
  tick 60s
  signin n1 -> {lux_earned: 10, lux_balance: 30}

-- a clock that is set back pays for no day twice
  day 00:00:10
  nodes n1
  signin n1
  jump -60s
  signin n1 -> {lux_earned: 0, already_signed_in: true}
  jump 60s
  signin n1 -> {lux_earned: 0, lux_balance: 10}

-- a sign-in counts for each node separately, and requires a registered one
  nodes n1 n2
  signin <n1|n2> -> {lux_earned: 10, lux_balance: 10}
  signin ghost -> 404 node_not_found
  signin -> 400 node_id
  signin {node_id: 5} -> 400 node_id

== the ledger shows every payment, newest first, and adds up to the balance
  nodes n1 n2
  <small|large> = task/create {lux_reward: <0.1|0.2>}
  ${done("small")}
  signin <n1|n1|n2>
  ${done("large")}
  GET lux/ledger?node_id=n1 -> {page: 1, per_page: 20, total: 3, pages: 1}
  -> entries [{amount: 0.2, kind: reward, task_id: $large, node_id: n1, from: treasury, to: node:n1, at: +0s, id: *},
    {amount: 10, kind: signin, task_id: null, node_id: n1}, {amount: 0.1, kind: reward, task_id: $small, node_id: n1}]
  # Not 10.299999999999999.
  node n1 -> lux_balance 10.3

-- the ledger is paged like tasks {offlineTasks: keep}
  nodes n1
  ${"signin n1; tick 1d\n".repeat(23)}
  GET lux/ledger?node_id=n1 -> {entries: #20, page: 1, per_page: 20, total: 23, pages: 2}
  GET lux/ledger?node_id=n1&page=2 -> {entries: #3, page: 2}
  GET lux/ledger?node_id=n1&per_page=100 -> {entries: #23, per_page: 50, pages: 1}
  a = GET lux/ledger?node_id=n1&per_page=5&page=1
  GET lux/ledger?node_id=n1&per_page=5&page=2 -> entries.0.id !$a.entries.4.id
  GET lux/ledger?node_id=n1&page=0&per_page=0 -> 400 page per_page

-- the ledger requires a registered node
  GET lux/ledger?node_id=ghost -> 404 node_not_found
  GET lux/ledger -> 400 node_id
  nodes n1
  GET lux/ledger?node_id=n1 -> {entries: [], total: 0, pages: 0}

== sums of the ledger are exact where floating point is not
  nodes n1
  t = task/create {lux_reward: <0.1|0.2|0.7|1.1|999999999.999999|0.000001|0.3>}; ${done("t")}
  node n1 -> lux_balance 1000000002.4
  GET lux/ledger?node_id=n1 -> entries.amount [0.3, 0.000001, 999999999.999999, 1.1, 0.7, 0.2, 0.1]

-- a payment is an event with its amount
  nodes n1
  t = task/create {lux_reward: 2.5}
  ${done("t")}
  signin n1
  GET events?since=0&kind=lux.paid -> events [{node_id: n1, task_id: $t, data: {amount: 2.5}}]
  GET events?since=0&kind=lux.signin -> events [{node_id: n1, task_id: null, data: {amount: 10}}]
`);
