/**
 * Greedy waits: one key that is bound to a node asks for far more blocked receives than it may have, each with an
 * Idempotency-Key, and hangs up; strangers ask for far more polls than they may have; a key is revoked while its streams
 * and receives are open. What others notice of it, and how soon what the revoked key had is gone.
 */
import { WAIT_SHARES } from "../../src/domain/limits.ts";
import { type Hub, SECRET, run, until } from "../../test/e2e/program.ts";
import { RawConnection, headOf, postOf } from "../../test/e2e/raw.ts";
import { forEach } from "./crowd.ts";

/** The flag with which the hub believes in the addresses that this file claims. */
export const BEHIND_PROXY = ["--trust-proxy", "127.0.0.1"];
const WAIT = { node_id: "greedy", blocking: true, timeout: 300 };

export type GreedyReport = {
  /** Of the bound key's calls, how many waited, and how many were refused with 429. */
  readonly waited: number;
  readonly refused: number;
  /** Of the strangers' polls. */
  readonly pollsWaited: number;
  readonly pollsRefused: number;
  /** How long a message took to a receive of another key, in the middle of all that. */
  readonly othersMs: number;
  /** From the end of `luxhub keys revoke` until the last stream and wait had ended. */
  readonly revokedMs: number;
  readonly statuses: readonly string[];
  /** Whether a message that came after the revoke was still there for another. */
  readonly kept: boolean;
};

/** `calls` of the bound key and as many polls of strangers, over a connection each. */
export async function measureGreedyWaits(hub: Hub, data: string, calls: number): Promise<GreedyReport> {
  for (const nodeId of ["greedy", "other"]) await hub.register(nodeId);
  const keys = (...words: string[]) => run(["keys", ...words, "--data", data]);
  const secret = (await keys("add", "robot", "--node", "greedy")).stdout.trim();

  const asked = await askAll(hub, calls, WAIT_SHARES.limitedKey, (i) =>
    withSecret(withHeader(postOf("/message/receive", WAIT), `Idempotency-Key: k${i}`), secret),
  );
  // From as many addresses as fill the strangers' places.
  const addresses = 2 * (WAIT_SHARES.addresses / WAIT_SHARES.address);
  const polled = await askAll(hub, calls, WAIT_SHARES.addresses, (i) =>
    withHeader(headOf({ path: "/poll?timeout=300" }), `X-Forwarded-For: 203.0.113.${i % addresses}`).replace(
      /X-Matrix-Secret: .*\r\n/,
      "",
    ),
  );
  const othersMs = await deliver(hub);
  for (const connection of [...asked, ...polled]) connection.cut();

  const open: RawConnection[] = [];
  await forEach(WAIT_SHARES.limitedKey, async (i) => {
    const connection = await RawConnection.open(hub.port);
    const request = i % 2 ? headOf({ path: "/agent/sse?node_id=greedy" }) : postOf("/message/receive", WAIT);
    connection.send(withSecret(request, secret));
    if (i % 2) await connection.got(/retry: 3000/);
    open.push(connection);
  });
  await hub.get("/status"); // came later: they wait
  await keys("revoke", "robot");
  const startedMs = performance.now();
  await Promise.all(open.map((connection) => connection.got(/^HTTP\/1\.1 401 |\r\n0\r\n\r\n$/)));
  const revokedMs = performance.now() - startedMs;
  await hub.post("/message/send", { from_node: "op", to_node: "greedy", content: "kept" });
  const left = await hub.post("/message/receive", { node_id: "greedy" });
  for (const connection of open) connection.cut();
  return {
    waited: asked.filter(({ received }) => received === "").length,
    refused: statusesOf(asked).filter((status) => status === "429").length,
    pollsWaited: polled.filter(({ received }) => received === "").length,
    pollsRefused: statusesOf(polled).filter((status) => status === "429" || status === "503").length,
    othersMs,
    revokedMs,
    statuses: [...new Set(statusesOf(open))].toSorted(),
    kept: JSON.stringify(left.body).includes('"kept"'),
  };
}

/** Resolves when all but `most` are answered. */
async function askAll(
  hub: Hub,
  count: number,
  most: number,
  request: (i: number) => string,
): Promise<readonly RawConnection[]> {
  const all: RawConnection[] = [];
  let isAsking = true;
  const ask = async (i: number): Promise<void> => {
    const connection = await RawConnection.open(hub.port);
    all[i] = connection;
    connection.send(request(i));
    // A refused one makes room: a machine has fewer sockets than this asks for. One that ends with no answer asks again:
    // where everything is slow, a connection may be idle for too long before its request arrives.
    connection.got(/^HTTP/).then(
      () => connection.cut(),
      () => (isAsking ? ask(i) : undefined),
    );
  };
  await forEach(count, ask);
  await hub.get("/status");
  await until(() => all.filter(({ received }) => received === "").length <= most);
  isAsking = false;
  return all;
}

async function deliver(hub: Hub): Promise<number> {
  const received = hub.post("/message/receive", { ...WAIT, node_id: "other", timeout: 30 });
  await hub.get("/status");
  const startedMs = performance.now();
  await hub.post("/message/send", { from_node: "op", to_node: "other", content: "x" });
  const { status, body } = await received;
  if (status !== 200 || body["count"] !== 1) throw new Error(`the other's receive was answered ${status}`);
  return performance.now() - startedMs;
}

function statusesOf(connections: readonly RawConnection[]): readonly string[] {
  return connections.flatMap(({ received }) => /^HTTP\/1\.1 (\d+)/.exec(received)?.[1] ?? []);
}

function withSecret(request: string, secret: string): string {
  return request.replace(`X-Matrix-Secret: ${SECRET}`, `X-Matrix-Secret: ${secret}`);
}

function withHeader(request: string, header: string): string {
  return request.replace("\r\n", `\r\n${header}\r\n`);
}
