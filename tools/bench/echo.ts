// The baseline: a bare Bun.serve that parses JSON and answers it, and does nothing else. A GET has no body to
// echo: it is answered with the object last PUT, so that a page of tasks is compared with the same page
// serialised from memory. Must not: be made slower or cleverer, because every ratio depends on it.

let page: unknown = {};

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(req) {
    if (req.method === "GET") return Response.json(page);
    const body: unknown = await req.json();
    if (req.method === "PUT") page = body;
    return Response.json(body);
  },
});

console.log(`http://127.0.0.1:${server.port}`);
