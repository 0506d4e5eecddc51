/** `luxhub message send` and `receive`. */
import { SEND_TYPES } from "../domain/model.ts";
import { printableJson } from "../lib/printable.ts";
import { UsageError } from "./arguments.ts";
import { EXIT } from "./exit-codes.ts";
import { type Remote, type ClientRuns, readStandardInput, recordOf } from "./remote.ts";
import { messageText } from "./rows.ts";
import { writeLine } from "./standard-output.ts";

export const RUNS: ClientRuns = { "message send": send, "message receive": receive };

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
  else if (messages.length > 0) writeLine(messages.map(messageText).join("\n\n"));
  if (values.has("ack"))
    for (const { id, require_ack } of messages)
      if (require_ack) await hub.messages.ack({ node_id: nodeId, message_id: id });
  return wait !== undefined && messages.length === 0 ? EXIT.TIMED_OUT : EXIT.OK;
}
