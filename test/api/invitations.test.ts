/** Invitations: invitation/* and join. */
import { INVITATIONS_MAX, INVITATION_MAX_SECONDS, INVITATION_MIN_SECONDS } from "../../src/domain/limits.ts";
import { hashSecret } from "../../src/service/keys.ts";
import { SECRET } from "../support/hub.ts";
import { transcripts } from "../support/transcript.ts";

/** What a machine sends that joins with a secret of its own. */
const join = (token: string, secret: string): string =>
  `anon join {token: ${token}, key_hash: ${hashSecret(secret)}}`;
const by = (secret: string): string => `with {X-Matrix-Secret: ${secret}}`;

transcripts(`
== an invitation: becomes a key that is bound to its node, once; a repeat with the same secret returns the same
  i = admin invitation/create w2
  j = ${join("$i.line.tail", "own-secret")} -> {node_id: w2, key: ~w2-}
  ${join("$i.line.tail", "own-secret")} -> {node_id: w2, key: $j.key}
  ${join("$i.line.tail", "another")} -> 409 invitation_used detail ~$j.key
  ${by("own-secret")} node/register w2 {name: W}
  ${by("own-secret")} node/register w3 {name: W} -> 403 key_bound_to_other_node
  ${by("another")} node/register w2 {name: W} -> 401 unauthorized
  # The token itself opens nothing.
  ${by("$i.line.tail")} node/register w2 {name: W} -> 401 unauthorized
  admin GET invitation/list -> invitations [{node_id: w2, state: used, key: $j.key}]
  GET events?kind=node.joined -> events [{node_id: w2, data: {key: $j.key}}]

== an invitation: makes no second key with the secret of another, and can still be used
  a = admin invitation/create w1
  b = admin invitation/create w2
  ${join("$a.line.tail", "one-secret")}
  ${join("$b.line.tail", "one-secret")} -> 409 key_exists
  ${join("$b.line.tail", SECRET)} -> 409 key_exists
  ${join("$b.line.tail", "another-secret")}

== an invitation: that two machines use at once makes one key
  i = admin invitation/create w2
  at once -> statuses {"200": 1, "409": 3}
  ${["a", "b", "c", "d"].map((word) => `+ ${join("$i.line.tail", word)}`).join("\n")}

-- an invitation: expires by the hub's clock, and its repeat says so until it is forgotten
  i = admin invitation/create w2 {expires_in_s: ${INVITATION_MIN_SECONDS}}
  tick ${INVITATION_MIN_SECONDS}s
  ${join("$i.line.tail", "s")} -> 409 invitation_expired
  admin GET invitation/list -> invitations [{state: expired, key: null}]
  tick 8d
  admin invitation/create w3
  ${join("$i.line.tail", "s")} -> 404 invitation_not_found
  admin GET invitation/list -> invitations.node_id [w3]

== an invitation: ends when it, or its node, is deleted; its key stays
  nodes w1 w2
  a = admin invitation/create w1
  b = admin invitation/create w2
  used = admin invitation/create w2
  ${join("$used.line.tail", "secret-of-w2")}
  admin invitation/delete {invitation_id: $a.invitation.invitation_id}
  admin invitation/delete {invitation_id: $a.invitation.invitation_id} -> 404 invitation_not_found
  ${join("$a.line.tail", "s")} -> 404 invitation_not_found
  admin node/delete w2
  ${join("$b.line.tail", "s")} -> 404 invitation_not_found
  ${by("secret-of-w2")} GET questions

-- an invitation: ends when its node has been offline for --retain-nodes {retainNodesMs: 86400000}
  nodes w1
  tick 12h
  sweep
  i = admin invitation/create w1 {expires_in_s: ${INVITATION_MAX_SECONDS}}
  tick 721m
  sweep
  GET node/list -> nodes []
  ${join("$i.line.tail", "s")} -> 404 invitation_not_found

-- an invitation: needs the administrator key; a bound one invites for its node only
  invitation/create w -> 403 admin_key_required
  GET invitation/list -> 403 admin_key_required
  i = admin invitation/create w2
  ${join("$i.line.tail", "secret-of-w2")}
  ${by("secret-of-w2")} admin invitation/create w2
  ${by("secret-of-w2")} admin invitation/create w3 -> 403 key_bound_to_other_node
  ${by("secret-of-w2")} admin invitation/delete {invitation_id: x} -> 403 key_bound_to_other_node

-- an invitation: is in a line with a URL of the hub's, or the one that is named {publicUrl: "https://hub.example.org"}
  admin invitation/create w -> {url: "https://hub.example.org", pin: null, line: "~https://hub.example.org/#join."}
  admin invitation/create w {url: "http://10.0.0.7:19104/"} -> {url: "http://10.0.0.7:19104", pin: null}
  admin invitation/create w {url: "http://h/\\u001b/"} -> url "http://h/%1B"
  admin invitation/create w {url: <hub.example.org|"https://u:p@h"|"https://h/?a=1"|"ftp://h">} -> 400 url

-- an invitation: must be of sane size
  admin invitation/create w {expires_in_s: <${INVITATION_MIN_SECONDS - 1}|${INVITATION_MAX_SECONDS + 1}>} -> 400 expires_in_s
  admin invitation/create list -> 400 node_id
  i = admin invitation/create w
  anon join {token: $i.line.tail, key_hash: <""|x*64|"${"AB".repeat(32)}"|a*63>} -> 400 key_hash
  ${join("$i.line.tail", "s")}

-- an invitation: is one of at most ${INVITATIONS_MAX}, listed in pages
  at once -> statuses {"200": ${INVITATIONS_MAX}}
  ${Array.from({ length: INVITATIONS_MAX }, (_, i) => `+ i = admin invitation/create w${i}`).join("\n")}
  admin invitation/create w -> 409 invitations_limit
  one = admin GET invitation/list?per_page=50 -> invitations #50
  two = admin GET invitation/list?per_page=50&cursor=$one.next_cursor -> invitations #${Math.min(50, INVITATIONS_MAX - 50)}
  -> invitations !~$one.invitations.0.invitation_id
  admin invitation/delete {invitation_id: $one.invitations.0.invitation_id}
  admin invitation/create w

-- guesses of tokens count as wrong secrets of their address, and a right token is still taken
  i = admin invitation/create w2
  ${Array.from({ length: 19 }, (_, i) => `${join(`guess-${i}`.padEnd(32, "x"), "s")} -> 404 invitation_not_found`).join("\n")}
  ${join("x*32", "s")} -> 429 too_many_wrong_secrets
  ${join("$i.line.tail", "right")}
  GET task/pull?node_id=x -> 404 node_not_found
`);
