/** Advisory leases: who gets one, who is told of whom, and when they end. */
import { LEASES_OF_NODE_MAX } from "../../src/domain/limits.ts";
import { transcripts } from "../support/transcript.ts";

transcripts(`
== a lease keeps others away, and tells them who has it
  nodes n1 n2
  lease/acquire n1 {name: src/api/**, ttl_s: 60}
  -> lease {name: src/api/**, node_id: n1, task_id: null, shared: false, fencing: 1, ttl_s: 60, acquired_at: *, until: +60s}
  lease/acquire n2 {name: src/*/tasks.ts} -> 409 lease_conflict {holders: [{name: src/api/**, node_id: n1, task_id: null, shared: false, fencing: 1}]}
  lease/acquire n2 {name: src/web/**} -> lease.fencing 2

== a lease again by the same holder is the same lease with a new deadline
  nodes n1
  l = lease/acquire n1 {name: deploy, ttl_s: 60}
  tick 30s
  lease/acquire n1 {name: deploy, ttl_s: 60} -> lease {fencing: 1, acquired_at: $l.lease.acquired_at, until: +60s}
  lease/acquire n1 {name: deploy, shared: true} -> lease {fencing: 2, shared: true}
  GET lease/list -> leases.name [deploy]

== shared goes with shared, and with nothing else
  nodes n1 n2 n3
  lease/acquire n1 {name: docs/**, shared: true}
  lease/acquire n2 {name: docs/a.md, shared: true}
  lease/acquire n3 {name: docs/a.md} -> 409 lease_conflict {holders: [{node_id: n1}, {node_id: n2}]}
  lease/acquire n2 {name: docs/a.md} -> 409 lease_conflict {holders: [{node_id: n1}]}

-- a lease of two tasks of one node is refused, of the node itself is not
  nodes n1
  first, second = task/create
  task/claim $<first|second> n1
  lease/acquire $first n1 {name: a/**}
  lease/acquire $second n1 {name: a/b} -> 409 lease_conflict {holders: [{node_id: n1}]}
  lease/acquire n1 {name: a/b}
  lease/acquire $first n1 {name: a/c}
  GET lease/list?task_id=$first -> leases.name [a/**, a/c]

-- a lease for a task needs the node that holds it, in this dispatch
  nodes n1 n2
  t = task/create
  task/claim $t n1
  lease/acquire $t n2 {name: x} -> 403 not_assigned_to_node
  lease/acquire $t n1 {name: x, epoch: 7} -> 409 stale_lease
  lease/acquire n1 {name: x, task_id: none} -> 404 task_not_found
  lease/acquire $t n1 {name: x, epoch: 1}
  task/release $t n1
  lease/acquire $t n1 {name: x} -> 409 task_not_assigned

-- a directory is all below it, also for others; with a task it is the node's as long as the task
  nodes n1 n2
  t = task/create
  task/claim $t n1
  lease/acquire $t n1 {name: ./src/} -> lease {name: src/**, until: +2592000s}
  tick 1h
  lease/acquire n2 {name: <src/a.ts|./src/a/>} -> 409 lease_conflict {holders: [{name: src/**}]}
  task/complete $t n1
  lease/acquire n2 {name: <src/a.ts|./src/b/>} -> lease {name: <src/a.ts|src/b/**>, until: +300s}

-- absolute and unclear names are refused, and more leases than the limit
  nodes n1
  lease/acquire n1 {name: "</etc/x|a//b|//|./|a/../b| |a\\\\\\\\b| a|a/b |${"x".repeat(201)}|${"a/".repeat(32)}a>"} -> 400 name
  lease/acquire n1 {name: a, ttl_s: 0} -> 400 ttl_s
  lease/acquire nobody {name: a} -> 404 node_not_found
  batch {requests: [${Array.from({ length: LEASES_OF_NODE_MAX }, (_, i) => `{path: lease/acquire, body: {name: f${i}, node_id: n1}}`)}]}
  lease/acquire n1 {name: more} -> 409 leases_limit
  lease/acquire n1 {name: f${LEASES_OF_NODE_MAX - 1}}

== renew and release are for the node that has the lease, by its number if it names one
  nodes n1 n2
  lease/acquire n1 {name: deploy, ttl_s: 60}
  lease/renew n1 {name: deploy, fencing: 1, ttl_s: 120} -> lease {fencing: 1, ttl_s: 120, until: +120s}
  lease/renew n2 {name: deploy} -> 409 lease_lost
  lease/renew n1 {name: deploy, fencing: 9} -> 409 lease_lost
  lease/release <n2|n1|n1> {name: deploy} -> released <0|1|0>
  lease/acquire n2 {name: deploy} -> lease.fencing 2

== a lease ends with the dispatch of its task: <complete|fail|release|cancel|revoke|revoke to another node|delete>
  nodes n1 n2
  t = task/create
  task/claim $t n1
  lease/acquire $t n1 {name: a}
  lease/acquire n1 {name: b}
  admin task/<complete $t n1|fail $t n1|release $t n1|cancel $t|revoke $t|revoke $t n2|delete $t>
  GET lease/list -> leases.name [b]
  lease/acquire n2 {name: a} -> lease.fencing 3

== a lease ends when the task's lease runs out
  nodes n1 n2
  t = task/create {timeout_s: 30, backoff_s: 0}
  task/claim $t n1
  lease/acquire $t n1 {name: a, ttl_s: 3600}
  tick 31s
  sweep
  lease/acquire n2 {name: a}
  # The task's next dispatch has no leases of the one before.
  task/claim $t n1
  lease/acquire $t n1 {name: b}
  task/complete $t n1
  GET lease/list -> leases.name [a]

== a lease ends at its deadline, and is then deleted
  nodes n1 n2
  lease/acquire n1 {name: a, ttl_s: 60}
  tick 50s
  lease/acquire n2 {name: a} -> 409 lease_conflict {holders: [{node_id: n1}]}
  tick 11s
  GET lease/list -> leases []
  lease/renew n1 {name: a} -> 409 lease_lost
  lease/acquire n2 {name: a} -> lease.fencing 2

== a lease ends when its node leaves, goes offline, or is deleted
  nodes n1 n2
  lease/acquire n1 {name: a, ttl_s: 86400}
  node/leave n1
  GET lease/list -> leases []
  lease/acquire n1 {name: a} -> 409 node_offline
  node/heartbeat n1
  lease/acquire n1 {name: a, ttl_s: 86400}
  pass 240s n2
  GET lease/list -> leases []
  lease/acquire n2 {name: a}
  admin node/delete n2
  GET lease/list -> leases []

-- a lease ends never by a restart of the hub: its time begins again
  nodes n1 n2
  lease/acquire n1 {name: a, ttl_s: 60}
  tick 1h
  restart
  lease/acquire n2 {name: a} -> 409 lease_conflict {holders: [{node_id: n1}]}
  lease/acquire n2 {name: b} -> lease.fencing 2

== the list of leases has pages
  nodes n1 n2
  lease/acquire n1 {name: <a|b|c>}
  lease/acquire n2 {name: d}
  p = GET lease/list?per_page=3 -> leases.name [a, b, c]
  GET lease/list?cursor=$p.next_cursor -> leases.name [d]
  GET lease/list?node_id=n2 -> leases.name [d]
`);
