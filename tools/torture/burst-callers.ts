/**
 * A burst of strangers, in a process of its own: opens connections, then sends the same bytes on all of them at once, and
 * prints how each was answered. It writes to raw sockets, because fetch stops at 256 at once.
 *
 * Arguments: the port, the number of callers, the length of the body that the head announces, the bytes of it that are
 * sent, and a header line ("" for none).
 */
import { POST_PATH } from "./burst.ts";

const [port = 0, callers = 0, announced = 0, sent = 0] = process.argv.slice(2, 6).map(Number);
const header = process.argv[6] ?? "";
/** Connections that are opened together: fewer than the backlog of a listening socket. */
const TOGETHER = 200;
/** Only a hang lasts longer: an incomplete body is cut off after some 20 s. */
const PATIENCE_MS = 60_000;

const head = `POST ${POST_PATH} HTTP/1.1\r\nHost: x\r\n${header === "" ? "" : `${header}\r\n`}Content-Length: ${announced}\r\n\r\n`;
const bytes = Buffer.concat([Buffer.from(head), Buffer.alloc(sent, "x")]);

type Caller = { at: number; outcome: string | null };

const outcomes = new Map<string, number>();
let open = 0;
const allEnded = Promise.withResolvers<void>();

function pump(socket: Bun.Socket<Caller>): void {
  const { data } = socket;
  while (data.at < bytes.length) {
    const taken = socket.write(bytes.subarray(data.at, data.at + 65_536));
    if (taken <= 0) return;
    data.at += taken;
  }
}

function end({ data }: Bun.Socket<Caller>, outcome: string): void {
  if (data.outcome !== null) return;
  data.outcome = outcome;
  outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  if (--open === 0) allEnded.resolve();
}

const handlers: Bun.SocketHandler<Caller> = {
  data: (socket, answer) => end(socket, answer.toString("latin1", 9, 12)),
  drain: pump,
  close: (socket) => end(socket, "closed"),
  error: (socket) => end(socket, "reset"),
};

const sockets: Bun.Socket<Caller>[] = [];
let refused = 0;
while (sockets.length + refused < callers) {
  const count = Math.min(TOGETHER, callers - sockets.length - refused);
  const opened = await Promise.all(
    Array.from({ length: count }, () =>
      Bun.connect<Caller>({
        hostname: "127.0.0.1",
        port,
        data: { at: 0, outcome: null },
        socket: handlers,
      }).catch(() => null),
    ),
  );
  for (const socket of opened) {
    if (socket === null) refused++;
    else sockets.push(socket);
  }
}
open = sockets.filter(({ data }) => data.outcome === null).length;
if (open === 0) allEnded.resolve();
for (const socket of sockets) pump(socket);
const timer = setTimeout(() => allEnded.resolve(), PATIENCE_MS);
await allEnded.promise;
clearTimeout(timer);
if (refused > 0) outcomes.set("refused", refused);
if (open > 0) outcomes.set("pending", open);
console.log(JSON.stringify(Object.fromEntries(outcomes)));
process.exit(0);
