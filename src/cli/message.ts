/** `luxhub message …`: sends, receives and lists messages. */
import type { Environment } from "../config.ts";
import type { AnswerOf } from "../client/luxhub.ts";
import { MESSAGES_MAX } from "../domain/limits.ts";
import { SEND_TYPES } from "../domain/model.ts";
import { printableJson } from "../lib/printable.ts";
import { UsageError } from "./arguments.ts";
import { EXIT } from "./exit-codes.ts";
import {
  type Remote,
  type Run,
  collect,
  limitOf,
  readStandardInput,
  recordOf,
  rowsOf,
  runGroup,
} from "./remote.ts";
import { plain, print, printJsonList, timeText } from "./table.ts";
import { writeLine } from "./standard-output.ts";

export function messageCommand(argv: readonly string[], env: Environment): Promise<number> {
  return runGroup("message", RUNS, argv, env);
}

const RUNS: Readonly<Record<string, Run>> = {
  "message send": send,
  "message receive": receive,
  "message history": (remote) => show(remote, historyOf(remote)),
  "message parked": (remote) => show(remote, parkedOf(remote)),
};

type Listed = AnswerOf<"message/history">["messages"][number];

async function send({ hub, values, json, words: [word = ""] }: Remote): Promise<number> {
  const capability = values.text("taking");
  const toMany = values.has("all") || capability !== undefined;
  const alone = ["to", "type", "ack"].find((name) => values.has(name));
  if (toMany && alone !== undefined)
    throw new UsageError(
      `--${alone} is for a message to one node, without --all or --taking`,
      "message send",
    );
  const draft = {
    from_node: values.needed("from"),
    content: word === "-" ? await readStandardInput() : word,
    reply_to: values.text("reply-to"),
    thread: values.text("thread"),
  };
  const answer = await (toMany
    ? hub.messages.broadcast({ ...draft, capability })
    : hub.messages.send({
        ...draft,
        to_node: values.needed("to"),
        type: values.choice("type", SEND_TYPES),
        require_ack: values.has("ack"),
      }));
  return writeLine(json ? printableJson(recordOf(answer), 2) : answer.message_id);
}

async function receive({ hub, values, json, words: [nodeId = ""] }: Remote): Promise<number> {
  const wait = values.seconds("wait");
  const { messages } = await hub.messages.receive({
    node_id: nodeId,
    count: values.whole("count", 1),
    ...(wait !== undefined && { blocking: true, timeout: wait }),
  });
  if (json) writeLine(printableJson(messages, 2));
  else if (messages.length > 0) writeLine(messages.map(textOf).join("\n\n"));
  if (values.has("ack"))
    for (const { id, require_ack } of messages)
      if (require_ack) await hub.messages.ack({ node_id: nodeId, message_id: id });
  return wait !== undefined && messages.length === 0 ? EXIT.TIMED_OUT : EXIT.OK;
}

async function show({ json }: Remote, messages: AsyncIterable<Listed>): Promise<number> {
  if (json) await printJsonList(messages);
  else {
    const all = await collect(messages);
    if (all.length > 0) print(all.map((message) => textOf(message)).join("\n\n"));
  }
  return EXIT.OK;
}

async function* historyOf(remote: Remote): AsyncGenerator<Listed, void, undefined> {
  const [nodeId = ""] = remote.words;
  const thread = remote.values.text("thread");
  let left = limitOf(remote);
  for (let before: string | undefined; left > 0;) {
    const count = Math.min(left, MESSAGES_MAX);
    const { messages } = await remote.hub.messages.history({ node_id: nodeId, before, count, thread });
    yield* messages;
    left -= messages.length;
    before = messages.at(-1)?.id;
    if (before === undefined) return;
  }
}

function parkedOf(remote: Remote): AsyncIterable<Listed> {
  const [nodeId = ""] = remote.words;
  const load = async (page: { readonly page: number; readonly per_page: number }) => {
    const { messages, pages } = await remote.hub.messages.parked({ node_id: nodeId, ...page });
    return { rows: messages, pages };
  };
  return rowsOf(load, ({ id }) => id, limitOf(remote));
}

type Shown = {
  readonly id: string;
  readonly from_node: string;
  readonly to_node: string | null;
  readonly type: string;
  readonly sent_at: string;
  readonly content: string;
  readonly state?: string | null;
};

function textOf({ id, from_node, to_node, type, sent_at, content, state }: Shown): string {
  const about = [
    timeText(sent_at),
    `${from_node} -> ${to_node ?? "all"}`,
    type,
    ...(state ? [state] : []),
    id,
  ];
  return plain(`${about.join("  ")}\n${content}`);
}
