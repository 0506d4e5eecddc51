// The load client's HTTP must be right before its numbers mean anything: answers in pieces, answers it cannot
// frame, and hang-ups, over real sockets.
import { afterEach, expect, test } from "bun:test";
import { Connection, encodeRequest } from "../../../tools/bench/wire.ts";

const REQUEST = encodeRequest("GET", "/", "secret", null);
const stops: (() => void)[] = [];

afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

/** A server that answers every request with these pieces, one packet each; null: it hangs up. */
async function connectTo(pieces: readonly (string | null)[]): Promise<Connection> {
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      async data(socket) {
        for (const piece of pieces) {
          if (piece === null) socket.end();
          else socket.write(piece);
          socket.flush();
          await Bun.sleep(2);
        }
      },
    },
  });
  const connection = await Connection.open(server.port);
  stops.push(
    () => connection.close(),
    () => server.stop(true),
  );
  return connection;
}

const WHOLE = "HTTP/1.1 409 Conflict\r\nContent-Length: 7\r\nX-A: b\r\n\r\nh\u00e9llo!";

test.each([
  ["whole", [WHOLE]],
  ["byte by byte", [...WHOLE]],
  ["cut in the head's end", [WHOLE.slice(0, 51), WHOLE.slice(51)]],
  ["with the header spelt in lower case", [WHOLE.replace("Content-Length: ", "content-length:")]],
  [
    "with a body that looks like a head",
    ["HTTP/1.1 409 C\r\nContent-Length: 23\r\n\r\n", "\r\nContent-Length: 5\r\n\r\n"],
  ],
])("an answer is read: %s", async (_, pieces) => {
  const connection = await connectTo(pieces);
  for (let count = 0; count < 2; count++) {
    const { status, bytes, bodyStart } = await connection.exchange(REQUEST);
    expect(status).toBe(409);
    expect(bytes.toString("utf8", bodyStart)).toMatch(/^(héllo!|\r\nContent-Length: 5\r\n\r\n)$/);
  }
});

test.each([
  [
    "no Content-Length",
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
    "without Content-Length",
  ],
  ["no HTTP", ["SSH-2.0-x\r\n\r\n"], "no HTTP answer"],
  ["more than the answer", [`${WHOLE}HTTP`], "bytes after the answer"],
  ["a hang-up before the answer", [null], "closed the connection"],
  ["a hang-up within the answer", [WHOLE.slice(0, 55), null], "closed the connection"],
])("a failure is told: %s", async (_, pieces, message) => {
  const connection = await connectTo(pieces);
  await expect(connection.exchange(REQUEST)).rejects.toThrow(message);
});

test("an unexpected answer is reported as a failure", async () => {
  const connection = await connectTo([WHOLE, WHOLE]);
  await connection.exchange(REQUEST);
  const failed = Promise.withResolvers<Error>();
  connection.onFail = failed.resolve;
  expect((await failed.promise).message).toStartWith("an answer to no request");
});
