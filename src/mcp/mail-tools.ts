/** The tools about messages. */
import { encodeDelivery, encodeFate } from "../api/response-schemas.ts";
import {
  MCP_ACKS_MAX,
  MCP_LIST_DEFAULT,
  MCP_LIST_MAX,
  MCP_MAIL_MAX,
  MCP_MAIL_MAX_BYTES,
  MCP_NAMED_MAX,
} from "../domain/limits.ts";
import type { MessageFate } from "../domain/model.ts";
import type { JsonObject } from "../http/json-body.ts";
import { invalidRequest } from "../http/problem.ts";
import { SECOND_MS } from "../lib/clock.ts";
import { type Args, countOf, offsetOf, someOf, textOf, textsOf } from "./arguments.ts";
import { countThatFits } from "./pages.ts";
import { type ToolResult, brief } from "./result.ts";
import { type Session, codeOf, once, onceTold } from "./session.ts";
import { messageDetail, messageRow, plural, recordOf, sentences } from "./shapes.ts";

const ID_CHARS = 60;

/** In to_node: every node that is online. No node has this id. */
const EVERYONE = "*";

export async function mailSend(session: Session, args: Args): Promise<ToolResult> {
  const { key: _, to_node, capability, reply_to, require_ack, ...draft } = args;
  const isToMany = to_node === EVERYONE || capability !== undefined;
  checkRecipient(args, isToMany);
  const from_node = session.self;
  const answered = reply_to === undefined ? null : await oneOf(session, String(reply_to));
  const common = { ...draft, from_node, ...(reply_to === undefined ? {} : { reply_to }) };
  const [path, fields] = isToMany
    ? (["message/broadcast", { ...common, capability }] as const)
    : ([
        "message/send",
        { ...common, require_ack, to_node: to_node ?? senderOf(answered, from_node) },
      ] as const);
  const answer = await session.ask("POST", path, fields, once(session, args));
  const messageId = answer["message_id"];
  const sent = await oneOf(session, String(messageId));
  const receivers = isToMany ? textsOf(answer["receivers"]) : [String(sent["to_node"])];
  const say =
    receivers.length === 0
      ? "Nobody got it: no such node is online. node_list shows the nodes."
      : sentences(
          `Sent to ${plural(receivers.length, "node")}.`,
          require_ack === true && "mail_check {message_id} shows when it is acknowledged (state acked).",
          `Answers come with reply_to ${String(messageId)}: mail_check {wait_s} waits for them.`,
        );
  return onceTold(answer, say, {
    message_id: messageId,
    thread: sent["thread"],
    receivers: receivers.slice(0, MCP_NAMED_MAX),
    receivers_count: receivers.length,
  });
}

function checkRecipient({ to_node, capability, reply_to, require_ack }: Args, isToMany: boolean): void {
  const refuse = (path: string, message: string): never => {
    throw invalidRequest([{ path, message }]);
  };
  if (to_node !== undefined && to_node !== EVERYONE && capability !== undefined)
    refuse("capability", "must not be sent together with to_node: it selects the nodes");
  if (isToMany && require_ack === true) refuse("require_ack", "is for a message to one node");
  if (!isToMany && to_node === undefined && reply_to === undefined)
    refuse("to_node", 'is required: a node_id, or "*" for everyone; or send capability or reply_to instead');
}

/** To whom a reply goes that names nobody: to the sender of the message, or on to whom one wrote oneself. */
function senderOf(answered: JsonObject | null, self: string): unknown {
  const { from_node, to_node } = recordOf(answered);
  return from_node === self ? to_node : from_node;
}

/** A message that the caller sent or got. @throws {Rejection} */
async function oneOf({ call, self }: Session, messageId: string): Promise<JsonObject> {
  return recordOf(encodeFate(await call.services.messages.one(self, messageId)));
}

export async function mailCheck(session: Session, args: Args): Promise<ToolResult> {
  const { message_id, cursor } = args;
  if (args["all"] === true || args["thread"] !== undefined) return mailList(session, args);
  if (message_id !== undefined) return oneMessage(session, String(message_id), offsetOf(args));
  const { call, self } = session;
  const waitMs = session.waitFor(args["wait_s"]) * SECOND_MS;
  const most = { count: MCP_MAIL_MAX + 1, maxBytes: MCP_MAIL_MAX_BYTES, after: textOf(cursor) };
  const peek = (signal: AbortSignal) => call.services.messages.peek(self, most, { waitMs, signal });
  const waiting = await (waitMs > 0 ? session.call.hold(peek) : peek(call.exchange.request.signal));
  const rows = waiting.map((delivery) => messageRow(recordOf(encodeDelivery(delivery))));
  const shown = rows.slice(0, Math.min(countThatFits(rows), MCP_MAIL_MAX));
  const bytes = waiting.reduce((sum, { message }) => sum + Buffer.byteLength(message.content), 0);
  const mayBeMore = shown.length < rows.length || bytes >= MCP_MAIL_MAX_BYTES;
  const next = mayBeMore ? (shown.at(-1)?.["message_id"] ?? null) : null;
  if (shown.length === 0) {
    const say = "No messages wait for you. mail_check with wait_s waits for one.";
    return { say, messages: [], next_cursor: null };
  }
  const hint = next === null ? "" : " More wait behind them: mail_check with cursor next_cursor.";
  const say =
    `${plural(shown.length, "message")}, oldest first. Answer with mail_send {reply_to}, then mail_ack the message_ids ` +
    `that you have dealt with.${hint}`;
  return { say, messages: shown, next_cursor: next };
}

async function oneMessage(session: Session, messageId: string, offset: number): Promise<ToolResult> {
  const message = await oneOf(session, messageId);
  const state = textOf(message["state"]);
  const isOwn = message["from_node"] === session.self;
  const say = isOwn && state !== null ? `You sent it; its state is ${state}.` : "A message of yours.";
  return { say, message: messageDetail(message, Math.trunc(offset)) };
}

async function mailList(session: Session, args: Args): Promise<ToolResult> {
  const { call, self } = session;
  const most = countOf(args["limit"], MCP_LIST_DEFAULT, MCP_LIST_MAX);
  const filter = { before: textOf(args["cursor"]), thread: textOf(args["thread"]) };
  const load = () => call.services.messages.history(self, filter, most + 1);
  const { rows } = await call.backpressure.runRead(call, load);
  const rowOf = (fate: MessageFate): JsonObject => messageRow(recordOf(encodeFate(fate)));
  const messages = rows.first.map(rowOf);
  while (countThatFits(messages) === messages.length) {
    const part = await rows.next?.();
    if (part == null) break;
    messages.push(...part.map(rowOf));
  }
  const shown = messages.slice(0, Math.min(countThatFits(messages), most));
  const next = shown.length < messages.length ? (shown.at(-1)?.["message_id"] ?? null) : null;
  const count =
    shown.length === 0 ? "No such messages." : `${plural(shown.length, "message")}, newest first.`;
  const hint = next === null ? "" : " There are more: call again with cursor next_cursor.";
  return { say: `${count}${hint}`, messages: shown, next_cursor: next };
}

export async function mailAck(session: Session, args: Args): Promise<ToolResult> {
  const { self } = session;
  const ids = new Set(someOf("message_ids", args["message_ids"], MCP_ACKS_MAX));
  const acked: string[] = [];
  const refused: JsonObject[] = [];
  for (const messageId of ids) {
    try {
      await session.ask("POST", "message/ack", { node_id: self, message_id: messageId });
      acked.push(messageId);
    } catch (error) {
      if (codeOf(error) === null) throw error;
      refused.push({ message_id: brief(messageId, ID_CHARS), error: codeOf(error) });
    }
  }
  const not = refused.length === 0 ? "" : ` ${plural(refused.length, "message")} not: see refused.`;
  return { say: `Acknowledged ${plural(acked.length, "message")}.${not}`, acked, refused };
}
