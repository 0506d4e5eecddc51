/** `luxhub lux`: the balance and the ledger of a node; exports the whole ledger, and verifies an export offline. */
import { must } from "../lib/assert.ts";
import { reasonOf } from "../lib/reason.ts";
import { type Arguments, UsageError } from "./arguments.ts";
import { EXIT } from "./exit-codes.ts";
import { ledgerOf } from "./export.ts";
import { LedgerCheck } from "./ledger-check.ts";
import { type ClientRuns, limitOf, printError } from "./remote.ts";
import { rowsOf } from "./resource.ts";
import type { LocalRuns } from "./run.ts";
import { writeLine } from "./standard-output.ts";
import { plain, print, printJsonLine, printJsonList, printTable, timeText } from "./table.ts";
import { Values } from "./values.ts";

const VERIFY = "lux verify";
const HASH = /^[0-9a-f]{64}$/;

export const RUNS: ClientRuns = {
  "lux export": async ({ hub }) => {
    for await (const entry of ledgerOf(hub)) printJsonLine(entry);
    return EXIT.OK;
  },
  lux: async (remote) => {
    const { hub, json, words } = remote;
    const [nodeId = ""] = words;
    const entries = rowsOf(hub, "lux/ledger", { node_id: nodeId }, limitOf(remote));
    if (json) {
      await printJsonList(entries);
      return EXIT.OK;
    }
    const { node } = await hub.nodes.get({ node_id: nodeId });
    print(`${plain(node.node_id)} has ${node.lux_balance} LUX`);
    const rows = await Array.fromAsync(entries, ({ at, amount, kind, task_id }) => [
      timeText(at),
      amount,
      kind,
      task_id,
    ]);
    if (rows.length > 0) printTable(["TIME", "LUX", "KIND", "TASK"], rows);
    return EXIT.OK;
  },
};

export const LOCAL_RUNS: LocalRuns = { [VERIFY]: verify };

async function verify(args: Arguments): Promise<number> {
  const values = new Values(args, VERIFY);
  const head = values.text("head")?.toLowerCase() ?? null;
  if (head !== null && !HASH.test(head))
    throw new UsageError(`--head is ${JSON.stringify(head)}; it must be 64 hexadecimal digits`, VERIFY);
  const [path = "-"] = args.words;
  const check = new LedgerCheck(head);
  try {
    for await (const line of linesOf(path === "-" ? Bun.stdin.stream() : Bun.file(path).stream()))
      check.take(line);
  } catch (error) {
    printError(`${path === "-" ? "standard input" : path} cannot be read: ${reasonOf(error)}`);
    return EXIT.FAILED;
  }
  const { faults, more, summary } = check.end();
  for (const fault of faults) printError(fault);
  if (more > 0) printError(`and ${more} more faults`);
  writeLine(faults.length === 0 ? summary : `NOT INTACT: ${summary}`);
  return faults.length === 0 ? EXIT.OK : EXIT.FAILED;
}

async function* linesOf(bytes: ReadableStream<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let line = "";
  for await (const chunk of bytes) {
    const lines = (line + decoder.decode(chunk, { stream: true })).split("\n");
    line = must(lines.pop(), "a split text has a last part");
    yield* lines;
  }
  line += decoder.decode();
  if (line !== "") yield line;
}
