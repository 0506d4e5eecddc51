/** A node's messages, the dead letters, and the forms that send a message. */
import { type ComponentChildren, Fragment, type VNode, h } from "preact";
import type { HistoryMessage } from "../../client/luxhub.ts";
import { type Action, Actions, Form, FormButton, type FormOf, act } from "./action.tsx";
import { changeAll } from "./batches.tsx";
import { type FieldOf, nodeNames } from "./field.tsx";
import { commandOf, countOf, manyOf, oneOf } from "./format.ts";
import { ListPage } from "./list-page.tsx";
import type { ListOf } from "./list.tsx";
import { Age, Ranges, State, Verified } from "./parts.tsx";
import { go, route, to } from "./route.ts";
import { type Ask, boundTo, call, mayActFor } from "./session.ts";

const PAGE = 50;

export function Messages(): VNode {
  const { id, query } = route.value;
  return query["parked"] === "yes" || id === "" ? <Parked node={id} /> : <Mailbox node={id} />;
}

function pageOf(node: string) {
  return {
    title: <>Messages {node && <small>{node}</small>}</>,
    more: (
      <>
        <FormButton label="Broadcast" name="open-broadcast" form={broadcasting} />
        <FormButton label="New message" name="open-send" look="primary" form={() => sending(node)} />
      </>
    ),
    known: { parked: ["yes"], before: null },
    concerns: /^message\./,
    list: messagesOf(node),
  };
}

function Mailbox({ node }: { node: string }): VNode {
  const { before } = route.value.query;
  return (
    <ListPage
      {...pageOf(node)}
      load={async (ask) => ({
        ...(await ask("message/history", { node_id: node, before, count: PAGE })),
        next_cursor: null,
      })}
      rows={({ messages }) => messages}
      empty={["No messages."]}
      above={() => <Above node={node} isParked={false} />}
      turns={(page) => {
        const oldest = page?.messages.length === PAGE && page.messages.at(-1);
        return {
          back: before && ["Newest", to("messages", node)],
          next: oldest && ["Older", to("messages", node, { before: oldest.id })],
        };
      }}
    />
  );
}

function Parked({ node }: { node: string }): VNode {
  const node_id = node || undefined;
  return (
    <ListPage
      {...pageOf(node)}
      load={(ask, { page }) => ask("message/parked", { node_id, page: Number(page ?? 1), per_page: PAGE })}
      rows={({ messages }) => messages}
      empty={
        node === ""
          ? [
              "Every message was acknowledged, or still may be. Choose a node to see its messages, or read them in a shell:",
              commandOf("message history worker-1"),
            ]
          : ["No dead letters."]
      }
      above={(page) => (
        <>
          <Above node={node} isParked />
          {page !== null && page.total > 0 && (
            <>
              <div class="buttons">
                <span>{manyOf(page.total, "dead letter")}, the oldest first.</span>
                <Actions actions={[mayActFor(node_id) && redriveAll(node_id, page.total)]} />
              </div>
              <p class="chips">
                {page.by_node?.map(({ node_id: recipient, count }) => (
                  <a key={recipient} class="chip" href={to("messages", recipient, { parked: "yes" })}>
                    {recipient} <b>{countOf(count)}</b>
                  </a>
                ))}
              </p>
            </>
          )}
        </>
      )}
    />
  );
}

/** Puts every dead letter back into its mailbox; those that are parked meanwhile come to the end of the list. */
function redriveAll(node_id: string | undefined, total: number): Action {
  const number = countOf(total);
  const whose = node_id === undefined ? "of all nodes" : `of ${node_id}`;
  const pages = async function* (ask: Ask) {
    let [page, first] = [1, ""];
    for (let remaining = total; remaining > 0;) {
      const { messages } = await ask("message/parked", { node_id, page, per_page: PAGE });
      const id = messages[0]?.id;
      if (id === undefined) return;
      if (id === first) {
        page++; // it was rejected, and stays
        continue;
      }
      first = id;
      yield messages.map(({ to_node, id: message_id }) => ({
        path: "message/redrive" as const,
        body: { node_id: to_node, message_id },
      }));
      remaining -= messages.length;
    }
  };
  const work = (): Promise<void> => changeAll("Redrive all dead letters", "redriven", total, pages);
  const text = `Put the ${number} dead letters ${whose} back into their mailboxes?`;
  return act("redrive-all", "Redrive all", work, undefined, { ask: { text, yes: `Redrive ${number}` } });
}

/** @param node whose messages they are; empty: of all nodes */
function messagesOf(node: string): ListOf<HistoryMessage> {
  return {
    label: "Messages",
    keyOf: ({ id }) => id,
    columns: [
      ["State", ({ state }) => state !== null && <State word={state} />],
      ["From", ({ from_node, verified }) => [from_node, " ", <Verified is={verified} />], "names"],
      ["To", recipientOf, "names"],
      ["Type", ({ type }) => type],
      [
        "Content",
        ({ content }) => (
          <pre class="text short" tabIndex={0}>
            {content}
          </pre>
        ),
        "wide",
      ],
      ["Sent", ({ sent_at }) => <Age at={sent_at} />],
      ["Deliveries", ({ deliveries }) => deliveries, "number"],
    ],
    actions: ({ state, to_node, id }) =>
      state === "parked" && to_node !== null && (node === "" || to_node === node) && mayActFor(to_node)
        ? [redrive(to_node, id)]
        : [],
  };
}

function recipientOf({ to_node, recipients }: HistoryMessage): ComponentChildren {
  if (to_node !== null) return to_node;
  const { waiting = 0, delivered = 0 } = recipients ?? {};
  return ["everyone ", <small>{`${waiting} waiting, ${delivered} delivered`}</small>];
}

function redrive(node_id: string, message_id: string): Action {
  return act(
    "redrive",
    "Redrive",
    () => call("message/redrive", { node_id, message_id }),
    "The message is back in the mailbox.",
  );
}

// ---- Forms

function Above({ node, isParked }: { node: string; isParked: boolean }): VNode {
  return (
    <div class="toolbar">
      <Form
        key={node}
        isRow
        action={act("show", "Show", (fields) => go(to("messages", fields["node"])))}
        fields={[{ name: "node", label: "Node", suggest: nodeNames, required: true, value: node }]}
      />
      {node && (
        <Ranges
          links={[
            ["All messages", to("messages", node), !isParked],
            ["Dead letters", to("messages", node, { parked: "yes" }), isParked],
            ["Dead letters of all nodes", to("messages"), false],
          ]}
        />
      )}
    </div>
  );
}

/** The sender need not be registered. */
const SENDER = "dashboard";
const from = (): FieldOf => ({ name: "from", label: "From", required: true, value: boundTo() ?? SENDER });
const CONTENT: FieldOf = { name: "content", label: "Content", required: true, rows: 3 };
const TYPES = ["text", "task", "status"] as const;
const CALLS = ["broadcast", "alert", "update"] as const;

function sending(recipient: string): FormOf {
  return {
    action: act(
      "send",
      "Send",
      ({ from: from_node = SENDER, to = "", content = "", type, ack }) =>
        call("message/send", {
          ...{ from_node, to_node: to, content },
          type: oneOf(TYPES, type),
          require_ack: ack === "on",
        }),
      "Sent.",
      { look: "primary" },
    ),
    fields: [
      [
        from(),
        { name: "to", label: "To", suggest: nodeNames, required: true, value: recipient },
        { name: "type", label: "Type", options: TYPES },
      ],
      CONTENT,
      { name: "ack", label: "must be acknowledged", type: "check" },
    ],
  };
}

function broadcasting(): FormOf {
  return {
    action: act(
      "broadcast",
      "Broadcast",
      ({ from: from_node = SENDER, content = "", type }) =>
        call("message/broadcast", { from_node, content, type: oneOf(CALLS, type) }),
      "Sent to all nodes that are online.",
      { look: "primary" },
    ),
    fields: [[from(), { name: "type", label: "Type", options: CALLS }], CONTENT],
  };
}
