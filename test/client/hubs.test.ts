/**
 * The client between a hub and its copies, which are imitated here: two servers that accept calls, turn them away, refuse
 * connections or say nothing. test/e2e/second-copy.test.ts has the real pair.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { Hubs } from "../../src/client/hubs.ts";
import { HubUnreachable, LuxHub, LuxHubError, type LuxHubOptions } from "../../src/client/index.ts";
import { EPOCHS_RAISED_BY } from "../../src/client/held-task.ts";
import { run } from "../e2e/program.ts";
import { HOST, Imitation, type Reply, accepts, foreign, refusal, silent, standby } from "./imitated-hub.ts";
import * as changeLog from "../../src/store/sqlite/change-log.ts";

const QUICK = { forMs: 5_000, firstPauseMs: 1, maxPauseMs: 5 };

const open: Imitation[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.refuseConnections();
});

function imitation(reply: Reply): Imitation {
  const made = new Imitation(reply);
  open.push(made);
  return made;
}

function hubAt(hubs: readonly (Imitation | string)[], options: Partial<LuxHubOptions> = {}): LuxHub {
  const url = hubs.map((hub) => (typeof hub === "string" ? hub : hub.url)).join(", ");
  return new LuxHub({ url, secret: "s", retry: QUICK, ...options });
}

const NEW_TASK = { title: "t", description: "d" };

const TURNED_AWAY: readonly (readonly [string, Reply])[] = [
  ["is a standby", () => standby()],
  ["was superseded", () => refusal(503, "superseded")],
  ["is behind a proxy that returns 502", () => foreign(502)],
  ["is behind a proxy that returns 503", () => foreign(503)],
  ["is behind a proxy that returns 504", () => foreign(504)],
];

test.each(TURNED_AWAY)(
  "when the first hub %s, the call and all that follow go to the second",
  async (_, reply) => {
    const first = imitation(reply);
    const second = imitation(() => accepts());
    const hub = hubAt([first, second]);
    await hub.tasks.create(NEW_TASK);
    await hub.tasks.create(NEW_TASK);
    expect(first.paths).toEqual(["task/create"]);
    expect(second.paths).toEqual(["task/create", "task/create"]);
    expect(second.calls.slice(0, 1)).toEqual(first.calls); // with the same Idempotency-Key
    expect(first.calls[0]?.key).not.toBeNull();
    expect(hub.url).toBe(second.url);
  },
);

test("a hub that refuses connections is left at once, also for what must not be sent twice", async () => {
  const first = imitation(() => accepts());
  const second = imitation(() => accepts());
  await first.refuseConnections();
  for (const retry of [QUICK, { forMs: 0 }]) {
    const hub = hubAt([first, second], { retry });
    await hub.keys.add({ name: "k" });
    expect(hub.url).toBe(second.url);
  }
  expect(second.paths).toEqual(["key/add", "key/add"]);
});

test("a standby names the hub, which need not be known before, and no call is lost on the way", async () => {
  const first = imitation(() => accepts());
  const second = imitation(() => standby(first.url));
  const known: (readonly string[])[] = [];
  const onHubs = (urls: readonly string[]): void => void known.push(urls);
  const hub = hubAt([second], { retry: { forMs: 0 }, onHubs });
  await hub.keys.add({ name: "k" });
  expect([second.paths, first.paths]).toEqual([["key/add"], ["key/add"]]);
  expect(known).toEqual([[first.url, second.url]]);
});

test("a page that must stay with its hub hears that it is a standby, and calls no other", async () => {
  const first = imitation(() => accepts());
  const second = imitation(() => standby(first.url));
  const hub = hubAt([second], { followsHubs: false });
  const refused = await hub.tasks.create(NEW_TASK).catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: "standby", problem: { hub: first.url } });
  expect([first.calls.length, second.calls.length]).toEqual([0, 1]);
});

test("what may have been carried out is not sent to another hub if it must not be sent twice", async () => {
  const first = imitation(() => foreign(502));
  const second = imitation(() => accepts());
  const hub = hubAt([first, second]);
  expect(await hub.keys.add({ name: "k" }).catch((error: unknown) => error)).toMatchObject({ status: 502 });
  await hub.tasks.create(NEW_TASK);
  expect(second.paths).toEqual(["task/create"]);
});

test("an overloaded hub is asked again, and no other", async () => {
  let count = 0;
  const first = imitation(() => (++count < 3 ? refusal(503, "overloaded") : accepts()));
  const second = imitation(() => accepts());
  await hubAt([first, second]).tasks.create(NEW_TASK);
  expect([first.calls.length, second.calls.length]).toEqual([3, 0]);
});

test("while no hub accepts the call, all are asked in turn until one does", async () => {
  const first = imitation(() => accepts());
  const second: Imitation = imitation(() => (second.calls.length < 4 ? standby(first.url) : accepts()));
  await first.refuseConnections();
  const pauses: number[] = [];
  const hub = hubAt([first, second], { onRetry: (_, pauseMs) => pauses.push(pauseMs) });
  await hub.tasks.create(NEW_TASK);
  expect(second.calls.length).toBe(4);
  expect(new Set(second.calls.map(({ key }) => key)).size).toBe(1);
  expect(pauses.length).toBe(3); // one after each round
});

test("the retry time holds for all hubs together, and the fault is the last one", async () => {
  const first = imitation(() => foreign(502));
  const second = imitation(() => standby());
  const hub = hubAt([first, second], { retry: { forMs: 0 } });
  expect(await hub.tasks.create(NEW_TASK).catch((error: unknown) => error)).toBeInstanceOf(LuxHubError);
  await first.refuseConnections();
  await second.refuseConnections();
  expect(await hub.tasks.create(NEW_TASK).catch((error: unknown) => error)).toBeInstanceOf(HubUnreachable);
});

test("registrations and heartbeats name the hubs", async () => {
  const second = imitation(() => accepts());
  const first: Imitation = imitation(({ path }) =>
    path === "node/heartbeat" ? accepts({ hubs: [first.url, second.url] }) : accepts(),
  );
  const known: (readonly string[])[] = [];
  const hub = hubAt([first], { onHubs: (urls) => known.push(urls) });
  await hub.nodes.heartbeat({ node_id: "n" });
  await hub.nodes.heartbeat({ node_id: "n" });
  expect(known).toEqual([[first.url, second.url]]);
  await first.refuseConnections();
  await hub.tasks.create(NEW_TASK);
  expect(second.paths).toEqual(["task/create"]);
  expect(known).toEqual([
    [first.url, second.url],
    [second.url, first.url],
  ]);
});

const ofCopy = (response: Response): Response => {
  response.headers.set("LuxHub-Lag", "0.1");
  return response;
};

test("a read is the copy's only while no other hub responds", async () => {
  const copy = imitation(() => ofCopy(accepts({ tasks: [], of: "copy" })));
  const first = imitation(() => accepts({ tasks: [], of: "first" }));
  expect(await hubAt([copy, first]).tasks.list()).toMatchObject({ of: "first" });
  copy.reply = () => ofCopy(refusal(404, "task_not_found"));
  expect(await hubAt([copy, first]).tasks.list()).toMatchObject({ of: "first" });
  await first.refuseConnections();
  const refused = await hubAt([copy, first])
    .tasks.list()
    .catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: "task_not_found" });
  copy.reply = () => ofCopy(accepts({ tasks: [], of: "copy" }));
  for (const retry of [QUICK, { forMs: 0 }])
    expect(await hubAt([first, copy], { retry }).tasks.list()).toMatchObject({ of: "copy" });
  expect(await hubAt([copy]).tasks.list()).toMatchObject({ of: "copy" });
});

test("a call that waits at a hub goes on at the one that has responded instead", async () => {
  const waiting = Promise.withResolvers<void>();
  const first = imitation(({ path }) => {
    if (path !== "task/next") return standby();
    waiting.resolve();
    return silent(); // as a machine that has died
  });
  const second = imitation(({ path }) => accepts(path === "task/next" ? { task: { title: "t" } } : {}));
  const hub = hubAt([first, second]);
  const next = hub.tasks.next({ node_id: "n", wait: 300 });
  await waiting.promise;
  await hub.nodes.heartbeat({ node_id: "n" });
  expect(await next).toMatchObject({ task: { title: "t" } });
  expect(second.calls.find(({ path }) => path === "task/next")?.key).toBe(first.calls[0]?.key ?? "none");
});

test.concurrent("a call that waits at a machine that has died goes on at another hub", async () => {
  await using first: Imitation = new Imitation(() => {
    first.isOff = true;
    return silent();
  });
  await using second = new Imitation(() => accepts({ task: { title: "t" } }));
  expect(await hubAt([first, second]).tasks.next({ node_id: "n", wait: 300 })).toMatchObject({
    task: { title: "t" },
  });
  expect(second.calls).toEqual(first.calls.map((call) => ({ ...call })));
});

test.concurrent("a machine that says nothing is left within seconds, without the call", async () => {
  const asked: string[] = [];
  using machine = Bun.listen({
    hostname: HOST,
    port: 0,
    socket: { data: (_, data) => void asked.push(data.toString("latin1")) },
  });
  await using second = new Imitation(() => accepts());
  const hub = hubAt([`http://${HOST}:${machine.port}`, second]);
  await hub.tasks.create(NEW_TASK);
  expect(second.paths).toEqual(["task/create"]);
  expect(asked.join("")).toStartWith("GET /healthz");
  expect(asked.join("")).not.toContain("x-matrix-secret");
});

test("a hub by TLS cannot send its callers to one without", () => {
  const hubs = new Hubs("https://a/, https://b");
  hubs.learn(["http://c", "https://d", "ftp://e", "no URL", 5, null]);
  expect(hubs.urls).toEqual(["https://a", "https://d", "https://b"]);
  expect(hubs.leave("https://a", new Set(["https://a"]), "http://c")).toBe("https://d");
  expect(hubs.leave("https://d", new Set(["https://a", "https://d"]), "https://e")).toBe("https://e");
  expect(hubs.leave("https://e", new Set(hubs.urls))).toBeNull();
  expect(() => new Hubs("https://a,")).toThrow(TypeError);
});

test("the client knows by how much a promotion and a restore raise the epochs", () => {
  expect(EPOCHS_RAISED_BY).toBe(changeLog.EPOCHS_RAISED_BY);
});

const python = Bun.which("python3");
if (python === null) console.log("The Python client does not change hubs: there is no python3 on the path.");

describe.skipIf(python === null)("on Python", () => {
  /** What the code prints, which has `hub`. */
  async function printed(code: string, hubs: readonly (Imitation | string)[], forS = 5): Promise<string> {
    const url = hubs.map((hub) => (typeof hub === "string" ? hub : hub.url)).join(", ");
    const setUp = `import threading, luxhub
retry = luxhub.Retry(${forS}, 0.001, 0.005)
hub = luxhub.LuxHub(${JSON.stringify(url)}, "s", retry=retry, on_hubs=lambda urls: print(*urls))
`;
    const env = { PYTHONPATH: join(import.meta.dir, "../../src/client"), PYTHONDONTWRITEBYTECODE: "1" };
    const ended = await run(["-c", setUp + code], { command: [python ?? ""], env });
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    return ended.stdout.trimEnd();
  }

  test.each(TURNED_AWAY)("when the first hub %s, all calls go to the second", async (_, reply) => {
    const [first, second] = [imitation(reply), imitation(() => accepts())];
    const create = "hub.tasks.create('t', 'd'); hub.tasks.create('t', 'd'); print(hub.url)";
    expect(await printed(create, [first, second])).toBe(`${second.url} ${first.url}\n${second.url}`);
    expect([first.paths, second.paths]).toEqual([["task/create"], ["task/create", "task/create"]]);
    expect(second.calls.slice(0, 1)).toEqual(first.calls);
  });

  test("what must not be sent twice goes on only if nobody has taken it", async () => {
    const first = imitation(() => foreign(502));
    const second = imitation(() => standby(third.url));
    const third = imitation(() => accepts());
    const add = "try: hub.keys.add('k')\nexcept luxhub.LuxHubError as error: print(error.status)";
    expect(await printed(add, [first, second])).toBe("502");
    await first.refuseConnections();
    for (const forS of [0, 5])
      expect(await printed("hub.keys.add('k')", [first, second], forS)).toBe(
        `${third.url} ${first.url} ${second.url}`,
      );
    expect(third.paths).toEqual(["key/add", "key/add"]);
  });

  test("heartbeats name the hubs; a copy's read counts only while no other hub responds", async () => {
    const copy = imitation(() => ofCopy(accepts({ of: "copy" })));
    const first: Imitation = imitation(({ path }) =>
      accepts(path === "node/heartbeat" ? { hubs: [first.url, copy.url] } : { of: "first" }),
    );
    const read = "print(hub.tasks.list()['of'])";
    const known = await printed("hub.nodes.heartbeat('n')", [first]);
    expect(known).toBe(`${first.url} ${copy.url}`);
    expect(await printed(read, [copy, first])).toBe(`${first.url} ${copy.url}\nfirst`);
    await first.refuseConnections();
    expect(await printed(read, [first, copy])).toBe("copy");
    expect(await printed(read, [copy, first])).toBe("copy");
    copy.reply = () => ofCopy(refusal(404, "task_not_found"));
    const refused = "try: hub.tasks.list()\nexcept luxhub.LuxHubError as error: print(error.code)";
    expect(await printed(refused, [copy, first])).toBe("task_not_found");
  });

  test("a call that waits at a hub goes on at the one that has responded instead", async () => {
    const waiting = Promise.withResolvers<void>();
    const first = imitation(async ({ path }) => {
      if (path === "task/next") {
        waiting.resolve();
        return silent();
      }
      await waiting.promise;
      return standby();
    });
    const second = imitation(({ path }) => accepts(path === "task/next" ? { task: { title: "t" } } : {}));
    const wait = `waits = threading.Thread(target=lambda: print(hub.tasks.next("n", wait=300)["task"]))
waits.start()
hub.nodes.heartbeat("n")
waits.join()`;
    expect(await printed(wait, [first, second])).toBe(`${second.url} ${first.url}\n{'title': 't'}`);
  });

  test.concurrent("a call that waits at a machine that has died goes on at another hub", async () => {
    await using first: Imitation = new Imitation(() => {
      first.isOff = true;
      return silent();
    });
    await using second = new Imitation(() => accepts({ task: { title: "t" } }));
    const next = await printed('print(hub.tasks.next("n", wait=300)["task"])', [first, second]);
    expect(next).toBe(`${second.url} ${first.url}\n{'title': 't'}`);
  });

  test.concurrent("a machine that says nothing is left within seconds", async () => {
    using machine = Bun.listen({ hostname: HOST, port: 0, socket: { data: () => {} } });
    await using second = new Imitation(() => accepts());
    await printed("hub.tasks.create('t', 'd')", [`http://${HOST}:${machine.port}`, second]);
    expect(second.paths).toEqual(["task/create"]);
  });

  test("a hub by TLS cannot send its callers to one without", async () => {
    const code = `
hubs = luxhub._Hubs("https://a/, https://b")
hubs.learn(["http://c", "https://d", "ftp://e", "http://[", 5, None])
print(*hubs.urls)
hubs.leave("https://a", {"https://a"}, "http://c")
print(hubs.current, hubs.leave(hubs.current, set(hubs.urls)))`;
    expect(await printed(code, ["http://a"])).toBe("https://a https://d https://b\nhttps://d False");
  });
});
