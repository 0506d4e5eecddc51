/**
 * One agent of the section `agents`: a process of its own, which may be killed at any moment. By the official client of
 * MCP it takes tasks, works a moment, and completes each with one more than the sum of what the task depends on.
 *
 * It repeats every call whose result it did not get, with the same arguments, as an agent does. On standard output it
 * writes a line for each task that it got (`got`), for each completion that was acknowledged (`done`), and for each
 * refusal (`refused`).
 *
 * Arguments: the URL of the hub, the node, and the revision of the protocol. LUXHUB_SECRET has the secret.
 */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const PAUSE_MS = 20;
const WORK_MS = 200;

type Fields = Readonly<Record<string, unknown>>;

const fieldsOf = (value: unknown): Fields => Object(value);

/** Connects as often as it takes. */
export async function connect(url: string, nodeId: string, era: string, secret: string): Promise<Client> {
  for (;;) {
    const mode = era === "2025-11-25" ? "legacy" : { pin: era };
    const client = new Client({ name: nodeId, version: "1" }, { versionNegotiation: { mode } });
    const headers = { Authorization: `Bearer ${secret}`, "X-Node-Id": nodeId };
    try {
      await client.connect(
        new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } }),
      );
      return client;
    } catch {
      await Bun.sleep(PAUSE_MS); // the hub is away
    }
  }
}

/** Calls a tool until there is a result. A refusal is one, with `error`. */
export async function call(client: Client, name: string, args: Record<string, unknown>): Promise<Fields> {
  for (;;) {
    try {
      return fieldsOf((await client.callTool({ name, arguments: args })).structuredContent);
    } catch {
      await Bun.sleep(PAUSE_MS); // the hub is away, or the result was lost
    }
  }
}

/** What a task of the section has as its output. */
export function sumFor(inputs: readonly number[]): number {
  return 1 + inputs.reduce((sum, input) => sum + input, 0);
}

function inputsOf(task: Fields): readonly number[] {
  const { inputs } = fieldsOf(task["context"]);
  const all: readonly unknown[] = Array.isArray(inputs) ? inputs : [];
  return all.map((input) => Number(fieldsOf(fieldsOf(fieldsOf(input)["result"])["output"])["sum"]));
}

async function work(client: Client): Promise<never> {
  for (;;) {
    const { task } = await call(client, "task_next", { wait_s: 2 });
    if (task === null || task === undefined) continue;
    const fields = fieldsOf(task);
    const taskId = fields["task_id"];
    console.log(`got ${String(taskId)}`);
    await Bun.sleep(Math.random() * WORK_MS);
    const result = { problem: "the sum", improvement: "added", lesson: "none" };
    const output = { sum: sumFor(inputsOf(fields)) };
    const { error } = await call(client, "task_complete", { task_id: taskId, ...result, output });
    console.log(
      error === undefined ? `done ${String(taskId)}` : `refused ${String(taskId)} ${String(error)}`,
    );
  }
}

if (import.meta.main) {
  const [url = "", nodeId = "", era = ""] = process.argv.slice(2);
  await work(await connect(url, nodeId, era, process.env["LUXHUB_SECRET"] ?? ""));
}
