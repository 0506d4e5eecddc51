/**
 * Every endpoint that writes, each with a request that must succeed while there is room; and every endpoint that only
 * reads. Each round has its own nodes, tasks, messages and files, so that each request succeeds once per round.
 */
import type { Answer, Hub } from "../../test/e2e/program.ts";
import { listOf } from "../../test/e2e/program.ts";

export type Ready = Readonly<Record<string, string>>;

export type Write = {
  readonly name: string;
  /** Whether it stores a file's bytes: what full files alone refuse. */
  readonly upload?: boolean;
  readonly send: (hub: Hub, ready: Ready) => Promise<Answer>;
};

const RESULT = { problem: "A full disk", improvement: "Room", lesson: "Look at it" };

export function formOf(name: string, bytes: number): FormData {
  const form = new FormData();
  form.append("file", new Blob([Buffer.alloc(bytes, name)]), name);
  return form;
}

const post =
  (path: string, body: (ready: Ready) => object) =>
  (hub: Hub, ready: Ready): Promise<Answer> =>
    hub.post(path, body(ready));

const admin =
  (path: string, body: (ready: Ready) => object) =>
  (hub: Hub, ready: Ready): Promise<Answer> =>
    hub.admin(path, body(ready));

export const WRITES: readonly Write[] = [
  { name: "register", send: post("/node/register", ({ node }) => ({ node_id: `${node}-new`, name: "New" })) },
  { name: "heartbeat", send: post("/node/heartbeat", ({ node }) => ({ node_id: node })) },
  { name: "create", send: post("/task/create", ({ node }) => ({ title: `${node} new`, description: "d" })) },
  { name: "claim", send: post("/task/claim", ({ node, open }) => ({ task_id: open, node_id: node })) },
  { name: "assign", send: post("/task/assign", ({ node, free }) => ({ task_id: free, node_id: node })) },
  {
    name: "complete",
    send: post("/task/complete", ({ node, held }) => ({ task_id: held, node_id: node, result: RESULT })),
  },
  {
    name: "batch-assign",
    send: post("/task/batch-assign", ({ node, batch }) => ({
      assignments: [{ task_id: batch, node_id: node }],
    })),
  },
  { name: "revoke", send: admin("/task/revoke", ({ lent }) => ({ task_id: lent })) },
  { name: "delete", send: admin("/task/delete", ({ spare }) => ({ task_id: spare })) },
  {
    name: "send",
    send: post("/message/send", ({ node }) => ({ from_node: node, to_node: node, content: "new" })),
  },
  { name: "broadcast", send: post("/message/broadcast", () => ({ from_node: "operator", content: "new" })) },
  {
    name: "agent/message",
    send: post("/agent/message", ({ node }) => ({ from_node: "operator", to_node: node, content: "new" })),
  },
  {
    name: "agent/broadcast",
    send: post("/agent/broadcast", () => ({ from_node: "operator", content: "new" })),
  },
  { name: "ack", send: post("/message/ack", ({ node, leased }) => ({ node_id: node, message_id: leased })) },
  {
    name: "agent/ack",
    send: post("/agent/ack", ({ node, waiting }) => ({ node_id: node, message_id: waiting })),
  },
  { name: "receive", send: post("/message/receive", ({ reader }) => ({ node_id: reader })) },
  { name: "signin", send: post("/signin", ({ node }) => ({ node_id: node })) },
  {
    name: "upload",
    upload: true,
    send: (hub, { node = "" }) => hub.call("POST", "/file/upload", { body: formOf(`${node}.bin`, 100_000) }),
  },
  { name: "file/delete", send: post("/file/delete", ({ file }) => ({ file_id: file })) },
  { name: "DELETE file", send: (hub, { other = "" }) => hub.call("DELETE", `/file/${other}`) },
];

export async function makeReady(hub: Hub, round: number): Promise<Ready> {
  const node = `node-${round}`;
  const reader = `reader-${round}`;
  const told = async (path: string, body: object, field: string): Promise<string> => {
    const answer = await hub.post(path, body);
    if (answer.status !== 200) throw new Error(`${path}: ${JSON.stringify(answer.body)}`);
    return String(answer.body[field]);
  };
  await hub.register(node);
  await hub.register(reader);
  const create = (title: string) =>
    told("/task/create", { title: `${node} ${title}`, description: "d", lux_reward: 2.5 }, "task_id");
  const claimed = async (title: string): Promise<string> => {
    const taskId = await create(title);
    return told("/task/claim", { task_id: taskId, node_id: node }, "task_id");
  };
  const send = (to: string, content: string) =>
    told("/message/send", { from_node: "operator", to_node: to, content, require_ack: true }, "message_id");
  const upload = async (name: string): Promise<string> => {
    const answer = await hub.call("POST", "/file/upload", { body: formOf(name, 50_000) });
    return String(answer.body["file_id"]);
  };
  const leased = await send(node, "leased");
  await told("/message/receive", { node_id: node }, "count");
  return {
    node,
    reader,
    leased,
    waiting: await send(node, "waiting"),
    unread: await send(reader, "unread"),
    open: await create("open"),
    free: await create("free"),
    batch: await create("batch"),
    spare: await create("spare"),
    held: await claimed("held"),
    lent: await claimed("lent"),
    file: await upload("file"),
    other: await upload("other"),
  };
}

/** What can be read of a hub, by what it is. */
export type Picture = Readonly<Record<string, unknown>>;

/** What every read answers, but for what moves by itself (uptime, latency). Throws for one that is not 200. */
export async function pictureOf(hub: Hub, { node = "", reader = "", file = "" }: Ready): Promise<Picture> {
  const answer = async (path: string): Promise<unknown> => {
    const { status, body } = await hub.get(path);
    if (status !== 200) throw new Error(`${path}: ${status} ${JSON.stringify(body)}`);
    return body;
  };
  const status = await hub.get("/status");
  const download = await fetch(`${hub.api}/file/download/${file}`);
  const abort = new AbortController();
  const headers = { "X-Matrix-Secret": hub.secret, "Last-Event-ID": "0" };
  const stream = await fetch(`${hub.api}/agent/sse?node_id=${node}`, { headers, signal: abort.signal });
  const first = await stream.body?.getReader().read();
  abort.abort();
  await answer("/pg/diagnostic");
  return {
    counts: [status.body["nodes_count"], status.body["tasks_count"]],
    nodes: await answer("/node/list"),
    one: await answer(`/node/${node}`),
    tasks: await everyRow(hub, "/task/list", "tasks"),
    pull: await answer(`/task/pull?node_id=${node}`),
    stats: await answer("/task/stats"),
    history: await answer(`/message/history?node_id=${node}&count=1000`),
    inbox: await answer(`/agent/messages?node_id=${reader}&limit=1000`),
    ledger: await answer(`/lux/ledger?node_id=${node}`),
    files: await everyRow(hub, "/file/list", "files"),
    events: await answer("/events?since=0&limit=1000"),
    poll: await answer("/poll?since=0&timeout=0"),
    download: [download.status, Bun.SHA256.hash(await download.bytes(), "hex")],
    stream: [stream.status, (first?.value?.length ?? 0) > 0],
  };
}

export async function everyRow(
  hub: Hub,
  path: string,
  name: string,
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const rows: Readonly<Record<string, unknown>>[] = [];
  for (let page = 1, pages = 1; page <= pages; page++) {
    const { body } = await hub.get(`${path}${path.includes("?") ? "&" : "?"}per_page=50&page=${page}`);
    rows.push(...listOf(body[name]));
    pages = Number(body["pages"]);
  }
  return rows;
}
