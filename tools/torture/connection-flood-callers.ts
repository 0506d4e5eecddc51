/**
 * Connections that fall silent, in a process of its own: opens them, sends the same text on each, prints how many were
 * opened and refused, and keeps them until its standard input ends.
 *
 * Arguments: the port, the number of connections, how many are opened together, the text.
 */
const [port = 0, count = 0, together = 0] = process.argv.slice(2, 5).map(Number);
const text = process.argv[5] ?? "";
const PATIENCE_MS = 3_000;

const sockets: Bun.Socket[] = [];
let opened = 0;
let refused = 0;

async function openOne(): Promise<void> {
  const opening = Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: { data: () => {}, error: () => {}, close: () => {}, end: (socket) => void socket.end() },
  });
  const socket = await Promise.race([opening.catch(() => null), Bun.sleep(PATIENCE_MS).then(() => null)]);
  if (socket === null) {
    refused++;
    return;
  }
  opened++;
  sockets.push(socket);
  socket.write(text);
}

while (opened + refused < count) {
  const left = count - opened - refused;
  await Promise.all(Array.from({ length: Math.min(together, left) }, openOne));
}
console.log(JSON.stringify({ opened, refused }));
await Bun.stdin.text();
process.exit(0);

export {};
