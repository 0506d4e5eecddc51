/** disableIdleTimeout(): a waiting request has no idle timeout; without it the same server closes the connection. */
import { expect, test } from "bun:test";
import { type Exchange, disableIdleTimeout } from "../../src/http/exchange.ts";

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
