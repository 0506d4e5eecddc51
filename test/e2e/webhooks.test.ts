/**
 * Webhooks of the real program: its receiver answers 500 every third time, is killed in the middle, and hubs are killed;
 * it misses nothing, and tells repeats by webhook-id. And the receivers of docs/examples. `bun run torture --only webhooks`
 * is the long form.
 */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { runWebhooks } from "../../tools/torture/webhooks.ts";
import { list, record } from "../api/scene.ts";
import { PROJECT } from "../support/executable.ts";
import { POSTGRES_PROGRAMS } from "../support/postgres.ts";
import { type Received, Receiver, idOf } from "../support/receiver.ts";
import { ADMIN_KEY, Hub, Program, SECRET, TempDir, run, until } from "./program.ts";

type Verify = (secret: string, headers: Headers, body: string) => Promise<string>;
const example: string = join(PROJECT, "docs/examples/verify-webhook.mjs");
const { verifyWebhook } = (await import(example)) as { readonly verifyWebhook: Verify }; // as its comment declares it

function titleOf({ body: { data } }: Received): string {
  const event = (data ?? {}) as { readonly data?: { readonly title?: unknown } }; // of the messages of this test
  return String(event.data?.title);
}

describe("webhooks", () => {
  const host = "127.0.0.1";
  const args = ["--webhook-allow", `${host}/32`];

  async function create(hub: Hub, titles: readonly string[]): Promise<void> {
    for (const title of titles) {
      const { status } = await hub.post("/task/create", { title, description: "d" });
      expect(status).toBe(200);
    }
  }

  test("a receiver that fails and is killed, and hubs that are killed, miss nothing", async () => {
    using dir = new TempDir();
    await using receiver = new Receiver(host);
    const data = dir.join("data");
    const titles = Array.from({ length: 9 }, (_, n) => `t${n}`);
    const hold = Promise.withResolvers<Response>();
    {
      await using hub = await Hub.start({ data, args });
      const url = `http://${host}:${receiver.port}/hook`;
      const put = await hub.admin("/webhook/put", { name: "ci", url, kinds: ["task.created"] });
      expect(put.status).toBe(200);
      // Every third request fails; the fifth is not answered before the hub is killed.
      receiver.answer = (_, n) =>
        n === 5 ? hold.promise : new Response(null, { status: n % 3 === 0 ? 500 : 200 });
      await create(hub, titles.slice(0, 6));
      await receiver.until(({ length }) => length === 5);
      hub.program.child.kill("SIGKILL");
      await hub.program.ended;
    }
    hold.resolve(new Response());
    await using hub = await Hub.start({ data, args });
    await receiver.until(({ length }) => length >= 7);
    await receiver.kill();
    await create(hub, titles.slice(6));
    receiver.restart();
    const all = await receiver.until((received) => received.some((one) => titleOf(one) === "t8"));
    const byId = new Map(all.map((one) => [idOf(one), titleOf(one)]));
    expect([...byId.values()]).toEqual(titles);
    expect(all.length).toBeGreaterThan(titles.length);
    expect(all[4] && idOf(all[4])).toBe(all[5] ? idOf(all[5]) : "none");
    await until(async () => {
      const headers = { "X-Admin-Key": ADMIN_KEY };
      const [webhook] = list(record((await hub.get("/webhook/list", { headers })).body), "webhooks");
      return webhook?.["attempts"] === 0 && webhook["last_error"] === null;
    });
  });

  test("the drain ends a delivery that is under way, and the next start sends it again", async () => {
    using dir = new TempDir();
    await using receiver = new Receiver(host);
    const data = dir.join("data");
    {
      await using hub = await Hub.start({ data, args });
      await hub.admin("/webhook/put", { name: "ci", url: `http://${host}:${receiver.port}/` });
      receiver.answer = () => new Promise(() => {});
      await create(hub, ["a"]);
      await receiver.until(({ length }) => length === 1);
      expect(await hub.stop()).toEqual({ code: 0 });
    }
    receiver.answer = () => new Response();
    await using _hub = await Hub.start({ data, args });
    const [first, second] = await receiver.until(({ length }) => length >= 2);
    expect(second && idOf(second)).toBe(first && idOf(first));
  });

  test("the command line puts, tests, lists, resumes and deletes", async () => {
    using dir = new TempDir();
    await using receiver = new Receiver(host);
    const data = dir.join("data");
    await using hub = await Hub.start({ data, args });
    const env = {
      LUXHUB_URL: `http://127.0.0.1:${hub.port}`,
      LUXHUB_SECRET: SECRET,
      LUXHUB_ADMIN_KEY: ADMIN_KEY,
      TOKEN: `whsec_${Buffer.alloc(32, 5).toString("base64")}`,
    };
    const luxhub = async (...words: readonly string[]) => run(["webhook", ...words], { env });
    const url = `http://${host}:${receiver.port}/hook`;
    const made = await luxhub("put", "ci", url, "--kind", "task.completed", "--kind", "task.failed");
    expect(made).toEqual({ code: 0, stderr: "", stdout: expect.stringMatching(/^whsec_\S+\n$/) });
    const tested = await luxhub("test", "ci");
    expect(tested).toEqual({
      code: 0,
      stderr: "",
      stdout: expect.stringMatching(/^ci {2}delivered {2}HTTP 204/),
    });
    const [one] = receiver.received;
    const verified = verifyWebhook(made.stdout.trim(), one?.headers ?? new Headers(), one?.text ?? "");
    expect(await verified).toBe(one ? idOf(one) : "");
    expect((await luxhub("put", "ci", url, "--secret-env", "TOKEN")).stdout).toBe("ci  saved\n");
    expect((await luxhub("put", "ci", url, "--secret-env", "NO_SUCH")).code).toBe(2);
    const listed = (await luxhub("list")).stdout;
    expect(listed).toMatch(/^ci +active +\d+ .*http:/m);
    expect(listed).not.toContain("whsec_");
    expect((await luxhub("resume", "ci", "--after", "1")).stdout).toBe("ci  resumed after the event 1\n");
    await receiver.kill();
    const failed = await luxhub("test", "ci");
    expect([failed.code, failed.stdout]).toEqual([1, expect.stringContaining("connection refused")]);
    expect((await luxhub("delete", "ci")).stdout).toBe("ci  deleted\n");
    expect((await luxhub("test", "ci")).code).toBe(3);
  });

  const python = Bun.which("python3");
  test.skipIf(python === null)("the receiver of the examples takes what is signed, once", async () => {
    using dir = new TempDir();
    const data = dir.join("data");
    const secret = `whsec_${Buffer.alloc(32, 5).toString("base64")}`;
    const script = join(PROJECT, "docs/examples/webhook-receiver.py");
    await using receiver = new Program([script, "0"], {
      command: [python ?? ""],
      env: { LUXHUB_WEBHOOK_SECRET: secret },
    });
    const [, port] = await receiver.printed(/port (\d+)\n/);
    await using hub = await Hub.start({ data, args });
    const put = (name: string, fields: object) =>
      hub.admin("/webhook/put", { name, url: `http://${host}:${port}/`, ...fields });
    await put("good", { secret, kinds: ["task.created"] });
    await create(hub, ["a", "b"]);
    await receiver.printed(/task\.created .*"b"/);
    const answer = (await hub.admin("/webhook/test", { name: "good" })).body;
    expect(answer).toMatchObject({ delivered: true, status: 204 });
    const bad = await put("bad", {});
    expect(bad.status).toBe(200);
    expect((await hub.admin("/webhook/test", { name: "bad" })).body).toMatchObject({
      delivered: false,
      status: 400,
    });
    expect(receiver.stdout.match(/^task\.created/gm)).toHaveLength(2);
  });
});

const missing = POSTGRES_PROGRAMS === null;
const why = missing ? " (skipped: no address but loopback, or no PostgreSQL of our own)" : "";
test.skipIf(missing)(`two hubs that are killed on postgresql send each event, in order${why}`, async () => {
  const seed = Number(process.env["E2E_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
  console.log(`seed ${seed}`);
  const report = await runWebhooks(4, seed, true, console.log);
  expect(report.words).toEqual([]);
  expect(report.receiversKilled).toBeGreaterThan(0);
  expect(report.events).toBeGreaterThan(4);
});

test("the function of the examples refuses what is forged, altered or old", async () => {
  const secret = `whsec_${Buffer.alloc(24, 9).toString("base64")}`;
  const now = Math.floor(Date.now() / 1_000);
  const signed = (id: string, at: number, body: string, by = secret): Headers => {
    const key = Buffer.from(by.slice(6), "base64");
    const mac = new Bun.CryptoHasher("sha256", key).update(`${id}.${at}.${body}`).digest("base64");
    return new Headers({
      "webhook-id": id,
      "webhook-timestamp": String(at),
      "webhook-signature": `v1a,none v1,${mac}`,
    });
  };
  expect(await verifyWebhook(secret, signed("msg_1", now, "{}"), "{}")).toBe("msg_1");
  const other = `whsec_${Buffer.alloc(24, 8).toString("base64")}`;
  const wrong: readonly (readonly [Headers, string])[] = [
    [signed("msg_1", now, "{}", other), "{}"],
    [signed("msg_1", now, "{}"), "{ }"],
    [signed("msg_1", now - 3_600, "{}"), "{}"],
    [new Headers({ "webhook-id": "msg_1" }), "{}"],
  ];
  for (const [headers, body] of wrong)
    expect(verifyWebhook(secret, headers, body)).rejects.toThrow(/signature is wrong|too old/);
});
