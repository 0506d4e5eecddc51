/**
 * disableIdleTimeout(), restoreIdleTimeout(): a waiting request has no idle timeout; without it the same server closes
 * the connection.
 */
import { expect, test } from "bun:test";
import type { BunRequest } from "bun";
import { type Exchange, disableIdleTimeout, restoreIdleTimeout } from "../../src/http/exchange.ts";

/** The server's timer runs in steps of 4 s: a silence of one second is cut after at most two of them. */
const IDLE_SECONDS = 1;

test("a waiting call is exempt from the server's idle timeout", async () => {
  const waiting = Promise.withResolvers<Response>();
  using server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: IDLE_SECONDS,
    development: false,
    routes: {
      "/waits": (request, own) => {
        const exchange: Exchange = { request, server: own, requestId: "1" };
        disableIdleTimeout(exchange);
        return waiting.promise;
      },
      "/thinks": () => new Promise<Response>(() => {}),
    },
  });
  const waits = fetch(new URL("/waits", server.url));
  await expect(fetch(new URL("/thinks", server.url))).rejects.toThrow(); // nothing else ends it
  await Bun.sleep(500); // both began together, so it would be cut by now
  waiting.resolve(new Response("at last"));
  expect(await (await waits).text()).toBe("at last");
});

test("the connection has an idle timeout again after the response to a request that waited", async () => {
  using server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 60,
    development: false,
    fetch: async (request, own) => {
      // A BunRequest adds path parameters, and here there are none to read.
      const exchange: Exchange = { request: request as BunRequest, server: own, requestId: "1" };
      disableIdleTimeout(exchange);
      await Bun.sleep(0);
      restoreIdleTimeout(exchange, IDLE_SECONDS);
      return new Response("at last");
    },
  });
  const closed = Promise.withResolvers<void>();
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port: Number(server.url.port),
    socket: { data: () => {}, close: () => closed.resolve() },
  });
  socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  await closed.promise;
});
