/**
 * What holds for every request (docs/api.md): the order of checks, methods, request ids, problems, and valid bodies.
 * keys.test.ts tests the secrets, idempotency.test.ts the Idempotency-Key.
 */
import { describe, expect, test } from "bun:test";
import { ADMIN_KEY, type Answer, type CallOptions, SECRET, type TestHub, startHub } from "../support/hub.ts";
import {
  NO_ID,
  RESULT,
  VARIANTS,
  badFields,
  list,
  ok,
  raw,
  rawPost,
  record,
  refused,
  until,
} from "./scene.ts";

const MIB = 1024 * 1024;

/** Every path and the methods it takes. */
const PATHS = {
  "/node/register": ["POST"],
  "/node/heartbeat": ["POST"],
  "/node/list": ["GET"],
  "/node/n1": ["GET"],
  "/task/create": ["POST"],
  "/task/assign": ["POST"],
  "/task/claim": ["POST"],
  "/task/complete": ["POST"],
  "/task/revoke": ["POST"],
  "/task/batch-assign": ["POST"],
  "/task/delete": ["POST"],
  "/task/list": ["GET"],
  "/task/pull": ["GET"],
  "/task/stats": ["GET"],
  "/agent/message": ["POST"],
  "/agent/messages": ["GET"],
  "/agent/broadcast": ["POST"],
  "/agent/ack": ["POST"],
  "/message/send": ["POST"],
  "/message/receive": ["POST"],
  "/message/broadcast": ["POST"],
  "/message/ack": ["POST"],
  "/message/history": ["GET"],
  "/signin": ["POST"],
  "/lux/ledger": ["GET"],
  "/lux/entries": ["GET"],
  "/lux/head": ["GET"],
  "/file/upload": ["POST"],
  "/file/download/x": ["GET"],
  "/file/list": ["GET"],
  "/file/delete": ["POST"],
  "/file/x": ["DELETE"],
  "/status": ["GET"],
  "/events": ["GET"],
  "/pg/diagnostic": ["GET"],
  "/poll": ["GET"],
} as const;

/** POST endpoints that read JSON. */
const JSON_POSTS = Object.entries(PATHS)
  .filter(([path, [method]]) => method === "POST" && path !== "/file/upload")
  .map(([path]) => path);

const BARE: CallOptions = { headers: { "X-Matrix-Secret": null } };

describe("paths and methods", () => {
  test.each(VARIANTS)("an unknown path on %s is 404, before any other check", async (variant) => {
    await using hub = await startHub({ variants: [variant] });
    const unknown = [
      "/config/template",
      "/",
      "/nope",
      "/task",
      "/task/create/x",
      "/status/",
      "/STATUS",
      "/node/n1/x",
    ];
    for (const path of unknown) {
      for (const method of ["GET", "POST", "PUT", "DELETE", "OPTIONS"]) {
        await refused(hub.call(method, path, { ...BARE, variant }), 404, "not_found");
      }
    }
    const outside = await fetch(`${hub.base(variant)}/api/v2/status`, { keepalive: false });
    expect(outside.status).toBe(404);
    expect(await outside.json()).toMatchObject({ success: false, error: "not_found" });
  });

  test.each(VARIANTS)(
    "a wrong method on %s is 405 with Allow, before the secret is checked",
    async (variant) => {
      await using hub = await startHub({ variants: [variant] });
      for (const [path, methods] of Object.entries(PATHS)) {
        const allowed: string[] = methods.flatMap((method) =>
          method === "GET" ? ["GET", "HEAD"] : [method],
        );
        for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
          if (allowed.includes(method)) continue;
          const answer = await refused(
            hub.call(method, path, { ...BARE, variant }),
            405,
            "method_not_allowed",
          );
          expect([path, answer.headers.get("allow")]).toEqual([path, allowed.join(", ")]);
        }
      }
    },
  );

  test("a literal path takes precedence over a parameter, for every method", async () => {
    await using hub = await startHub({ variants: ["A"] });
    await refused(hub.get("/node/register"), 405, "method_not_allowed");
    await refused(hub.get("/node/heartbeat"), 405, "method_not_allowed");
    expect(await ok(hub.get("/node/list"))).toHaveProperty("nodes");
    for (const name of ["upload", "list", "delete"]) {
      await refused(hub.call("DELETE", `/file/${name}`), 405, "method_not_allowed");
    }
  });

  test("a parameter is decoded; a strange one is just not found", async () => {
    await using hub = await startHub({ variants: ["A"], alone: "ownHead" });
    await hub.addNode("a:b");
    expect(await ok(hub.get("/node/a%3Ab"))).toMatchObject({ node: { node_id: "a:b" } });
    for (const strange of [
      "%2e%2e%2fx",
      "a%2Fb",
      "%00",
      "%zz",
      "%ff",
      "%F0%9F%A6%8A",
      "'%20OR%201",
      "x".repeat(5_000),
    ]) {
      for (const path of [`/node/${strange}`, `/file/download/${strange}`]) {
        expect([path, (await hub.get(path)).status]).toEqual([path, 404]);
      }
      expect([strange, (await hub.call("DELETE", `/file/${strange}`)).status]).toEqual([strange, 404]);
    }
  });

  test("HEAD works wherever GET does, with the same status and headers and no body", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    await hub.addTask();
    const form = new FormData();
    form.set("file", new File(["bytes"], "a.txt"));
    const { file_id } = await ok(hub.post("/file/upload", form));
    const gets = Object.entries(PATHS).flatMap(([path, methods]) => (methods[0] === "GET" ? [path] : []));
    for (const path of gets) {
      const query = path === "/poll" ? "?since=0" : "?node_id=n1";
      const asked = (path.startsWith("/file/download") ? `/file/download/${file_id}` : path) + query;
      for (const variant of VARIANTS) {
        const [get, head] = [await hub.get(asked, { variant }), await hub.call("HEAD", asked, { variant })];
        expect([path, head.status]).toEqual([path, 200]);
        expect(head.headers.get("content-type")).toBe(get.headers.get("content-type"));
        expect(head.headers.get("x-request-id")).toBeTruthy();
      }
    }
    expect((await hub.call("HEAD", "/nope")).status).toBe(404);
    expect((await hub.call("HEAD", "/task/create")).status).toBe(405);
    expect((await hub.call("HEAD", "/task/list", { ...BARE, variant: "B" })).status).toBe(401);
    expect((await hub.call("HEAD", "/node/ghost")).status).toBe(404);
    expect((await hub.call("HEAD", "/task/list?page=0")).status).toBe(400);
  });
});

describe("the order of checks", () => {
  /** What is wrong with a request to task/delete or task/revoke, added one after the other from the last to the first. */
  test("404, 405, 401, 403, 413/415/400, then the state of the resource", async () => {
    await using hub = await startHub({ variants: ["A"] });
    const admin = { "X-Admin-Key": ADMIN_KEY };
    const state = { body: { task_id: NO_ID }, headers: admin };
    const bad = { body: { task_id: 5 }, headers: admin };
    const large = { body: JSON.stringify({ task_id: 5, filler: "x".repeat(MIB) }), headers: admin };
    const form = new FormData();
    form.set("task_id", "5");
    const multipart = { body: form, headers: admin };
    const noAdmin = { body: form, headers: { "X-Admin-Key": "wrong" } };
    const noSecret = { body: form, headers: { "X-Admin-Key": "wrong", "X-Matrix-Secret": "wrong" } };
    for (const path of ["/task/delete", "/task/revoke"]) {
      await refused(hub.call("POST", path, state), 404, "task_not_found");
      await refused(hub.call("POST", path, bad), 400, "invalid_request");
      await refused(hub.call("POST", path, large), 413, "body_too_large");
      await refused(hub.call("POST", path, multipart), 415, "unsupported_media_type");
      await refused(hub.call("POST", path, noAdmin), 403, "admin_key_required");
      await refused(hub.call("POST", path, noSecret), 401, "unauthorized");
      await refused(hub.call("PUT", path, noSecret), 405, "method_not_allowed");
      await refused(hub.call("PUT", `${path}/x`, noSecret), 404, "not_found");
    }
  });

  test("a missing and a wrong admin key are both 403, and the detail tells them apart", async () => {
    await using hub = await startHub({ variants: ["A"] });
    const missing = await refused(hub.post("/task/delete", { task_id: NO_ID }), 403, "admin_key_required");
    expect(missing.body["detail"]).toMatch(/^Send the administrator key /);
    const asSecret = { headers: { "X-Admin-Key": SECRET } };
    const wrong = await refused(
      hub.post("/task/delete", { task_id: NO_ID }, asSecret),
      403,
      "admin_key_required",
    );
    expect(wrong.body["detail"]).toMatch(/is unknown, expired or revoked\.$/);
    const swapped = { headers: { "X-Admin-Key": SECRET, "X-Matrix-Secret": ADMIN_KEY } };
    await refused(hub.post("/task/delete", { task_id: NO_ID }, swapped), 401, "unauthorized");
  });

  test("for the state of the resource: 404, then 403, then 409", async () => {
    await using hub = await startHub({ variants: ["A"] });
    await hub.addNode("n1");
    await hub.addNode("n2");
    const done = await hub.addTaskOf("n1");
    await ok(hub.complete(done, "n1"));
    const other = { ...RESULT, lesson: "another" };
    const attempt = (node_id: string) =>
      hub.post("/task/complete", { task_id: done, node_id, result: other });
    await refused(attempt("ghost"), 404, "node_not_found");
    await refused(attempt("n2"), 403, "not_assigned_to_node");
    await refused(attempt("n1"), 409, "task_completed");
    await refused(hub.post("/task/claim", { task_id: done, node_id: "ghost" }), 404, "node_not_found");
  });

  test("a bad query is 400 after the secret and before the state of the resource", async () => {
    await using hub = await startHub({ variants: ["B"] });
    const path = "/message/history?node_id=ghost&count=0";
    await refused(hub.get(path, { ...BARE, variant: "B" }), 401, "unauthorized");
    await badFields(hub.get(path, { variant: "B" }), ["count"]);
    await refused(hub.get("/message/history?node_id=ghost", { variant: "B" }), 404, "node_not_found");
  });

  test("a refused request changes nothing", async () => {
    await using hub = await startHub({ variants: ["A"] });
    const body = { title: "t", description: "d" };
    await refused(hub.post("/task/create", body, BARE), 401, "unauthorized");
    await refused(hub.post("/task/create", { ...body, priority: 9 }), 400, "invalid_request");
    const form = new FormData();
    form.set("title", "t");
    await refused(hub.post("/task/create", form), 415, "unsupported_media_type");
    expect(await ok(hub.get("/task/list"))).toMatchObject({ total: 0 });
  });
});

describe("X-Request-Id", () => {
  const idOf = (answer: Answer) => answer.headers.get("x-request-id");

  test("is the client's, if it sent a valid one", async () => {
    await using hub = await startHub({ variants: ["A"] });
    for (const sane of [
      "abc-123",
      "x",
      "x".repeat(128),
      "00-4bf92f3577b34da6a3ce929d0e0e4736-01",
      "a/b=c;d",
    ]) {
      expect(idOf(await hub.get("/status", { headers: { "X-Request-Id": sane } }))).toBe(sane);
    }
    for (const insane of ["", "x".repeat(129), "a b", "\u00e9", "\t"]) {
      const given = idOf(await hub.get("/status", { headers: { "X-Request-Id": insane } }));
      expect(given).toMatch(/^[\x21-\x7e]{8,128}$/);
      expect(given).not.toBe(insane);
    }
  });

  test("is on every answer, and unique", async () => {
    await using hub = await startHub({ variants: ["A"] });
    const answers = [
      await hub.get("/status"),
      await hub.get("/nope"),
      await hub.call("OPTIONS", "/status"),
      await hub.post("/task/create", {}, BARE),
      await hub.post("/task/delete", {}),
      await hub.post("/task/create", {}),
      await hub.post("/task/create", "x".repeat(MIB + 1)),
      await hub.post("/file/upload", "x"),
      await hub.get("/file/download/x"),
    ];
    expect(answers.map((answer) => answer.status)).toEqual([200, 404, 405, 401, 403, 400, 413, 415, 404]);
    expect(new Set(answers.map(idOf)).size).toBe(answers.length);
    for (const answer of answers) expect(idOf(answer)).toBeTruthy();
    for (const method of ["GET", "POST"]) {
      const path = method === "GET" ? "/nope" : "/task/claim";
      const answer = await hub.call(method, path, { headers: { "X-Request-Id": "mine" } });
      expect(idOf(answer)).toBe("mine");
    }
  });

  test("is in the log, which contains no secret", async () => {
    await using hub = await startHub({ variants: ["A"] });
    await hub.get("/status?x=1", { headers: { "X-Request-Id": "look-for-me" } });
    await hub.admin("/task/delete", { task_id: NO_ID }, { headers: { "X-Request-Id": "and-me" } });
    const log = () => hub.logged.join("");
    await until("it is logged", async () => log().includes("look-for-me") && log().includes("and-me"));
    expect(log()).not.toContain(SECRET);
    expect(log()).not.toContain(ADMIN_KEY);
  });
});

describe("a problem", () => {
  test("has the members of RFC 9457 and the hub's own, and no others", async () => {
    await using hub = await startHub({ variants: ["A"] });
    const plain = ["detail", "error", "status", "success", "title", "type"];
    const conflict = await refused(hub.get("/node/ghost"), 404, "node_not_found");
    expect(Object.keys(conflict.body).toSorted()).toEqual(plain);
    expect(conflict.headers.get("content-type")).toBe("application/problem+json");
    const bad = await refused(hub.post("/node/heartbeat", {}), 400, "invalid_request");
    expect(Object.keys(bad.body).toSorted()).toEqual([...plain, "errors"].toSorted());
    const [error] = bad.body["errors"] as Record<string, unknown>[];
    expect(Object.keys(error ?? {}).toSorted()).toEqual(["message", "path"]);
    for (const { body } of [conflict, bad]) {
      expect(body["success"]).toBe(false);
      expect(body["type"]).toMatch(/^\w+:/);
      expect(body["detail"]).toMatch(/^[A-Z].{15,}/); // a sentence
    }
  });

  test("one type and title for each code", async () => {
    await using hub = await startHub({ variants: ["A"] });
    const one = await refused(hub.get("/node/x"), 404, "node_not_found");
    const two = await refused(hub.get("/node/y"), 404, "node_not_found");
    const third = await refused(hub.get("/file/download/x"), 404, "file_not_found");
    expect([two.body["type"], two.body["title"]]).toEqual([one.body["type"], one.body["title"]]);
    expect(third.body["type"]).not.toBe(one.body["type"]);
  });

  test.each([
    ["missing", null],
    ["wrong", "not-the-secret"],
    ["empty", ""],
    ["too long", "x".repeat(2_000)],
    ["another case", SECRET.toUpperCase()],
  ])("401 for a secret that is %s tells how to authenticate", async (_, secret) => {
    await using hub = await startHub();
    for (const variant of VARIANTS) {
      const options = { variant, headers: { "X-Matrix-Secret": secret } };
      const answer = await refused(hub.post("/task/create", {}, options), 401, "unauthorized");
      expect(answer.headers.get("www-authenticate")).toBeTruthy();
      expect(answer.body["detail"]).toMatch(
        secret ? /is unknown, expired or revoked\.$/ : /^Send the hub's secret /,
      );
      expect(JSON.stringify(answer.body)).not.toContain(SECRET);
    }
  });

  test("a success has no WWW-Authenticate, a 404 no Allow", async () => {
    await using hub = await startHub({ variants: ["A"] });
    expect((await hub.get("/status")).headers.get("www-authenticate")).toBeNull();
    expect((await hub.get("/nope")).headers.get("allow")).toBeNull();
  });
});

describe("a JSON body", () => {
  test("that is not a JSON object is one error with the path ''", async () => {
    await using hub = await startHub({ variants: ["A"] });
    for (const body of ["", " ", "{", "[]", "[{}]", "null", "5", '"x"', "true", "{}{}", "{'a':1}", "a=1"]) {
      await badFields(hub.post("/task/create", body), [""]);
    }
    await badFields(hub.call("POST", "/task/create"), [""]);
  });

  test("is required by every endpoint that reads one", async () => {
    await using hub = await startHub({ variants: ["A"] });
    for (const path of JSON_POSTS) await badFields(hub.admin(path, "[1]"), [""]);
  });

  test("may have any Content-Type or none, except multipart", async () => {
    await using hub = await startHub({ variants: ["A"] });
    const text = JSON.stringify({ node_id: "n1", name: "n" });
    const attempt = (type: string | null) =>
      hub.post("/node/register", new Blob([text]), {
        headers: type === null ? {} : { "Content-Type": type },
      });
    for (const type of [
      null,
      "application/json; charset=utf-8",
      "text/plain",
      "application/x-www-form-urlencoded",
      "x",
    ]) {
      await ok(attempt(type));
    }
    for (const type of [
      "multipart/form-data; boundary=x",
      "multipart/mixed",
      "MULTIPART/Form-Data; boundary=x",
    ]) {
      await refused(attempt(type), 415, "unsupported_media_type");
    }
  });

  test("that is compressed is 415, and the hub says that it takes none", async () => {
    await using hub = await startHub({ variants: ["A"] });
    const body = Bun.gzipSync(JSON.stringify({ node_id: "n1", name: "n1" }));
    const answer = await hub.post("/node/register", new Blob([body]), {
      headers: { "Content-Encoding": "gzip" },
    });
    expect([answer.status, answer.body["error"], answer.headers.get("accept-encoding")]).toEqual([
      415,
      "unsupported_media_type",
      "identity",
    ]);
  });

  test("as multipart is 415 on every JSON endpoint", async () => {
    await using hub = await startHub({ variants: ["A"] });
    for (const path of JSON_POSTS) {
      const form = new FormData();
      form.set("a", "b");
      await refused(hub.admin(path, form), 415, "unsupported_media_type");
    }
  });

  test("an upload that is not multipart is 415", async () => {
    await using hub = await startHub({ variants: ["A"] });
    await refused(hub.post("/file/upload", { file: "x" }), 415, "unsupported_media_type");
    await refused(hub.post("/file/upload", "x"), 415, "unsupported_media_type");
    await refused(hub.call("POST", "/file/upload"), 415, "unsupported_media_type");
    const mixed = { headers: { "Content-Type": "multipart/mixed; boundary=x" } };
    await refused(hub.post("/file/upload", new Blob(["--x--"]), mixed), 415, "unsupported_media_type");
  });

  test("may have unknown fields", async () => {
    await using hub = await startHub();
    const extra = { x: 1, __proto__: { y: 2 }, constructor: { z: [null] }, "": "", "a\0": "\0", toString: 1 };
    const taskId = await hub.addTask(extra);
    expect(Object.keys(await hub.taskOf(taskId))).not.toContain("x");
    const text = '{"title":"t","description":"d","__proto__":{"priority":9},"priority":0}';
    expect(await ok(hub.post("/task/create", text))).toMatchObject({ task: { priority: 0 } });
  });

  describe("names the fields that nothing reads", () => {
    const task = { title: "t", description: "d" };
    const ignoredBy = async (answer: Promise<Answer>): Promise<unknown> => (await ok(answer))["ignored"];

    test("of the body, in both variants, and not those that it reads or that are null", async () => {
      await using hub = await startHub();
      for (const variant of VARIANTS) {
        const create = (body: object | string) => ignoredBy(hub.post("/task/create", body, { variant }));
        expect(await create({ ...task, timout_s: 5, labels: ["a"], priority: 0 })).toEqual([
          "timout_s",
          "labels",
        ]);
        expect(await create({ ...task, timout_s: null, assigned_node: "n1" })).toBeUndefined();
        expect(await create(task)).toBeUndefined();
        expect(await create('{"title":"t","description":"d","__proto__":{"a":1},"constructor":2}')).toEqual([
          "__proto__",
          "constructor",
        ]);
      }
    });

    test("and stores none of them: the task does not have `ignored`, nor does its next answer", async () => {
      await using hub = await startHub({ variants: ["A"] });
      const made = await ok(hub.post("/task/create", { ...task, labels: 1 }));
      expect(made["task"]).not.toContainAnyKeys(["ignored", "labels"]);
      const got = await ok(hub.get(`/task/${String(made["task_id"])}`));
      expect([got["ignored"], record(got["task"])["ignored"]]).toEqual([undefined, undefined]);
    });

    test("with dots where they are nested; what is stored as it was sent has none", async () => {
      await using hub = await startHub({ variants: ["A"] });
      await hub.addNode("n1");
      const taskId = await hub.addTask();
      const assignments = [
        { task_id: taskId, node_id: "n1" },
        { task_id: taskId, node_id: "n1", nod: 1 },
      ];
      expect(await ignoredBy(hub.post("/task/batch-assign", { assignments, x: 1 }))).toEqual([
        "assignments.1.nod",
        "x",
      ]);
      const result = { problem: "p", improvement: "i", lesson: "l", more: { deep: 1 } };
      const done = { task_id: taskId, node_id: "n1", result, reslt: 1 };
      expect(await ignoredBy(hub.post("/task/complete", done))).toEqual(["reslt"]);
    });

    test("of each request of a batch in its own answer, and of all at its top", async () => {
      await using hub = await startHub();
      for (const variant of VARIANTS) {
        const requests = [
          { path: "task/create", body: { ...task, timout_s: 1 }, id: 7 },
          { path: "task/create", body: task },
        ];
        const answer = await ok(hub.post("/batch", { requests, dry: true }, { variant }));
        expect(answer["ignored"]).toEqual(["requests.0.id", "dry", "requests.0.body.timout_s"]);
        const bodies = list(answer, "answers").map((one) => record(one["body"])["ignored"]);
        expect(bodies).toEqual([["timout_s"], undefined]);
      }
    });

    test("of a query, also where the list comes in parts", async () => {
      await using hub = await startHub({ variants: ["A"] });
      await hub.addTask();
      expect(await ignoredBy(hub.get("/task/list?statu=open&x=1&status=open&page="))).toEqual(["statu", "x"]);
      expect(await ignoredBy(hub.get("/status?_=1"))).toEqual(["_"]);
      expect(
        await ignoredBy(hub.post("/task/create?title=other", { title: "t", description: "d", y: 1 })),
      ).toEqual(["y", "title"]);
      const form = new FormData();
      form.append("file", new Blob(["x"]), "x");
      form.append("task_id", "of-the-metadata");
      expect(await ignoredBy(hub.post("/file/upload", form))).toEqual(["task_id"]);
      expect(await ignoredBy(hub.get("/task/list?status=open"))).toBeUndefined();
    });

    test("again in the answer to a repeat with the same Idempotency-Key", async () => {
      await using hub = await startHub({ variants: ["A"] });
      const again = () =>
        hub.post("/task/create", { ...task, labels: 1 }, { headers: { "Idempotency-Key": "k1" } });
      expect([await ignoredBy(again()), await ignoredBy(again())]).toEqual([["labels"], ["labels"]]);
    });

    test("the first 20, each cut to 100 characters", async () => {
      await using hub = await startHub({ variants: ["A"] });
      const many = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`x${i}`, { y: i }]));
      const named = Array.from({ length: 20 }, (_, i) => `x${i}`);
      expect(await ignoredBy(hub.post("/task/create", { ...task, ...many }))).toEqual(named);
      const long = { ["n".repeat(5_000)]: 1, [`${"m".repeat(99)}\u{1f600}`]: 2 };
      expect(await ignoredBy(hub.post("/task/create", { ...task, ...long }))).toEqual([
        "n".repeat(100),
        `${"m".repeat(99)}\ufffd`,
      ]);
    });
  });

  test("errors name every bad field once, with dotted paths", async () => {
    await using hub = await startHub({ variants: ["A"] });
    const node = { node_id: "a b", name: "", host: 5, port: "80", capabilities: ["x", 1], max_tasks: 0 };
    await badFields(hub.post("/node/register", node), [
      "node_id",
      "name",
      "host",
      "port",
      "capabilities.1",
      "max_tasks",
    ]);
    const message = { from_node: "a b", to_node: 5, content: 5, type: "alert", require_ack: "yes" };
    await badFields(hub.post("/message/send", message), Object.keys(message));
    const take = { node_id: "", count: 0, blocking: 1, timeout: 301 };
    await badFields(hub.post("/message/receive", take), Object.keys(take));
    const query = "/events?since=-1&limit=1001&kind=nope";
    await badFields(hub.get(query), ["since", "limit", "kind"]);
  });

  test("with NUL or a lone surrogate in a text is refused for that field", async () => {
    await using hub = await startHub({ variants: ["A"] });
    await hub.addNode("n1");
    const taskId = await hub.addTaskOf("n1");
    for (const bad of ["a\\u0000b", "\\ud800", "\\udc00x", "x\\ud83d"]) {
      const text = (fields: string) => fields.replaceAll("BAD", `"${bad}"`);
      await badFields(hub.post("/task/create", text('{"title":BAD,"description":BAD}')), [
        "title",
        "description",
      ]);
      await badFields(hub.post("/node/register", text('{"node_id":BAD,"name":BAD}')), ["node_id", "name"]);
      await badFields(
        hub.post("/node/register", text('{"node_id":"n2","name":"n","host":BAD,"capabilities":[BAD]}')),
        ["host", "capabilities.0"],
      );
      await badFields(hub.post("/message/send", text('{"from_node":"n1","to_node":"n1","content":BAD}')), [
        "content",
      ]);
      const result = text(
        `{"task_id":"${taskId}","node_id":"n1","result":{"problem":BAD,"improvement":BAD,"lesson":BAD}}`,
      );
      await badFields(hub.post("/task/complete", result), [
        "result.problem",
        "result.improvement",
        "result.lesson",
      ]);
      await badFields(hub.admin("/task/revoke", text(`{"task_id":"${taskId}","reason":BAD}`)), ["reason"]);
      await badFields(hub.post("/task/create", text('{"title":"t","description":"d","task_type":BAD}')), [
        "task_type",
      ]);
      await badFields(hub.post("/file/delete", text('{"file_id":BAD}')), ["file_id"]);
    }
    // The raw byte is no JSON at all.
    await badFields(hub.post("/task/create", '{"title":"a\0b","description":"d"}'), [""]);
  });

  test("that is not UTF-8 is refused", async () => {
    await using hub = await startHub({ variants: ["A"] });
    for (const bytes of [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0x80], [0xf5, 0x80, 0x80, 0x80]]) {
      const body = Buffer.concat([
        Buffer.from('{"title":"'),
        Buffer.from(bytes),
        Buffer.from('","description":"d"}'),
      ]);
      await badFields(hub.post("/task/create", new Blob([body])), [""]);
    }
  });

  test("deeply nested is answered, also with an Idempotency-Key", async () => {
    await using hub = await startHub({ variants: ["A"] });
    const depth = 200_000;
    const body = `{"node_id":"n1","name":"n","x":${"[".repeat(depth)}${"]".repeat(depth)}}`;
    for (const headers of [{}, { "Idempotency-Key": "k" }]) {
      const { status } = await hub.post("/node/register", body, { headers });
      expect([200, 400]).toContain(status);
    }
    expect(await ok(hub.get("/status"))).toMatchObject({ status: "ok" });
  });
});

describe("a body full of invalid fields", () => {
  test("gets a short answer", async () => {
    await using hub = await startHub({ variants: ["A"] });
    const capabilities = new Array<number>(500_000).fill(1);
    const answer = await refused(
      hub.post("/node/register", { node_id: "n1", name: "n", capabilities }),
      400,
      "invalid_request",
    );
    expect(JSON.stringify(answer.body).length).toBeLessThan(1_000);
    const results = Array.from({ length: 500 }, () => ({}));
    const batch = await refused(
      hub.post("/task/batch-assign", { assignments: results }),
      400,
      "invalid_request",
    );
    expect(batch.body["errors"]).toHaveLength(100);
  });
});

describe("a body over 1 MiB", () => {
  /** A body of this many bytes, good but for its size. */
  function bodyOf(bytes: number): string {
    const [head, tail] = ['{"node_id":"n1","name":"n","filler":"', '"}'];
    return head + "x".repeat(bytes - head.length - tail.length) + tail;
  }

  /** A POST of the body in chunks, with no Content-Length. */
  function chunked(hub: TestHub, body: string): Promise<Response> {
    const part = 64 * 1024;
    let sent = 0;
    const stream = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (sent >= body.length) return controller.close();
        controller.enqueue(Buffer.from(body.slice(sent, (sent += part))));
      },
    });
    return fetch(`${hub.base()}/api/v1/node/register`, {
      method: "POST",
      headers: { "X-Matrix-Secret": SECRET },
      body: stream,
      keepalive: false,
    });
  }

  test("is 413, one of exactly 1 MiB is accepted", async () => {
    await using hub = await startHub({ variants: ["A"] });
    await ok(hub.post("/node/register", bodyOf(MIB)));
    await refused(hub.post("/node/register", bodyOf(MIB + 1)), 413, "body_too_large");
    await refused(hub.post("/node/register", bodyOf(5 * MIB)), 413, "body_too_large");
  });

  test("in chunks is 413 too", async () => {
    await using hub = await startHub({ variants: ["A"] });
    expect((await chunked(hub, bodyOf(MIB))).status).toBe(200);
    const answer = await chunked(hub, bodyOf(MIB + 1));
    expect(answer.status).toBe(413);
    expect(await answer.json()).toMatchObject({ success: false, error: "body_too_large" });
  });

  test("is refused before it arrives, and the connection is closed after the answer", async () => {
    await using hub = await startHub({ variants: ["A"], alone: "ownHead" });
    const head = [
      "POST /api/v1/node/register HTTP/1.1",
      "Host: hub",
      `X-Matrix-Secret: ${SECRET}`,
      `Content-Length: ${100 * MIB}`,
      "",
      '{"node_id":',
    ].join("\r\n");
    const answer = await raw(hub.port(), head);
    expect(answer.status).toBe(413);
    expect(answer.headers.get("connection")).toBe("close");
    expect(JSON.parse(answer.text)).toMatchObject({ error: "body_too_large" });
  });

  test("in chunks is refused before its end arrives", async () => {
    await using hub = await startHub({ variants: ["A"] });
    const size = 256 * 1024;
    const head = [
      "POST /api/v1/node/register HTTP/1.1",
      "Host: hub",
      `X-Matrix-Secret: ${SECRET}`,
      "Transfer-Encoding: chunked",
      "",
      "",
    ].join("\r\n");
    const chunk = `${size.toString(16)}\r\n${"x".repeat(size)}\r\n`;
    const answer = await raw(hub.port(), head + chunk.repeat(5)); // never ends
    expect(answer.status).toBe(413);
    expect(JSON.parse(answer.text)).toMatchObject({ error: "body_too_large" });
  });

  test("is the hub's own problem, also with a smaller limit on files", async () => {
    await using hub = await startHub({ variants: ["A"], maxFileBytes: 1024 });
    await refused(hub.post("/node/register", bodyOf(8 * MIB)), 413, "body_too_large");
    await refused(hub.post("/nope", bodyOf(8 * MIB)), 404, "not_found");
    await refused(hub.post("/node/register", bodyOf(8 * MIB), BARE), 401, "unauthorized");
  });
});

describe("over a raw socket", () => {
  test("a request with an invalid Host is answered like any other", async () => {
    await using hub = await startHub({ variants: ["A"] });
    await hub.addNode("n1");
    for (const host of ["hub", "[", "a b", "x/y?z#", "", "☃", "hub:99999"]) {
      const bytes = rawPost("/node/heartbeat", { node_id: "n1" }, [`Idempotency-Key: k-${host.length}`]);
      const answer = await raw(hub.port(), bytes.replace("Host: hub", `Host: ${host}`));
      // The parser below the hub may turn it away (400); the hub itself must not fail at it.
      expect([host, [200, 400].includes(answer.status)]).toEqual([host, true]);
    }
  });

  test("the Host does not change the path or the query of a request", async () => {
    await using hub = await startHub({ variants: ["A"] });
    await hub.addTask();
    await hub.addTask();
    const request = "GET /api/v1/task/list?per_page=1 HTTP/1.1\r\nHost: hub?per_page=2&x=\r\n\r\n";
    const answer = await raw(hub.port(), request);
    if (answer.status !== 400) expect(JSON.parse(answer.text)).toMatchObject({ per_page: 1 });
  });

  test("the connection serves one request after the other", async () => {
    await using hub = await startHub({ variants: ["A"] });
    await hub.addNode("n1");
    const bytes = rawPost("/node/heartbeat", { node_id: "n1" });
    const last = rawPost("/node/heartbeat", { node_id: "ghost" });
    const statuses: number[] = [];
    const done = Promise.withResolvers<void>();
    let seen = "";
    const socket = await Bun.connect({
      hostname: "127.0.0.1",
      port: hub.port(),
      socket: {
        data(own, chunk) {
          seen += chunk.toString();
          const status = /^HTTP\/1\.1 (\d+)[^]*\r\n\r\n\{[^]*\}$/.exec(seen)?.[1];
          if (status === undefined) return;
          statuses.push(Number(status));
          seen = "";
          if (statuses.length === 4) done.resolve();
          else own.write(statuses.length === 2 ? last : bytes);
        },
        close: () => done.reject(new Error(`closed after ${statuses}`)),
      },
    });
    socket.write(bytes);
    await done.promise;
    socket.end();
    expect(statuses).toEqual([200, 200, 404, 200]);
  });
});
