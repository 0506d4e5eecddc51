/**
 * Who may call what: every declared endpoint with seventeen kinds of keys, on a listener of A, of B, and on a private hub.
 * What each may follows from the declaration (auth, showsMessages, actsFor), not from a list. Each request is the
 * recorded example of the endpoint, about what another node has: nobody without rights may change that.
 */
import { expect, test } from "bun:test";
import * as z from "zod/mini";
import type { Endpoint } from "../../src/api/endpoint.ts";
import { operationId } from "../../src/api/openapi.ts";
import { DECLARED } from "../../src/api/routes.ts";
import recorded from "../../tools/recorded/openapi-examples.json" with { type: "json" };
import { ADMIN_KEY, SECRET, type TestHub, startHub } from "../support/hub.ts";
import { list, ok, record } from "./scene.ts";

type Json = Readonly<Record<string, unknown>>;

/** A caller: its secret and administrator key, and what the hub knows of the secret. */
type Kind = {
  readonly secret?: string;
  readonly admin?: string;
  /** Null: the hub does not accept the secret. */
  readonly is: {
    readonly role: "full" | "viewer" | "standby";
    readonly nodeId?: string;
    readonly variant?: "A" | "B";
  } | null;
};

const VICTIM = "victim";

async function kindsOf(hub: TestHub, variant: "A" | "B"): Promise<Readonly<Record<string, Kind>>> {
  const key = async (name: string, fields: Json): Promise<string> =>
    String((await ok(hub.admin("/key/add", { name, ...fields }, { variant })))["secret"]);
  const standby = async (name: string): Promise<string> => {
    const { line } = await ok(hub.admin("/standby/invite", { name }, { variant }));
    return (
      String(line)
        .split(/[#.]/)
        .find((part) => part.length === 32) ?? ""
    );
  };
  const node_id = "intruder";
  const secrets = {
    viewer: await key("viewer", { role: "viewer" }),
    viewerOfNode: await key("viewer-of-node", { role: "viewer", node_id }),
    bound: await key("bound", { node_id }),
    full: await key("full", {}),
    pinnedA: await key("pinned-a", { variant: "A" }),
    pinnedB: await key("pinned-b", { variant: "B" }),
    standby: await standby("standby"),
    expired: await key("expired", { expires_in_s: 1 }),
    revoked: await key("revoked", {}),
  };
  await ok(hub.admin("/key/revoke", { name: "revoked" }, { variant }));
  hub.clock.pass(2_000);
  const admin = ADMIN_KEY;
  const full = { role: "full" } as const;
  const viewer = { role: "viewer" } as const;
  return {
    anonymous: { is: null },
    wrong: { secret: "a wrong secret", is: null },
    expired: { secret: secrets.expired, is: null },
    revoked: { secret: secrets.revoked, is: null },
    "the administrator key alone": { admin, is: null },
    "the administrator key as the secret": { secret: admin, admin, is: null },
    viewer: { secret: secrets.viewer, is: viewer },
    "viewer of a node": { secret: secrets.viewerOfNode, is: { ...viewer, nodeId: node_id } },
    "viewer with the administrator key": { secret: secrets.viewer, admin, is: viewer },
    standby: { secret: secrets.standby, is: { role: "standby" } },
    bound: { secret: secrets.bound, is: { ...full, nodeId: node_id } },
    // From here on callers may change what is the victim's.
    "bound with the administrator key": { secret: secrets.bound, admin, is: { ...full, nodeId: node_id } },
    full: { secret: secrets.full, is: full },
    "the secret as the administrator key": { secret: SECRET, admin: SECRET, is: full },
    "pinned to A": { secret: secrets.pinnedA, is: { ...full, variant: "A" } },
    "pinned to B": { secret: secrets.pinnedB, is: { ...full, variant: "B" } },
    "full with the administrator key": { secret: SECRET, admin, is: full },
  };
}

const WITHOUT_RIGHTS = 11;

/** What the example of an endpoint sends, about the victim; nothing waits. */
function exampleOf(endpoint: (typeof DECLARED)[number], variant: "A" | "B", ids: Json): Json {
  const examples: Readonly<Record<string, Json>> = recorded[variant];
  const { body, parameters } = examples[operationId(endpoint)] ?? {};
  const about = (value: unknown, name = ""): unknown => {
    if (Array.isArray(value)) return value.map((item) => about(item, name));
    if (typeof value === "object" && value !== null)
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, about(item, key)]));
    if (/^(wait|timeout)$/.test(name)) return 0;
    if (/^(node_id|node|creator_node|from_node|to_node|for_node)$/.test(name)) return VICTIM;
    return ids[name] ?? value;
  };
  return record(about({ ...ids, ...record(parameters ?? {}), ...record(body ?? {}) }));
}

type Asked = { readonly url: string; readonly init: RequestInit };

function requestOf(endpoint: (typeof DECLARED)[number], example: Json, base: string): Asked {
  const { method } = endpoint;
  const named = new Set<string>();
  const path = endpoint.path.replaceAll(/:(\w+)/g, (_, name: string) => {
    named.add(name);
    return encodeURIComponent(String(example[name]));
  });
  if (method === "GET") {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(example))
      if (!named.has(name) && name !== "Last-Event-ID") query.set(name, String(value));
    return { url: `${base}${path}?${query}`, init: {} };
  }
  if (method === "DELETE") return { url: base + path, init: {} };
  if (!path.endsWith("/file/upload")) return { url: base + path, init: { body: JSON.stringify(example) } };
  const form = new FormData();
  form.set("file", new File(["x"], "x.txt"));
  form.set("metadata", JSON.stringify(example["metadata"]));
  return { url: base + path, init: { body: form } };
}

/** The nodes for which a request acts: as the endpoint declares, or of one that is no JSON, those that it names. */
function actsFor(endpoint: (typeof DECLARED)[number], example: Json): readonly unknown[] {
  const { kind, input, actsFor: nodesOf } = endpoint as Partial<Endpoint & { kind: "json" }>;
  if (kind !== "json" || input === undefined) {
    const { node_id } = endpoint.path.includes("/agent/") ? example : {};
    return [node_id, record(example["metadata"] ?? {})["node"]].filter((node) => node != null);
  }
  if (typeof nodesOf !== "function") return [];
  const sent = Object.entries(example).map(([name, value]) => [name, String(value)]);
  const parsed = z.safeParse(input(), endpoint.method === "GET" ? Object.fromEntries(sent) : example);
  expect([endpoint.path, parsed.success]).toEqual([endpoint.path, true]); // else nobody would be refused
  return nodesOf(parsed.data).filter((node: unknown) => node != null);
}

const CODES = new Set([
  "viewer_not_allowed",
  "admin_key_required",
  "standby_key_required",
  "key_bound_to_other_node",
]);

/** What the declaration says about a caller. */
function expected(
  endpoint: (typeof DECLARED)[number],
  { is, admin }: Kind,
  hub: { readonly variant: "A" | "B"; readonly isPrivate: boolean },
  nodes: readonly unknown[],
): string {
  const isOpenOn = (variant: "A" | "B"): boolean =>
    endpoint.auth === "public" && variant === "A" && !hub.isPrivate;
  if (isOpenOn(is?.variant ?? hub.variant)) return "passes";
  if (is === null) return isOpenOn(hub.variant) ? "passes" : "unauthorized";
  const isRead = endpoint.method === "GET" && endpoint.showsMessages !== true;
  if (endpoint.auth === "standby") return is.role === "standby" ? "passes" : "standby_key_required";
  if (is.role !== "full" && !isRead) return "viewer_not_allowed";
  if (endpoint.auth === "admin" && admin !== ADMIN_KEY) return "admin_key_required";
  return is.nodeId !== undefined && nodes.some((node) => node !== is.nodeId)
    ? "key_bound_to_other_node"
    : "passes";
}

/** A key of a node may also be refused by what is stored, where the endpoint declares that. */
function mayBeRefused(endpoint: (typeof DECLARED)[number], { is }: Kind, got: string): boolean {
  const code = "key_bound_to_other_node";
  return got === code && is?.nodeId !== undefined && endpoint.rejections.includes(code);
}

/** Each request comes from another address, so that no wrong secret is one too many. */
let requests = 0;

async function outcomeOf({ url, init }: Asked, method: string, { secret, admin }: Kind): Promise<string> {
  const headers = new Headers({
    "X-Forwarded-For": `10.${requests >> 16}.${(requests >> 8) & 255}.${requests++ & 255}`,
  });
  if (secret !== undefined) headers.set("X-Matrix-Secret", secret);
  if (admin !== undefined) headers.set("X-Admin-Key", admin);
  const end = new AbortController();
  const response = await fetch(url, { ...init, method, headers, signal: end.signal });
  if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
    end.abort();
    return "passes";
  }
  const text = await response.text();
  if (response.status < 400) return "passes";
  const code = String(record(JSON.parse(text))["error"]);
  if (response.status === 401) return "unauthorized";
  return CODES.has(code) ? code : "passes";
}

test.each([
  ["A", false],
  ["A", true],
  ["B", false],
] as const)("every endpoint with every kind of key, on %s (private: %p)", async (variant, isPrivate) => {
  const trustProxy = [{ address: "127.0.0.0", prefix: 8 }];
  await using hub = await startHub({ variants: [variant], isPrivate, trustProxy, alone: "wrongSecrets" });
  const kinds = Object.entries(await kindsOf(hub, variant));
  const register = (node_id: string) =>
    ok(hub.post("/node/register", { node_id, name: node_id, auto_assign: false }, { variant }));
  await register("intruder");
  await register(VICTIM);
  const own = { title: "t", description: "d", creator_node: VICTIM, group: "victims" };
  const post = (path: string, body: Json) => ok(hub.post(path, body, { variant }));
  const { task_id } = await post("/task/create", own);
  await post("/task/claim", { task_id, node_id: VICTIM });
  const { question } = await post("/task/ask", { task_id, node_id: VICTIM, question: "q?" });
  const { message_id } = await post("/message/send", { from_node: VICTIM, to_node: VICTIM, content: "c" });
  await post("/schedule/put", { name: "victims", every_s: 86_400, task: own });
  const form = new FormData();
  form.set("file", new File(["x"], "x.txt"));
  form.set("metadata", JSON.stringify({ node: VICTIM }));
  const { file_id } = await ok(hub.call("POST", "/file/upload", { body: form, variant }));
  const ids: Json = {
    ...{ task_id, file_id, message_id, question_id: record(question)["question_id"] },
    ...{ group: "victims", name: "victims", node_id: VICTIM },
  };

  /** What is the victim's. */
  const belongings = async () => {
    const get = (path: string) => ok(hub.get(path, { variant }));
    const { task } = await get(`/task/${String(task_id)}`);
    const { node } = await get(`/node/${VICTIM}`);
    const { files } = await get("/file/list");
    const { schedules } = await get("/schedule/list");
    const { messages } = await get(`/message/history?node_id=${VICTIM}`);
    const { questions } = await get(`/task/${String(task_id)}/questions`);
    const mine = list({ messages }, "messages").map((one) => [one["message_id"], one["state"]]);
    return { task, node, files, schedules, mine, questions };
  };
  const before = await belongings();

  const wrong: string[] = [];
  const calls = async (callers: typeof kinds, mayDelete: boolean): Promise<void> => {
    // What has a token of its own has its own tests.
    for (const endpoint of DECLARED.filter(({ auth }) => auth !== "open")) {
      if (mayDelete) await register(VICTIM);
      const example = exampleOf(endpoint, variant, ids);
      const asked = requestOf(endpoint, example, hub.base(variant));
      const nodes = actsFor(endpoint, example);
      await Promise.all(
        callers.map(async ([name, kind]) => {
          const got = await outcomeOf(asked, endpoint.method, kind);
          const wanted = expected(endpoint, kind, { variant, isPrivate }, nodes);
          if (got !== wanted && !mayBeRefused(endpoint, kind, got))
            wrong.push(`${endpoint.method} ${endpoint.path} by ${name}: ${got}, not ${wanted}`);
        }),
      );
    }
  };
  await calls(kinds.slice(0, WITHOUT_RIGHTS), false);
  expect(wrong).toEqual([]);
  expect(await belongings()).toEqual(before);
  await calls(kinds.slice(WITHOUT_RIGHTS), true);
  expect(wrong).toEqual([]);
  expect(requests).toBeGreaterThan(DECLARED.length * kinds.length - 100);
});

test("only the invitation of a standby makes a key that copies the hub, and no key of a node gets it", async () => {
  await using hub = await startHub();
  const added = await hub.admin("/key/add", { name: "two", role: "standby" });
  expect([added.status, added.body["error"]]).toEqual([400, "invalid_request"]);
  const { secret } = await ok(hub.admin("/key/add", { name: "of-node", node_id: "n1" }));
  const invited = await hub.admin(
    "/standby/invite",
    { name: "two" },
    { headers: { "X-Matrix-Secret": String(secret) } },
  );
  expect([invited.status, invited.body["error"]]).toEqual([403, "key_bound_to_other_node"]);
});
