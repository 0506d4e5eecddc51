/** A node's messages with their delivery status, its parked messages, and the forms that send one. */
import { Fragment, type JSX, h } from "preact";
import type { HistoryMessage } from "../../client/luxhub.ts";
import { changeAll } from "./batches.tsx";
import { commandOf, countOf } from "./format.ts";
import { NodeField } from "./node-field.tsx";
import {
  Age,
  Empty,
  Fault,
  Field,
  Form,
  Select,
  State,
  Verified,
  askToConfirm,
  runAction,
  useEvents,
  useLoad,
} from "./parts.tsx";
import { go, route, to } from "./route.ts";
import { hub } from "./session.ts";

const PAGE = 50;

export function Messages(): JSX.Element {
  const { id, query } = route.value;
  const isParked = query["parked"] === "yes" || id === "";
  return (
    <>
      <header class="head">
        <h1>Messages {id && <small>{id}</small>}</h1>
      </header>
      <Form class="filters" onSend={({ node = "" }) => go(to("messages", node))} key={id}>
        <NodeField label="Node" name="node" required value={id} />
        <button type="submit" data-do="show">
          Show
        </button>
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
          <section>
            <h2>Send</h2>
            <Send to={id} />
          </section>
          <section>
            <h2>Broadcast</h2>
            <Broadcast />
          </section>
        </div>
      </details>
      {isParked ? <Parked node={id} /> : <Mailbox node={id} />}
    </>
  );
}

/** What it sent and got, newest first. */
function Mailbox({ node }: { node: string }): JSX.Element {
  const { before } = route.value.query;
  const loaded = useLoad(`${node} ${before}`, (from, signal) =>
    from.call("message/history", { node_id: node, before, count: PAGE }, { signal }),
  );
  useEvents(({ kind }) => kind.startsWith("message."), loaded);
  const { value, error } = loaded;
  const oldest = value?.messages.at(-1)?.id;
  return (
    <>
      <Fault text={error} />
      {value?.messages.length === 0 && <Empty text="No messages." />}
      <List messages={value?.messages ?? []} node={node} />
      <nav class="pager" aria-label="Pages">
        {before && <a href={to("messages", node)}>Newest</a>}
        {value?.messages.length === PAGE && oldest && (
          <a rel="next" href={to("messages", node, { before: oldest })}>
            Older
          </a>
        )}
      </nav>
    </>
  );
}

/** What a node, or any node (empty), got and never confirmed, oldest first. */
function Parked({ node }: { node: string }): JSX.Element {
  const page = Number(route.value.query["page"] ?? 1);
  const node_id = node || undefined;
  const loaded = useLoad(`${node} ${page}`, (from, signal) =>
    from.call("message/parked", { node_id, page, per_page: PAGE }, { signal }),
  );
  useEvents(({ kind }) => kind.startsWith("message."), loaded);
  const { value, error } = loaded;
  const at = (page: number): string => to("messages", node, { parked: "yes", page: String(page) });
  return (
    <>
      <Fault text={error} />
      {value?.total === 0 &&
        (node === "" ? (
          <Empty
            text="Every message was confirmed, or still may be. Choose a node to see its messages, or read them in a shell:"
            line={commandOf("message", "history", "worker-1")}
          />
        ) : (
          <Empty text="No dead letters." />
        ))}
      {value && value.total > 0 && (
        <div class="buttons">
          <span>
            {countOf(value.total)} {value.total === 1 ? "dead letter" : "dead letters"}, the oldest first.
          </span>
          <button type="button" data-do="redrive-all" onClick={() => void redriveAll(node_id, value.total)}>
            Redrive all
          </button>
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
      <nav class="pager" aria-label="Pages">
        {page > 1 && <a href={at(page - 1)}>Older</a>}
        {value && page < value.pages && (
          <a rel="next" href={at(page + 1)}>
            Newer
          </a>
        )}
      </nav>
    </>
  );
}

/** Puts every dead letter back into its mailbox; those that are parked meanwhile come to the end of the list. */
async function redriveAll(node_id: string | undefined, total: number): Promise<void> {
  const number = countOf(total);
  const whose = node_id === undefined ? "of all nodes" : `of ${node_id}`;
  const question = `Put the ${number} dead letters ${whose} back into their mailboxes?`;
  if (!(await askToConfirm(question, `Redrive ${number}`))) return;
  await changeAll("Redrive all dead letters", "redriven", total, async function* (signal) {
    let [page, first] = [1, ""];
    for (let left = total; left > 0;) {
      const { messages } = await hub.value.call(
        "message/parked",
        { node_id, page, per_page: PAGE },
        { signal },
      );
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

function List({ messages, node }: { messages: readonly HistoryMessage[]; node: string }): JSX.Element {
  const redrive = (node_id: string, message_id: string): void =>
    void runAction("The message is back in the mailbox.", () =>
      hub.value.call("message/redrive", { node_id, message_id }),
    );
  return (
    <ul class="messages">
      {messages.map((message) => (
        <One key={message.id} message={message} node={node} onRedrive={redrive} />
      ))}
    </ul>
  );
}

function One(props: {
  message: HistoryMessage;
  node: string;
  onRedrive: (node: string, id: string) => void;
}): JSX.Element {
  const { message, node } = props;
  const { recipients: to, state } = message;
  return (
    <li class={message.from_node === node ? "sent" : "got"}>
      <p class="meta">
        <b>{message.from_node}</b> <Verified is={message.verified} /> → <b>{message.to_node ?? "everyone"}</b>{" "}
        <span>{message.type}</span> {state !== null && <State word={state} />}{" "}
        {to !== null && (
          <small>
            {to.waiting} waiting, {to.delivered} delivered
          </small>
        )}{" "}
        {(message.deliveries ?? 0) > 1 && <small>{message.deliveries}×</small>} <Age at={message.sent_at} />
        {state === "parked" && message.to_node !== null && (node === "" || message.to_node === node) && (
          <button
            type="button"
            data-do="redrive"
            onClick={() => props.onRedrive(message.to_node ?? "", message.id)}
          >
            Redrive
          </button>
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

const TYPES = [
  ["text", "text"],
  ["task", "task"],
  ["status", "status"],
] as const;

function Send({ to: recipient }: { to: string }): JSX.Element {
  return (
    <Form
      key={recipient}
      onSend={async (fields, form) => {
        const type = TYPES.map(([word]) => word).find((word) => word === fields["type"]);
        const isSent = await runAction("Sent.", () =>
          hub.value.call("message/send", {
            from_node: fields["from"] ?? SENDER,
            to_node: fields["to"] ?? "",
            content: fields["content"] ?? "",
            type,
            require_ack: fields["ack"] === "on",
          }),
        );
        if (isSent) form.reset();
      }}
    >
      <div class="row-of-fields">
        <Field label="From" name="from" required value={SENDER} />
        <NodeField label="To" name="to" required value={recipient} />
        <Select label="Type" name="type" options={TYPES} />
      </div>
      <Field label="Content" name="content" required rows={3} />
      <p class="buttons">
        <button type="submit" class="primary" data-do="send">
          Send
        </button>
        <label class="check">
          <input type="checkbox" name="ack" /> must be acknowledged
        </label>
      </p>
    </Form>
  );
}

const CALLS = [
  ["broadcast", "broadcast"],
  ["alert", "alert"],
  ["update", "update"],
] as const;

function Broadcast(): JSX.Element {
  return (
    <Form
      onSend={async (fields, form) => {
        const type = CALLS.map(([word]) => word).find((word) => word === fields["type"]);
        const isSent = await runAction("Sent to all nodes that are online.", () =>
          hub.value.call("message/broadcast", {
            from_node: fields["from"] ?? SENDER,
            content: fields["content"] ?? "",
            type,
          }),
        );
        if (isSent) form.reset();
      }}
    >
      <div class="row-of-fields">
        <Field label="From" name="from" required value={SENDER} />
        <Select label="Type" name="type" options={CALLS} />
      </div>
      <Field label="Content" name="content" required rows={3} />
      <p class="buttons">
        <button type="submit" data-do="broadcast">
          Broadcast
        </button>
      </p>
    </Form>
  );
}
