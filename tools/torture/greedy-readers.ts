/**
 * Callers that ask for the same thing over many connections, until their standard input ends; a process of its own, so
 * that it delays nothing of what others see. Arguments: the port, the number of connections, the path, the secret (""
 * for none), and "read" (each asks again when it has its answer) or how old in ms a connection that reads nothing gets
 * before another takes its place. Prints a line as soon as all have asked, and at the end how many requests it made.
 */
import type { Socket } from "bun";

const [port = "", count = "", path = "", secret = "", mode = ""] = process.argv.slice(2);
const head = [
  `GET /api/v1${path} HTTP/1.1`,
  "Host: 127.0.0.1",
  ...(secret ? [`X-Matrix-Secret: ${secret}`] : []),
];
const request = `${head.join("\r\n")}\r\n\r\n`;
const ageMs = mode === "read" ? null : Number(mode);
let asked = 0;
let isOver = false;
void Bun.stdin.text().then(() => (isOver = true));

function ask(socket: Socket<undefined>): void {
  asked++;
  socket.write(request);
}

/** One connection; while it reads, it asks again after each answer, however that is framed. */
async function open(): Promise<Socket<undefined>> {
  const socket = await Bun.connect<undefined>({
    hostname: "127.0.0.1",
    port: Number(port),
    socket: {
      data: (one, bytes) => {
        // The last byte of an answer of JSON, or of its last chunk.
        if (ageMs === null && /\}$|\r\n0\r\n\r\n$/.test(bytes.subarray(-8).toString("latin1"))) ask(one);
      },
      close: () => {},
      error: () => {},
    },
  });
  if (ageMs !== null) socket.pause();
  ask(socket);
  return socket;
}

const sockets: Socket<undefined>[] = [];
for (let i = 0; i < Number(count); i++) sockets.push(await open());
console.log("asked");
for (let i = 0; !isOver; i = (i + 1) % sockets.length) {
  if (ageMs === null) {
    await Bun.sleep(10);
    continue;
  }
  await Bun.sleep(ageMs / sockets.length);
  sockets[i]?.terminate();
  sockets[i] = await open();
}
console.log(asked);
process.exit();
