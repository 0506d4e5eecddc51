/** A node's messages with their delivery status, its parked messages, and the forms that send one. */
import { Fragment, type VNode, h } from "preact";
import type { HistoryMessage } from "../../client/luxhub.ts";
import { changeAll } from "./batches.tsx";
import { commandOf, countOf, manyOf, oneOf } from "./format.ts";
import { NodeField } from "./suggest-field.tsx";
import {
  Age,
  Button,
  Empty,
  Fault,
  Field,
  Form,
  Head,
  Pager,
  Section,
  Select,
  State,
  Verified,
  askToConfirm,
  runAction,
  useLoad,
} from "./parts.tsx";
import { go, route, to } from "./route.ts";
import { call } from "./session.ts";

const PAGE = 50;

export function Messages(): VNode {
  const { id, query } = route.value;
  const isParked = query["parked"] === "yes" || id === "";
  return (
    <>
      <Head>Messages {id && <small>{id}</small>}</Head>
      <Form class="filters" onSend={({ node = "" }) => go(to("messages", node))} key={id}>
        <NodeField label="Node" name="node" required value={id} />
        <button data-do="show">Show</button>
        {id && (
          <>
            <label class="check">
              <input
                type="checkbox"
                name="parked"
                checked={isParked}
                onChange={(event) =>
                  go(to("messages", id, { parked: event.currentTarget.checked ? "yes" : undefined }))
                }
              />{" "}
              dead letters (parked) only
            </label>
            <a class="button" href={to("messages")}>
              Dead letters of all nodes
            </a>
          </>
        )}
      </Form>
      <details class="more">
        <summary>New message</summary>
        <div class="columns charts">
          <Section title="Send">
            <Send to={id} />
          </Section>
          <Section title="Broadcast">
            <Broadcast />
          </Section>
        </div>
      </details>
      {isParked ? <Parked node={id} /> : <Mailbox node={id} />}
    </>
  );
}

/** What it sent and got, newest first. */
function Mailbox({ node }: { node: string }): VNode {
  const { before } = route.value.query;
  const loaded = useLoad(
    `${node} ${before}`,
    (ask) => ask("message/history", { node_id: node, before, count: PAGE }),
    /^message\./,
  );
  const { value, error } = loaded;
  const oldest = value?.messages.at(-1)?.id;
  return (
    <>
      <Fault text={error} />
      {value?.messages.length === 0 && <Empty text="No messages." />}
      <List messages={value?.messages ?? []} node={node} />
      <Pager
        back={before && ["Newest", to("messages", node)]}
        next={
          value?.messages.length === PAGE && oldest && ["Older", to("messages", node, { before: oldest })]
        }
      />
    </>
  );
}

/** What a node, or any node (empty), got and never acknowledged, oldest first. */
function Parked({ node }: { node: string }): VNode {
  const page = Number(route.value.query["page"] ?? 1);
  const node_id = node || undefined;
  const loaded = useLoad(
    `${node} ${page}`,
    (ask) => ask("message/parked", { node_id, page, per_page: PAGE }),
    /^message\./,
  );
  const { value, error } = loaded;
  const at = (page: number): string => to("messages", node, { parked: "yes", page: String(page) });
  return (
    <>
      <Fault text={error} />
      {value?.total === 0 &&
        (node === "" ? (
          <Empty
            text="Every message was acknowledged, or still may be. Choose a node to see its messages, or read them in a shell:"
            line={commandOf("message history worker-1")}
          />
        ) : (
          <Empty text="No dead letters." />
        ))}
      {value && value.total > 0 && (
        <div class="buttons">
          <span>{manyOf(value.total, "dead letter")}, the oldest first.</span>
          <Button data-do="redrive-all" onClick={() => redriveAll(node_id, value.total)}>
            Redrive all
          </Button>
        </div>
      )}
      {value?.by_node && value.by_node.length > 0 && (
        <p class="chips">
          {value.by_node.map(({ node_id: of, count }) => (
            <a key={of} class="chip" href={to("messages", of, { parked: "yes" })}>
              {of} <b>{countOf(count)}</b>
            </a>
          ))}
        </p>
      )}
      <List messages={value?.messages ?? []} node={node} />
      <Pager
        back={page > 1 && ["Older", at(page - 1)]}
        next={value && page < value.pages && ["Newer", at(page + 1)]}
      />
    </>
  );
}

/** Puts every dead letter back into its mailbox; those that are parked meanwhile come to the end of the list. */
async function redriveAll(node_id: string | undefined, total: number): Promise<void> {
  const number = countOf(total);
  const whose = node_id === undefined ? "of all nodes" : `of ${node_id}`;
  const question = `Put the ${number} dead letters ${whose} back into their mailboxes?`;
  if (!(await askToConfirm(question, `Redrive ${number}`))) return;
  await changeAll("Redrive all dead letters", "redriven", total, async function* (ask) {
    let [page, first] = [1, ""];
    for (let left = total; left > 0;) {
      const { messages } = await ask("message/parked", { node_id, page, per_page: PAGE });
      const id = messages[0]?.id;
      if (id === undefined) return;
      if (id === first) {
        page++; // it was rejected, and stays
        continue;
      }
      first = id;
      yield messages.map((message) => ({
        path: "message/redrive" as const,
        body: { node_id: message.to_node, message_id: message.id },
      }));
      left -= messages.length;
    }
  });
}

function List({ messages, node }: { messages: readonly HistoryMessage[]; node: string }): VNode {
  return (
    <ul class="messages">
      {messages.map((message) => (
        <One key={message.id} message={message} node={node} />
      ))}
    </ul>
  );
}

function One({ message, node }: { message: HistoryMessage; node: string }): VNode {
  const { recipients: to, state, to_node } = message;
  const redrive = (node_id: string): Promise<boolean> =>
    runAction("The message is back in the mailbox.", () =>
      call("message/redrive", { node_id, message_id: message.id }),
    );
  return (
    <li class={message.from_node === node ? "sent" : "got"}>
      <p class="meta">
        <b>{message.from_node}</b> <Verified is={message.verified} /> → <b>{to_node ?? "everyone"}</b>{" "}
        <span>{message.type}</span> {state !== null && <State word={state} />}{" "}
        {to !== null && (
          <small>
            {to.waiting} waiting, {to.delivered} delivered
          </small>
        )}{" "}
        {(message.deliveries ?? 0) > 1 && <small>{message.deliveries}×</small>} <Age at={message.sent_at} />
        {state === "parked" && to_node !== null && (node === "" || to_node === node) && (
          <Button data-do="redrive" onClick={() => redrive(to_node)}>
            Redrive
          </Button>
        )}
      </p>
      <pre class="text short" tabIndex={0}>
        {message.content}
      </pre>
    </li>
  );
}

/** The sender need not be registered. */
const SENDER = "dashboard";

const TYPES = ["text", "task", "status"] as const;

function Send({ to: recipient }: { to: string }): VNode {
  return (
    <Form
      key={recipient}
      onSend={({ from = SENDER, to = "", content = "", type, ack }) =>
        runAction("Sent.", () =>
          call("message/send", {
            ...{ from_node: from, to_node: to, content },
            type: oneOf(TYPES, type),
            require_ack: ack === "on",
          }),
        )
      }
    >
      <div class="row-of-fields">
        <Field label="From" name="from" required value={SENDER} />
        <NodeField label="To" name="to" required value={recipient} />
        <Select label="Type" name="type" options={TYPES} />
      </div>
      <Field label="Content" name="content" required rows={3} />
      <p class="buttons">
        <button class="primary" data-do="send">
          Send
        </button>
        <label class="check">
          <input type="checkbox" name="ack" /> must be acknowledged
        </label>
      </p>
    </Form>
  );
}

const CALLS = ["broadcast", "alert", "update"] as const;

function Broadcast(): VNode {
  return (
    <Form
      onSend={({ from = SENDER, content = "", type }) =>
        runAction("Sent to all nodes that are online.", () =>
          call("message/broadcast", { from_node: from, content, type: oneOf(CALLS, type) }),
        )
      }
    >
      <div class="row-of-fields">
        <Field label="From" name="from" required value={SENDER} />
        <Select label="Type" name="type" options={CALLS} />
      </div>
      <Field label="Content" name="content" required rows={3} />
      <p class="buttons">
        <button data-do="broadcast">Broadcast</button>
      </p>
    </Form>
  );
}
