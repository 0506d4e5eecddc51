/**
 * A receiver of webhooks (webhooks.ts), as a program of its own, so that it can be killed. It writes each message down
 * before it responds: with 500, with Retry-After, late, or by hanging up, at random. Arguments: a ReceiverPlan as JSON.
 */
import { appendFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import { randomFrom } from "./random.ts";

export type ReceiverPlan = {
  readonly host: string;
  readonly port: number;
  /** The file that it appends a line to for each message. */
  readonly ledger: string;
  readonly secret: string;
  readonly seed: number;
};

/** One message. `hook`: the path of its URL. */
export type Received = {
  readonly hook: string;
  readonly webhookId: string;
  readonly isSigned: boolean;
  /** The event, as the message has it. */
  readonly event: Readonly<Record<string, unknown>>;
  readonly did: Response;
};
type Response = "took" | "500" | "busy" | "hung up" | "late";

/** Of its messages, each third one gets 500; the messages to the other paths fail at random. */
export const THIRDS = "thirds";
/** What happens to the messages of the other paths, and how often. */
const FAULTS: readonly (readonly [Response, number])[] = [
  ["500", 0.02],
  ["busy", 0.01],
  ["hung up", 0.01],
  ["late", 0.03],
];
const LATE_MS = 400;

type Verify = (secret: string, headers: Headers, body: string) => Promise<string>;

function respond(did: Response, request: IncomingMessage, response: ServerResponse): void {
  const end = (status: number, headers = {}): void => void response.writeHead(status, headers).end();
  switch (did) {
    case "took":
      return end(204);
    case "500":
      return end(500);
    case "busy":
      return end(503, { "Retry-After": "1" });
    case "hung up":
      return void request.socket.destroy();
    case "late":
      return void setTimeout(() => end(200), LATE_MS);
  }
}

async function receive(plan: ReceiverPlan): Promise<void> {
  const { verifyWebhook } = (await import(
    join(import.meta.dir, "../../docs/examples/verify-webhook.mjs")
  )) as {
    readonly verifyWebhook: Verify; // as its comment declares it
  };
  const random = randomFrom(plan.seed);
  const counts = new Map<string, number>();
  const choose = (hook: string): Response => {
    const n = (counts.get(hook) ?? 0) + 1;
    counts.set(hook, n);
    if (hook === THIRDS) return n % 3 === 0 ? "500" : "took";
    let dice = random();
    return FAULTS.find(([, share]) => (dice -= share) < 0)?.[0] ?? "took";
  };
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(Buffer.from(part));
    const body = Buffer.concat(parts).toString();
    const headers = new Headers(Object.entries(request.headersDistinct).map(([k, v]) => [k, String(v)]));
    const webhookId = headers.get("webhook-id") ?? "";
    const isSigned = await verifyWebhook(plan.secret, headers, body).then(
      (id) => id === webhookId,
      () => false,
    );
    const hook = String(request.url).slice(1);
    const did = choose(hook);
    const { data } = JSON.parse(body) as { data: Received["event"] }; // the hub wrote it
    const received: Received = { hook, webhookId, isSigned, event: data, did };
    appendFileSync(plan.ledger, `${JSON.stringify(received)}\n`);
    respond(did, request, response);
  });
  server.listen(plan.port, plan.host, () => console.log("listening"));
}

if (import.meta.main) await receive(JSON.parse(process.argv[2] ?? "") as ReceiverPlan); // webhooks.ts wrote it
