/**
 * Wrong secrets through real proxies count for the right address: the real program behind the nginx configuration of
 * docs/machines.md, and callers with different addresses of Linux's loopback network.
 */
import { describe, expect, test } from "bun:test";
import { request } from "node:http";
import { NGINX_MISSING, Nginx } from "../support/nginx.ts";
import { Hub, SECRET, TempDir } from "./program.ts";

const missing =
  process.platform === "linux" ? NGINX_MISSING : "wants addresses of its own on Linux' loopback";
const reason = missing === null ? "" : ` (skipped: ${missing})`;

/** The proxies' own address, and those of callers. */
const PROXY = "127.0.0.1";
const GUESSER = "127.9.0.7";
const NEIGHBOUR = "127.9.0.8";
/** From the 20th wrong secret in a minute on. */
const GUESSES = 20;

const trusting = (data: TempDir, ...proxies: readonly string[]): Promise<Hub> =>
  Hub.start({ data: data.path, args: proxies.flatMap((proxy) => ["--trust-proxy", proxy]) });

/** The status of a request with a wrong secret, from one address to a port, which says of itself what it likes. */
function guess(port: number, from: string, says: readonly string[] = []): Promise<number> {
  const headers = { "X-Matrix-Secret": "wrong", ...(says.length > 0 && { "X-Forwarded-For": [...says] }) };
  const path = "/api/v1/task/pull?node_id=n1";
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const sent = request(
    { host: "127.0.0.1", port, path, headers, localAddress: from, agent: false },
    (got) => {
      got.resume().on("end", () => resolve(got.statusCode ?? 0));
    },
  );
  sent.on("error", reject).end();
  return promise;
}

/** As many guesses as are let pass, each with another forged header. */
async function guessOn(port: number, from: string): Promise<void> {
  for (let i = 1; i < GUESSES; i++) {
    const forged = [[`203.0.113.${i}`], [`203.0.113.${i}, ${NEIGHBOUR}`], [NEIGHBOUR, PROXY], [PROXY], ["?"]];
    expect([i, await guess(port, from, forged[i % forged.length])]).toEqual([i, 401]);
  }
}

describe.skipIf(missing !== null)(`wrong secrets through proxies${reason}`, () => {
  test("through a trusted proxy the caller is counted, whatever it writes into the header", async () => {
    using data = new TempDir();
    await using hub = await trusting(data, PROXY);
    await using nginx = await Nginx.start([[`127.0.0.1:${hub.port}`]]);
    const port = nginx.ports[0] ?? 0;
    await guessOn(port, GUESSER);
    expect(await guess(port, GUESSER, ["203.0.113.99"])).toBe(429);
    expect(await guess(port, GUESSER)).toBe(429);
    expect(await guess(hub.port, GUESSER)).toBe(429); // directly, it is the same caller
    expect(await guess(port, NEIGHBOUR)).toBe(401); // whom it named
    expect(await guess(hub.port, PROXY)).toBe(401); // nor did it count for the proxy
  });

  test("through a chain of trusted proxies too", async () => {
    using data = new TempDir();
    await using hub = await trusting(data, PROXY);
    await using inner = await Nginx.start([[`127.0.0.1:${hub.port}`]]);
    await using outer = await Nginx.start([[`127.0.0.1:${inner.ports[0] ?? 0}`]]);
    const port = outer.ports[0] ?? 0;
    await guessOn(port, GUESSER);
    expect(await guess(port, GUESSER, [NEIGHBOUR])).toBe(429);
    expect(await guess(inner.ports[0] ?? 0, GUESSER)).toBe(429);
    expect(await guess(port, NEIGHBOUR)).toBe(401);
  });

  test("an untrusted proxy counts as the caller itself", async () => {
    using data = new TempDir();
    await using hub = await trusting(data, "10.0.0.0/8", "127.0.0.2");
    await using nginx = await Nginx.start([[`127.0.0.1:${hub.port}`]]);
    const port = nginx.ports[0] ?? 0;
    await guessOn(port, GUESSER);
    expect(await guess(port, NEIGHBOUR)).toBe(429); // all who come through it are one
    expect(await guess(hub.port, PROXY)).toBe(429);
    expect(await guess(hub.port, GUESSER)).toBe(401);
  });

  test("a caller that bypasses the proxy is counted as itself and cannot blame another", async () => {
    using data = new TempDir();
    await using hub = await trusting(data, PROXY);
    await guessOn(hub.port, GUESSER);
    expect(await guess(hub.port, GUESSER, [`${NEIGHBOUR}, ${PROXY}`])).toBe(429);
    expect(await guess(hub.port, NEIGHBOUR)).toBe(401);
    expect(await guess(hub.port, PROXY)).toBe(401);
  });
});

describe.skipIf(missing !== null)(`a hub that ends in the middle of a request${reason}`, () => {
  test("nginx repeats a POST with an Idempotency-Key at the next hub, and no other", async () => {
    using data = new TempDir();
    await using hub = await Hub.start({ data: data.path });
    /** Takes every request and ends without an answer. */
    using dying = Bun.listen({ hostname: PROXY, port: 0, socket: { data: (socket) => socket.terminate() } });
    const create = (port: number, headers: Readonly<Record<string, string>>): Promise<Response> =>
      fetch(`http://${PROXY}:${port}/api/v1/task/create`, {
        method: "POST",
        headers: { "X-Matrix-Secret": SECRET, ...headers },
        body: JSON.stringify({ title: "t", description: "d".repeat(60_000) }),
        keepalive: false,
      });
    // Whom nginx asks first alternates: of two requests, one meets the hub that ends.
    const statusesOf = async (
      headers: (i: number) => Readonly<Record<string, string>>,
    ): Promise<number[]> => {
      await using nginx = await Nginx.start([[`${PROXY}:${dying.port}`, `${PROXY}:${hub.port}`]], true);
      const statuses: number[] = [];
      for (const i of [1, 2]) statuses.push((await create(nginx.ports[0] ?? 0, headers(i))).status);
      return statuses.toSorted();
    };
    expect(await statusesOf((i) => ({ "Idempotency-Key": `create-${i}` }))).toEqual([200, 200]);
    expect(await statusesOf(() => ({}))).toEqual([200, 502]);
  });
});
