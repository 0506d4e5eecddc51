// The baseline of the streams: a bare Bun.serve that keeps each GET open as an event stream, and writes the text of a
// POST to all of them. Must not: be made slower or cleverer, because the ratio depends on it.
const open = new Set<ReadableStreamDirectController>();

const bare = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request, server) {
    if (request.method === "POST") {
      const text = await request.text();
      for (const stream of open) void stream.write(text);
      return Response.json({ streams: open.size });
    }
    server.timeout(request, 0);
    let opened: ReadableStreamDirectController | undefined;
    const body = new ReadableStream({
      type: "direct",
      pull: (stream) => {
        opened = stream;
        open.add(stream);
        void stream.write(":\n\n"); // the head goes out with it
      },
      cancel: () => void (opened && open.delete(opened)),
    });
    return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
  },
});

console.log(`http://127.0.0.1:${bare.port}`);
