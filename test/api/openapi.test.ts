/**
 * The OpenAPI documents: every operation has a text for each field and a real exchange as its example, the hub answers
 * the document. test/support/answers.ts checks every answer of the other tests against the
 * declarations; here an independent validator checks that the declarations and the document agree.
 *
 * The examples in tools/recorded/openapi-examples.json are what a hub answered to the session below. After a change of the
 * API, LUXHUB_RECORD_EXAMPLES=1 bun test test/api/openapi.test.ts writes them again.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parametersOf } from "../../src/api/openapi.ts";
import { FIELDS } from "../../src/api/openapi-texts.ts";
import { ADMIN_KEY, SECRET, TestClock, type TestHub, startHub } from "../support/hub.ts";
import { slowHash } from "../../src/lib/slow-hash.ts";
import type { Post } from "../../src/http/outbound.ts";
import { AnswerTokens } from "../../src/service/answer-tokens.ts";
import { answerFault } from "../support/answers.ts";
import { DocumentChecks } from "../support/openapi.ts";
import { VARIANTS, type VariantName, list, record, refused } from "./scene.ts";

const EXAMPLES_PATH = join(import.meta.dir, "../../tools/recorded/openapi-examples.json");
/** Its answer is the document itself. */
/** The document itself, and what only a standby calls or answers: test/e2e/second-copy.test.ts. */
const WITHOUT_EXAMPLE = ["openapi_json", "copy_base", "copy_changes", "copy_promoted", "promote"];

type Fields = Readonly<Record<string, unknown>>;
type Example = { parameters?: Fields; body?: unknown; answer?: unknown };
type Asked = {
  readonly parameters?: Fields;
  readonly body?: Fields;
};

/** A clock that stands still, so that a session gives the same answers each time. */
class StoppedClock extends TestClock {
  #passed = 0;

  override now(): number {
    return Date.UTC(2030, 0, 31, 12) + this.#passed;
  }

  override steady(): number {
    return 1_000_000 + this.#passed;
  }

  override pass(ms: number): void {
    this.#passed += ms;
  }
}

/** A session of a planner and its workers that uses every operation of a variant; the first call of each is kept. */
class Session {
  readonly examples: Record<string, Example> = {};
  readonly #hub: TestHub;
  readonly #variant: VariantName;
  readonly #checks: DocumentChecks;

  constructor(hub: TestHub, variant: VariantName) {
    this.#hub = hub;
    this.#variant = variant;
    this.#checks = DocumentChecks.of(variant);
  }

  /** Calls an operation as the document describes it. */
  async call(id: string, { parameters = {}, body }: Asked = {}): Promise<Record<string, unknown>> {
    const { method, path, operation } = this.#find(id);
    const declared = parametersOf(this.#checks.document, operation);
    const query = new URLSearchParams();
    const headers: Record<string, string> = {};
    let target = path;
    for (const [name, value] of Object.entries(parameters)) {
      const place = declared.find((one) => one.name === name)?.in;
      if (place === "path") target = target.replace(`{${name}}`, encodeURIComponent(String(value)));
      else if (place === "query") query.set(name, String(value));
      else if (place === "header") headers[name] = String(value);
      else throw new Error(`${id} has no parameter ${name}`);
    }
    if ("admin_key" in (operation.security[0] ?? {})) headers["X-Admin-Key"] = ADMIN_KEY;
    const isUpload = operation.requestBody?.content["multipart/form-data"] !== undefined;
    if (!isUpload) expect(this.#checks.bodyFault(operation, body)).toBeNull();
    const url = `${this.#hub.base(this.#variant)}${target}${query.size > 0 ? `?${query}` : ""}`;
    const response = await fetch(url, {
      method,
      headers: { "X-Matrix-Secret": SECRET, ...headers },
      ...(body === undefined ? {} : { body: isUpload ? formOf(body) : JSON.stringify(body) }),
    });
    const answer = isStream(id) ? await beginning(response) : await response.text();
    const isJson = response.headers.get("content-type") === "application/json";
    const parsed: unknown = isJson ? JSON.parse(answer) : answer;
    expect([id, response.status, answer]).toEqual([id, 200, answer]);
    if (isJson) expect(this.#checks.answerFault(method, target, 200, parsed)).toBeNull();
    this.examples[id] ??= {
      ...(Object.keys(parameters).length > 0 ? { parameters } : {}),
      ...(body === undefined ? {} : { body }),
      answer: parsed,
    };
    return isJson ? record(parsed) : {};
  }

  #find(id: string) {
    for (const [path, item] of Object.entries(this.#checks.document.paths))
      for (const [method, operation] of Object.entries(item))
        if (operation.operationId === id) return { method: method.toUpperCase(), path, operation };
    throw new Error(`there is no operation ${id}`);
  }
}

function formOf({ file, metadata }: Fields): FormData {
  const form = new FormData();
  form.set("file", new File([String(file)], "report.txt", { type: "text/plain" }));
  form.set("metadata", JSON.stringify(metadata));
  return form;
}

function isStream(id: string): boolean {
  return id === "agent_sse" || id === "events_stream" || id === "task_output_stream";
}

/** The first two events of a stream. */
async function beginning({ body }: Response): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (text.split("\n\n").length > 3) break;
  }
  return `${text.split("\n\n").slice(0, 3).join("\n\n")}\n\n`;
}

async function recordSession(hub: TestHub, clock: TestClock, variant: VariantName): Promise<Fields> {
  const session = new Session(hub, variant);
  const isA = variant === "A";
  const call = (id: string, parameters: Fields = {}): Promise<Fields> => session.call(id, { parameters });
  const post = (id: string, body?: Fields): Promise<Fields> => session.call(id, body ? { body } : {});
  const create = async (title: string, fields: Fields = {}): Promise<string> => {
    const description = "Read report.txt and name its three main points.";
    const made = await post("task_create", { title, description, ...fields, creator_node: "planner" });
    return String(made["task_id"]);
  };
  const worker = { node_id: "worker-1" };

  await post("node_register", {
    ...worker,
    name: "Worker 1",
    capabilities: isA ? "coding,research" : ["coding", "research"],
    max_tasks: 4,
    auto_assign: false,
  });
  await post("node_register", { node_id: "worker-2", name: "Worker 2", auto_assign: false });
  await post("node_heartbeat", worker);

  const task_id = await create("Summarise the report", {
    task_type: "research",
    priority: isA ? 0 : "high",
    lux_reward: 2.5,
    timeout_s: 600,
    max_cost_usd: 5,
  });
  await call("task_pull", { ...worker, limit: 5 });
  const { lease } = await post("task_claim", { task_id, ...worker });
  const { epoch } = record(lease);
  await post("task_extend", {
    task_id,
    ...worker,
    epoch,
    note: "two points of three",
    checkpoint: { points: 2 },
    usage: [{ seq: 1, model: "large", input_tokens: 52_000, output_tokens: 800, cost_usd: 0.168 }],
  });
  await post("task_output", { task_id, ...worker, epoch, offset: 0, data: "Reading page 1 of 12\n" });
  await call("task_output_get", { task_id, from: 8, wait: 10 });
  const asked = await post("task_ask", {
    task_id,
    ...worker,
    epoch,
    question: "The report names two dates for the release. Which one is right?",
    choices: ["1 March", "15 March"],
    within_s: 3_600,
  });
  await call("questions", { state: "open", limit: 20 });
  await post("task_answer", {
    task_id,
    question_id: record(asked["question"])["question_id"],
    answer: "15 March",
  });
  const question = record(asked["question"]);
  const tokens = new AnswerTokens({ derive: (...by) => slowHash(SECRET, ...by) }, clock);
  const grant = { taskId: task_id, questionId: String(question["question_id"]), until: clock.now() + 60_000 };
  await post("task_answer_by_token", { token: await tokens.issue(grant, 1) });
  await call("task_questions", { task_id, wait: 10, since: 1 });
  const metadata = { task_id, node: "worker-1", pages: 12 };
  const { file_id } = await post("file_upload", { file: "Three points.\n", metadata });
  await post("task_complete", {
    task_id,
    ...worker,
    epoch,
    result: {
      problem: "The report is long and its points are hard to find.",
      improvement: "Named the three points, each with its page.",
      lesson: "The summary on page 2 is out of date.",
      points: 3,
    },
  });
  await create("Count the pages", { quorum: { results: 2, of: 3, compare: "json:/pages" } });
  const logo = await create("Draw the logo", { review: "creator", review_within_s: 86_400 });
  const drawn = await post("task_claim", { task_id: logo, ...worker });
  await post("task_complete", {
    task_id: logo,
    ...worker,
    result: { problem: "No logo.", improvement: "Drew a fox.", lesson: "none" },
  });
  await call("reviews", { limit: 20 });
  await post("task_review", {
    task_id: logo,
    verdict: "reject",
    note: "It has to be an owl.",
    epoch: record(drawn["lease"])["epoch"],
  });
  await post("task_delete", { task_id: logo });
  await call("task_output_stream", { task_id, "Last-Event-ID": `8.${String(epoch)}` });
  await call("task_get", { task_id, wait: 10, context: "1" });
  await call("task_wait", { task_ids: task_id, until: "any", wait: 10 });
  await call("lessons", { q: "date", limit: 20 });
  const outline = await create("Outline the talk", { depends_on: [task_id] });
  await call("task_inputs", { task_id: outline, limit: 20 });
  await call("task_explain", { task_id: outline });
  await call("task_graph", { task_id: outline });
  const rehearsal = await create("Rehearse the talk", { depends_on: [outline] });
  await post("task_update", { task_id: rehearsal, priority: isA ? 0 : "high", lux_reward: 2 });
  await post("task_cancel", { task_id: outline, reason: "the talk is called off" });
  await call("task_list", { status: "completed", per_page: 1 });
  await call("task_count", { status: "completed" });
  await call("stats_types");
  await call("stats_failures", { last: 3_600 });
  await call("task_stats");
  await call("events", { since: 1, limit: 2 });
  await call("poll", { since: 3, timeout: 25 });
  await call("stats_minutes", { last: 1 });
  await call("agent_sse", { ...worker, "Last-Event-ID": 0 });
  await call("events_stream", { kind: "task.created,task.completed", "Last-Event-ID": 0 });

  const second = await create("Check the figures");
  await post("task_assign", { task_id: second, node_id: "worker-2" });
  await post("task_release", { task_id: second, node_id: "worker-2", reason: "out of memory" });
  await post("task_claim", { task_id: second, node_id: "worker-2" });
  await post("task_fail", {
    task_id: second,
    node_id: "worker-2",
    error: "report.txt is empty",
    retry: false,
  });
  await post("task_retry", { task_id: second, with_dependents: true });
  await post("task_cancel", { task_id: second, reason: "no longer needed" });
  const third = await create("Translate the report", { task_type: "research" });
  await post("task_next", { ...worker, wait: 30, task_types: ["research", "coding"] });
  await post("task_claim", { task_id: third, ...worker });
  await post("task_revoke", { task_id: third, node_id: "worker-2", reason: "worker-1 is restarted" });
  await post("task_delete", { task_id: third });
  if (isA) {
    const fourth = await create("Print the report");
    const assignments = [{ task_id: fourth, node_id: "worker-1" }];
    await post("task_batch_assign", { assignments });
  } else {
    const fields = { title: "Print the report", description: "On both sides." };
    await hub.post("/task/create", fields, { variant: "A" }); // the balancer of B leaves it until it is asked
    await post("node_register", { node_id: "worker-3", name: "Worker 3" });
    await post("task_batch_assign");
  }

  const hello = {
    from_node: "planner",
    to_node: "worker-1",
    content: "The deadline is Friday.",
    require_ack: true,
  };
  const sent = await post("message_send", hello);
  await call("agent_messages", { ...worker, limit: 1 });
  const received = await post("message_receive", { ...worker, count: 10, blocking: true, timeout: 20 });
  const message_id = list(received, "messages")[0]?.["id"];
  await post("message_ack", { ...worker, message_id });
  await post("message_broadcast", {
    from_node: "planner",
    content: "The hub restarts at noon.",
    type: "alert",
  });
  await call("message_history", { ...worker, count: 2, thread: sent["message_id"] });
  const told = await post("agent_message", { ...hello, to_node: "worker-2" });
  await post("agent_broadcast", { from_node: "planner", content: "Back again.", type: "update" });
  await post("message_receive", { node_id: "worker-2", count: 10 });
  await post("agent_ack", { node_id: "worker-2", message_id: told["message_id"] });

  const parked = await post("message_send", { ...hello, to_node: "worker-2" });
  for (let delivery = 0; delivery <= 6; delivery++) {
    for (const node_id of ["worker-1", "worker-2"]) await post("node_heartbeat", { node_id });
    await post("message_receive", { node_id: "worker-2", count: 10 });
    clock.pass(31_000);
    await hub.sweep();
  }
  await call("message_parked", { node_id: "worker-2" });
  await post("message_redrive", { node_id: "worker-2", message_id: parked["message_id"] });

  const note = { key: "report/terms", node_id: "worker-1" };
  await post("note_put", { ...note, text: "Revenue is without tax.", if_version: 0 });
  await call("note_get", { key: note.key });
  await call("note_list", { prefix: "report/", per_page: 20 });
  await call("note_search", { q: "revenue" });
  await post("note_delete", { ...note, if_version: 1 });
  const leased = { name: "chapters/*.md", node_id: "worker-1" };
  await post("lease_acquire", { ...leased, ttl_s: 600 });
  await post("lease_renew", { ...leased, fencing: 1, ttl_s: 1_200 });
  await call("lease_list", { node_id: "worker-1" });
  await post("lease_release", { ...leased, fencing: 1 });
  await post("signin", worker);
  await call("lux_ledger", { ...worker, per_page: 2 });
  await call("lux_top", { since: "2030-01-24T00:00:00Z" });
  await call("lux_entries", { since: 0, limit: 2 });
  await call("lux_head");
  const monthly = { scope: "type", value: "research", per: "month" };
  await post("budget_set", { ...monthly, cost_usd: 50, tokens: 100_000_000, on_limit: "pause" });
  await call("budget_list");
  await post("budget_delete", monthly);
  await post("usage_void", { ...worker, reason: "It counted cents as dollars." });
  await post("hub_pause", { type: "research", reason: "The provider is down." });
  await call("hub_pauses");
  await post("hub_resume", { type: "research" });
  await post("limit_set", { key: "openai", running: 8, per_minute: 60 });
  await post("limit_hold", { key: "openai", for_s: 30, ...worker });
  await call("limit_list");
  await post("limit_delete", { key: "openai" });
  await call("usage", { by: "node", per_page: 2 });
  await call("file_list", { per_page: 1 });
  await call("file_download", { file_id });
  await post("file_download_url", { file_id });
  await post("file_upload_url", worker);
  await post("file_delete", { file_id });
  const other = await post("file_upload", { file: "A draft.\n", metadata: {} });
  await call("file_remove", { file_id: other["file_id"] });
  const { require_ack: _, ...plain } = hello;
  await post("batch", {
    requests: [
      { path: "task/create", body: { title: "Archive the report", description: "As PDF." } },
      { path: "message/send", body: { ...plain, content: "The report is archived today." } },
    ],
  });
  const nightly = { title: "Back up the wiki", description: "Into the archive.", task_type: "backup" };
  const name = "nightly-backup";
  await post("schedule_put", { name, cron: "30 2 * * *", tz: "Europe/Berlin", task: nightly, jitter_s: 300 });
  await post("schedule_run", { name });
  await call("schedule_list");
  await post("schedule_delete", { name });
  const webhook = { name: "ci" };
  const kinds = ["task.completed", "task.failed"];
  await post("webhook_put", { ...webhook, url: "https://ci.example.org/luxhub", kinds });
  await call("webhook_list");
  await post("webhook_test", webhook);
  await post("webhook_resume", webhook);
  await post("webhook_delete", webhook);
  const pages = { title: "Translate a page", description: "Into French.", group: "wiki-fr", tags: ["wiki"] };
  await post("task_create", pages);
  await call("group_list", { q: "wiki" });
  await call("group_get", { group: "wiki-fr", wait: 0 });
  await post("group_cancel", { group: "wiki-fr", reason: "The wiki is closed." });
  await post("group_retry", { group: "wiki-fr" });
  await post("key_add", { name: "dashboard", role: "viewer", expires_in_s: 86_400 });
  await call("key_list");
  await post("key_revoke", { name: "dashboard" });
  const url = "https://hub.example.org:19443";
  await post("standby_invite", { name: "pi-2" });
  const invited = await post("invitation_create", { node_id: "worker-9", expires_in_s: 600, url });
  await call("invitation_list");
  await post("join", { token: tokenIn(String(invited["line"])), key_hash: "5e".repeat(32) });
  await post("invitation_delete", { invitation_id: record(invited["invitation"])["invitation_id"] });
  await call("status");
  await call("pg_diagnostic");
  await call("openapi_json");
  await post("node_drain", { node_id: "worker-2", drain: true });
  await call("node_get", worker);
  await post("node_leave", { node_id: "worker-2" });
  await post("node_delete", { node_id: "worker-2" });
  await call("node_list", { status: "online", q: "work", order: "busy", tasks: "1", per_page: 1 });
  await call("stats_nodes");
  return stable(session.examples);
}

/** The token in the line of an invitation. */
function tokenIn(text: string): string {
  return /#join\.([\w-]{32})/.exec(text)?.[1] ?? "";
}

/** With ids, and the hashes of entries, by order of appearance; and without what differs from machine to machine. */
function stable(examples: Readonly<Record<string, Example>>): Fields {
  const ids: string[] = [];
  const written = JSON.stringify(examples, (name, value: unknown) =>
    WITHOUT_EXAMPLE.includes(name)
      ? undefined
      : name === "token"
        ? "WyIwMTk0YjAwMCJd.mGv5n0dQ2fXb8uZ1rT4kLw"
        : value,
  );
  const numbered = written
    .replaceAll(tokenIn(written), "Q7fWm2Xc9TzKd4RvPb6NsHgYe8JuLa3E")
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g, (id) => {
      if (!ids.includes(id)) ids.push(id);
      return `0194b000-0000-7000-8000-${String(ids.indexOf(id) + 1).padStart(12, "0")}`;
    });
  const hashes: string[] = ["0".repeat(64)];
  const hashed = numbered.replaceAll(/(?<=(?<!key_)hash":")[0-9a-f]{64}(?=")/g, (hash) => {
    if (!hashes.includes(hash)) hashes.push(hash);
    return String(hashes.indexOf(hash)).padStart(64, "0");
  });
  const parsed = record(JSON.parse(hashed));
  for (const [id, fields] of Object.entries(VOLATILE)) {
    const answer = record(record(parsed[id])["answer"]);
    expect(Object.keys(answer)).toEqual(expect.arrayContaining(Object.keys(fields)));
    parsed[id] = { ...record(parsed[id]), answer: { ...answer, ...fields } };
  }
  return parsed;
}

/** What depends on the machine, or changes with each version. */
const VOLATILE: Readonly<Record<string, Fields>> = {
  invitation_create: { other_urls: ["https://192.168.1.20:19443"] },
  join: { key: "worker-9-a3b1c5d7" },
  file_download_url: {
    url: "/api/v1/file/download/0194b000-0000-7000-8000-000000000007?ticket=WyJkb3dubG9hZCIsMTg5NjA5MTkwMCwicHJpbWFyeSJd.mGv5n0dQ2fXb8uZ1rT4kLw",
  },
  file_upload_url: { url: "/api/v1/file/upload?ticket=WyJ1cGxvYWQiLDE4OTYwOTE5MDBd.q7Yp3sVx9aKc0eHn5tJwRg" },
  key_add: { secret: "K3m8Qx0vT2yRw7ZpLd4NcB9sHfJ6aUe1" },
  standby_invite: {
    line: "https://192.168.1.10:19443/#standby.K3m8Qx0vT2yRw7ZpLd4NcB9sHfJ6aUe1.pGd3l8o1Hk0uEJ7ZBq5c6X9yTnVwRa2sMfLiKjOgDxY",
    url: "https://192.168.1.10:19443",
    other_urls: ["https://192.168.1.20:19443"],
    pin: "pGd3l8o1Hk0uEJ7ZBq5c6X9yTnVwRa2sMfLiKjOgDxY",
  },
  status: {
    copy: {
      role: "first",
      term: 1,
      entry: 1_795_929_375_112,
      hub: null,
      standbys: [
        {
          name: "pi-2",
          url: "https://192.168.1.20:19443",
          following: true,
          lag_entries: 0,
          lag_s: 0,
          since: "2030-01-31T11:40:00.000Z",
          fault: null,
        },
      ],
    },
    software: "luxhub 1.0.0",
    storage: {
      database_bytes: 368_640,
      files_bytes: 0,
      finished_tasks: 3,
      free_bytes: 24_000_000_000,
      warning: null,
    },
  },
  webhook_put: { secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=" },
  webhook_test: { ms: 42 },
  pg_diagnostic: {
    latency_ms: 0.125,
    engine_version: "3.51.3",
    size_bytes: 249_856,
    migration: 12,
    queued: 0,
    details: { journal_mode: "wal" },
  },
};

describe("examples", () => {
  const recorded: Record<string, Fields> = {};

  for (const variant of VARIANTS)
    test(`a hub answers as the examples of ${variant} say`, async () => {
      const clock = new StoppedClock();
      const post: Post = async () => ({ status: 204, retryAfter: null });
      await using hub = await startHub({ clock, alone: "ownHead", post });
      recorded[variant] = await recordSession(hub, clock, variant);
      if (process.env["LUXHUB_RECORD_EXAMPLES"] !== undefined) return;
      const kept = record(JSON.parse(readFileSync(EXAMPLES_PATH, "utf8")));
      expect(recorded[variant]).toEqual(record(kept[variant]));
    });

  test("every operation has one", () => {
    if (process.env["LUXHUB_RECORD_EXAMPLES"] !== undefined)
      writeFileSync(EXAMPLES_PATH, JSON.stringify(recorded, null, 1));
    for (const variant of VARIANTS) {
      const ids = Object.values(DocumentChecks.of(variant).document.paths).flatMap((item) =>
        Object.values(item).map((operation) => operation.operationId),
      );
      expect(Object.keys(recorded[variant] ?? {}).toSorted()).toEqual(
        ids.filter((id) => !WITHOUT_EXAMPLE.includes(id)).toSorted(),
      );
      expect(new Set(ids).size).toBe(ids.length);
    }
  });
});

describe("the document", () => {
  /** Every schema of a document that has properties, with where it is. */
  function* objectsIn(value: unknown, at = ""): Generator<readonly [at: string, schema: Fields]> {
    if (typeof value !== "object" || value === null) return;
    if ("properties" in value && !at.endsWith("/properties")) yield [at, { ...value }];
    for (const [name, part] of Object.entries(value))
      if (name !== "example") yield* objectsIn(part, `${at}/${name}`);
  }

  test("describes each field, and uses every text", () => {
    const used = new Set<unknown>();
    const bare: string[] = [];
    for (const variant of VARIANTS) {
      const { document } = DocumentChecks.of(variant);
      for (const [at, { properties }] of objectsIn(document))
        for (const [name, schema] of Object.entries(record(properties))) {
          const { description } = record(schema);
          used.add(description);
          if (!description && !at.includes("/allOf/")) bare.push(`${at} ${name}`);
        }
      for (const item of Object.values(document.paths))
        for (const operation of Object.values(item))
          for (const { name, description } of parametersOf(document, operation)) {
            used.add(description);
            if (description === "") bare.push(`${operation.operationId} ${name}`);
          }
    }
    expect(bare).toEqual([]);
    expect(Object.keys(FIELDS).filter((field) => !used.has(FIELDS[field]))).toEqual([]);
  });

  /** Copies of an answer, each with one fault: a field that is missing, of another type, or too many. */
  function* damaged(value: unknown): Generator<unknown> {
    if (Array.isArray(value)) {
      for (const [i, part] of value.entries())
        for (const bad of damaged(part)) yield value.map((one: unknown, at) => (at === i ? bad : one));
      return;
    }
    if (typeof value !== "object" || value === null) {
      yield { of: "another type" };
      return;
    }
    yield { ...value, unknown_field: 1 };
    for (const [name, part] of Object.entries(value)) {
      const { [name]: _, ...others } = record(value);
      yield others;
      for (const bad of damaged(part)) yield { ...value, [name]: bad };
    }
  }

  test("and the declarations judge answers alike, right ones and damaged ones", () => {
    const kept = record(JSON.parse(readFileSync(EXAMPLES_PATH, "utf8")));
    let refusals = 0;
    for (const variant of VARIANTS) {
      const checks = DocumentChecks.of(variant);
      for (const [path, item] of Object.entries(checks.document.paths))
        for (const [method, { operationId, responses }] of Object.entries(item)) {
          const isRaw =
            !("200" in responses) ||
            ["file_upload", "file_download", ...WITHOUT_EXAMPLE].includes(operationId) ||
            isStream(operationId);
          if (isRaw) continue; // their declarations have no schema, or they have no example
          const { answer } = record(record(kept[variant])[operationId]);
          const ask = [method.toUpperCase(), path.replaceAll(/\{\w+\}/g, "x"), 200] as const;
          expect(answerFault(variant, ...ask, answer)).toBeNull();
          for (const bad of damaged(answer)) {
            const faults = [checks.answerFault(...ask, bad), answerFault(variant, ...ask, bad)];
            if ((faults[0] === null) !== (faults[1] === null))
              throw new Error(`${ask.join(" ")}: ${faults.join(" but ")}`);
            if (faults[0] !== null) refusals += 1;
          }
        }
    }
    expect(refusals).toBeGreaterThan(2_000);
  });

  test("differs between the variants where they answer differently", () => {
    const [a, b] = VARIANTS.map((variant) => DocumentChecks.of(variant).document);
    const priority = [a, b].map((one) => one?.components.schemas["Task"]?.properties?.["priority"]?.enum);
    expect(priority).toEqual([
      [0, 1, 2],
      ["high", "medium", "low", "p5"],
    ]);
    const access = [a, b].map((one) => one?.paths["/api/v1/task/list"]?.get?.security);
    expect(access).toEqual([
      [{}, { secret: [] }, { bearer: [] }],
      [{ secret: [] }, { bearer: [] }],
    ]);
  });

  test("is answered in the variant of the caller, as other public reads are", async () => {
    await using hub = await startHub();
    const open = { "X-Matrix-Secret": null };
    const a = await hub.get("/openapi.json", { headers: open });
    expect(a.body).toEqual({ ...DocumentChecks.of("A").document });
    const b = await hub.get("/openapi.json", { variant: "B" });
    expect(b.body).toEqual({ ...DocumentChecks.of("B").document });
    await refused(hub.get("/openapi.json", { variant: "B", headers: open }), 401, "unauthorized");
    await using closed = await startHub({ isPrivate: true, variants: ["A"] });
    await refused(closed.get("/openapi.json", { headers: open }), 401, "unauthorized");
  });
});
