/** The pages of lists: a server of 120 rows for each way in which the API pages, read with the typed client. */
import { afterAll, expect, test } from "bun:test";
import { rowsOf } from "../../src/cli/resource.ts";
import { LuxHub } from "../../src/client/luxhub.ts";

const ROWS = 120;
const names = Array.from({ length: ROWS }, (_, i) => `row ${i}`);
/** How many rows each call has asked for. */
let sizes: number[] = [];
/** While the pages of limits are read, a new limit is set before them: each row moves by one. */
let moved = 0;

function pageOf(path: string, query: URLSearchParams): object {
  const size = Number(query.get("per_page") ?? query.get("count"));
  sizes.push(size);
  if (path === "limit/list") {
    const page = Number(query.get("page"));
    const rows = [...Array.from({ length: moved++ }, (_, i) => `new ${i}`), ...names];
    const limits = rows.slice((page - 1) * size, page * size).map((key) => ({ key, running_now: moved }));
    return { limits, page, per_page: size, total: rows.length, pages: Math.ceil(rows.length / size) };
  }
  const after = query.get("cursor") ?? query.get("before");
  const from = after === null ? 0 : names.indexOf(after) + 1;
  const rows = names.slice(from, from + size);
  if (path === "message/history") return { messages: rows.map((id) => ({ id })), count: rows.length };
  const next_cursor = from + size >= ROWS ? null : rows.at(-1);
  return { notes: rows.map((key) => ({ key })), next_cursor };
}

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: ({ url }) => {
    const { pathname, searchParams } = new URL(url);
    return Response.json({ success: true, ...pageOf(pathname.slice("/api/v1/".length), searchParams) });
  },
});
afterAll(() => server.stop(true));
const hub = new LuxHub({ url: `http://127.0.0.1:${server.port}` });

const READS: Readonly<Record<string, (limit: number) => AsyncIterable<object>>> = {
  "limit/list": (limit) => rowsOf(hub, "limit/list", {}, limit),
  "note/list": (limit) => rowsOf(hub, "note/list", { prefix: "row" }, limit),
  "message/history": (limit) => rowsOf(hub, "message/history", { node_id: "w1" }, limit),
};

for (const [call, read] of Object.entries(READS))
  test.each([1, 50, 51, ROWS, Infinity])(`${call}: the first %d rows, each once`, async (limit) => {
    sizes = [];
    moved = 0;
    const rows = await Array.fromAsync(read(limit), (row) => String(Object.values(row)[0]));
    expect(rows.filter((name) => name.startsWith("row "))).toEqual(names.slice(0, limit));
    const isNumbered = call === "limit/list"; // the size of its pages may not change on the way
    expect(sizes.every((size) => (isNumbered ? size === 50 : size <= Math.min(limit, 50)))).toBe(true);
    expect(sizes.length).toBeLessThanOrEqual(Math.ceil(Math.min(limit, ROWS) / 50) + 1);
  });
