/** Conversations: reply_to and thread of messages; messages to the nodes that take a type of tasks. */
import { transcripts } from "../support/transcript.ts";
import { NO_ID } from "./scene.ts";

transcripts(`
== a reply: continues the thread of the message that it answers (<A|B>)
  nodes ann bob
  q = message/send ann bob {content: "where?"}
  message/receive bob -> messages [{id: $q, reply_to: null, thread: $q}]
  a = <|B >message/send bob ann {content: there, reply_to: $q}
  message/receive ann -> messages [{id: $a, reply_to: $q, thread: $q}]
  # The answer to the answer is of the same conversation, unless it names another.
  <|B >message/send ann bob {content: thanks, reply_to: $a}
  <|B >message/send ann bob {content: thanks, reply_to: $a, thread: plans}
  message/receive bob -> messages.thread [$q, plans]
  <|B >GET message/history?node_id=bob&thread=$q -> messages.content [thanks, there, "where?"]
  <|B >GET message/history?node_id=bob&thread=$q&before=$a -> messages.content ["where?"]

-- a reply: to a broadcast is of its thread, and each node sees its own part
  nodes ann bob cy
  b = message/broadcast ann {content: who, thread: who}
  agent/message bob ann {content: bob, reply_to: $b}
  agent/message cy ann {content: cy, reply_to: $b}
  GET message/history?node_id=ann&thread=who -> messages.content [cy, bob, who]
  GET message/history?node_id=bob&thread=who -> messages.content [bob, who]

-- a reply: answers only what its sender has sent or received
  nodes ann bob cy
  q = message/send ann bob
  message/send cy ann {reply_to: $q} -> 403 not_your_message
  message/broadcast cy {reply_to: $q} -> 403 not_your_message
  message/send bob ann {reply_to: ${NO_ID}} -> 404 message_not_found
  message/send ann ann {reply_to: $q}

-- a reply: names a thread of at most 128 characters
  nodes bob
  message/send ann bob {thread: x*128}
  message/send ann bob {thread: <""|" "|x*129|7>} -> 400 thread

== a broadcast by capability reaches the online nodes that take the type, and node/list finds them
  nodes all
  nodes both gone {capabilities: [draw, write]}
  nodes writer {capabilities: [write]}
  node/leave gone
  <agent/broadcast|B message/broadcast> boss {capability: draw} -> receivers [all, both]
  <agent/broadcast|B message/broadcast> boss {capability: sing} -> receivers [all]
  <agent/broadcast|B message/broadcast> boss {capability: " "} -> 400 capability
  message/receive writer -> messages []
  GET node/list?capability=draw -> {total: 3, nodes: [{node_id: all}, {node_id: both}, {node_id: gone}]}
  GET node/list?capability=draw&status=online -> {total: 2, nodes: [{node_id: all}, {node_id: both}]}
  GET node/list?capability=draw&order=busy&q=bo -> {total: 1, nodes: [{node_id: both}]}
  first = GET node/list?capability=draw&per_page=1 -> nodes.node_id [all]
  GET node/list?capability=draw&per_page=1&cursor=$first.next_cursor -> nodes.node_id [both]
  GET node/list -> nodes #4
`);
