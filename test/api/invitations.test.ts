/** Invitations: invitation/* and join. */
import { describe, expect, test } from "bun:test";
import {
  INVITATIONS_MAX,
  INVITATION_KEPT_MS,
  INVITATION_MAX_SECONDS,
  INVITATION_MIN_SECONDS,
  WRONG_SECRETS_PER_MINUTE,
} from "../../src/domain/limits.ts";
import { DAY_MS, MINUTE_MS } from "../../src/lib/clock.ts";
import { hashSecret } from "../../src/service/keys.ts";
import { type Answer, SECRET, type TestHub, startHub, onlyOnce } from "../support/hub.ts";
import { as } from "./key-commands.ts";
import { ok, list, record, refused } from "./scene.ts";

const once = onlyOnce(import.meta.url);
const HOUR_MS = 3_600_000;
const OPEN = { headers: { "X-Matrix-Secret": null } };

/** The token of a line. */
function tokenIn(made: Record<string, unknown>): string {
  const [, token = ""] = /#join\.([\w-]{32})(?:\.|$)/.exec(String(made["line"])) ?? [];
  return token;
}

async function invite(hub: TestHub, nodeId: string, more: object = {}): Promise<string> {
  return tokenIn(await ok(hub.admin("/invitation/create", { node_id: nodeId, ...more })));
}

const join = (hub: TestHub, token: string, secret: string): Promise<Answer> =>
  hub.post("/join", { token, key_hash: hashSecret(secret) }, OPEN);

const invitations = async (hub: TestHub) =>
  list(
    await ok(hub.get("/invitation/list", { headers: { "X-Admin-Key": "test-admin-key" } })),
    "invitations",
  ).map(record);

describe("an invitation", () => {
  test("becomes a key that is bound to its node, once; a repeat with the same secret returns the same", async () => {
    await using hub = await startHub();
    const token = await invite(hub, "w2");
    const joined = await ok(await join(hub, token, "own-secret-of-w2"));
    expect(joined["node_id"]).toBe("w2");
    expect(joined["key"]).toMatch(/^w2-[0-9a-f]{8}$/);
    expect(await ok(join(hub, token, "own-secret-of-w2"))).toEqual(joined);
    const again = await join(hub, token, "another");
    expect(again).toMatchObject({ status: 409, body: { error: "invitation_used" } });
    expect(again.body["detail"]).toContain(String(joined["key"]));

    await ok(hub.post("/node/register", { node_id: "w2", name: "W" }, as("own-secret-of-w2")));
    await refused(
      hub.post("/node/register", { node_id: "w3", name: "W" }, as("own-secret-of-w2")),
      403,
      "key_bound_to_other_node",
    );
    expect(await hub.post("/node/register", { node_id: "w2", name: "W" }, as("another"))).toMatchObject({
      status: 401,
    });
    // The token itself opens nothing.
    expect((await hub.post("/node/register", { node_id: "w2", name: "W" }, as(token))).status).toBe(401);
    expect(await invitations(hub)).toMatchObject([{ node_id: "w2", state: "used", key: joined["key"] }]);
    const events = list(await ok(hub.get("/events?kind=node.joined")), "events");
    expect(events).toMatchObject([{ node_id: "w2", data: { key: joined["key"] } }]);
  });

  test("makes no second key with the secret of another, and can still be used", async () => {
    await using hub = await startHub();
    const [first, second] = [await invite(hub, "w1"), await invite(hub, "w2")];
    await ok(join(hub, first, "one-secret"));
    for (const taken of ["one-secret", SECRET]) await refused(join(hub, second, taken), 409, "key_exists");
    await ok(join(hub, second, "another-secret"));
  });

  test("that two machines use at once makes one key", async () => {
    await using hub = await startHub();
    const token = await invite(hub, "w2");
    const answers = await Promise.all(["a", "b", "c", "d"].map((word) => join(hub, token, `secret-${word}`)));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409, 409]);
  });

  once.test("expires by the hub's clock, and its repeat says so until it is forgotten", async () => {
    await using hub = await startHub();
    const token = await invite(hub, "w2", { expires_in_s: INVITATION_MIN_SECONDS });
    hub.clock.pass(INVITATION_MIN_SECONDS * 1_000);
    await refused(join(hub, token, "s"), 409, "invitation_expired");
    expect(await invitations(hub)).toMatchObject([{ state: "expired", key: null }]);
    hub.clock.pass(INVITATION_KEPT_MS + HOUR_MS);
    await invite(hub, "w3"); // forgets those that ended long ago
    await refused(join(hub, token, "s"), 404, "invitation_not_found");
    expect(await invitations(hub)).toMatchObject([{ node_id: "w3" }]);
  });

  test("ends when it, or its node, is deleted; its key stays", async () => {
    await using hub = await startHub();
    await hub.addNodes(["w1", "w2"]);
    const [first, second] = [await invite(hub, "w1"), await invite(hub, "w2")];
    const used = await invite(hub, "w2");
    await ok(join(hub, used, "secret-of-w2"));
    const [{ invitation_id }] = (await invitations(hub)) as [Record<string, unknown>];
    await ok(hub.admin("/invitation/delete", { invitation_id }));
    await refused(hub.admin("/invitation/delete", { invitation_id }), 404, "invitation_not_found");
    await refused(join(hub, first, "s"), 404, "invitation_not_found");
    await ok(hub.admin("/node/delete", { node_id: "w2" }));
    await refused(join(hub, second, "s"), 404, "invitation_not_found");
    expect((await hub.get("/questions", as("secret-of-w2"))).status).toBe(200);
  });

  once.test("ends when its node has been offline for --retain-nodes", async () => {
    await using hub = await startHub({ retainNodesMs: DAY_MS });
    await hub.addNodes(["w1"]);
    hub.clock.pass(DAY_MS / 2);
    await hub.sweep(); // it is offline
    const token = await invite(hub, "w1", { expires_in_s: INVITATION_MAX_SECONDS });
    hub.clock.pass(DAY_MS / 2 + MINUTE_MS);
    await hub.sweep();
    expect(await ok(hub.get("/node/list"))).toMatchObject({ nodes: [] });
    await refused(join(hub, token, "s"), 404, "invitation_not_found");
  });

  once.test("needs the administrator key; a bound one invites for its node only", async () => {
    await using hub = await startHub();
    await refused(hub.post("/invitation/create", { node_id: "w" }), 403, "admin_key_required");
    await refused(hub.get("/invitation/list"), 403, "admin_key_required");
    await ok(join(hub, await invite(hub, "w2"), "secret-of-w2"));
    const bound = { headers: { "X-Matrix-Secret": "secret-of-w2", "X-Admin-Key": "test-admin-key" } };
    await ok(hub.post("/invitation/create", { node_id: "w2" }, bound));
    await refused(hub.post("/invitation/create", { node_id: "w3" }, bound), 403, "key_bound_to_other_node");
    await refused(
      hub.post("/invitation/delete", { invitation_id: "x" }, bound),
      403,
      "key_bound_to_other_node",
    );
  });

  once.test("is in a line with a URL of the hub's, or the one that is named", async () => {
    await using hub = await startHub({ publicUrl: "https://hub.example.org" });
    const own = await ok(hub.admin("/invitation/create", { node_id: "w" }));
    expect(own).toMatchObject({ url: "https://hub.example.org", pin: null });
    expect(own["line"]).toMatch(/^https:\/\/hub\.example\.org\/#join\.[\w-]{32}$/);
    const named = await ok(hub.admin("/invitation/create", { node_id: "w", url: "http://10.0.0.7:19104/" }));
    expect(named).toMatchObject({ url: "http://10.0.0.7:19104", pin: null });
    const odd = await ok(hub.admin("/invitation/create", { node_id: "w", url: "http://h/\u001b/" }));
    expect(odd).toMatchObject({ url: "http://h/%1B" });
    for (const url of ["hub.example.org", "https://u:p@h", "https://h/?a=1", "ftp://h"])
      expect((await hub.admin("/invitation/create", { node_id: "w", url })).status).toBe(400);
  });

  once.test("must be of sane size", async () => {
    await using hub = await startHub();
    for (const expires_in_s of [INVITATION_MIN_SECONDS - 1, INVITATION_MAX_SECONDS + 1])
      expect((await hub.admin("/invitation/create", { node_id: "w", expires_in_s })).status).toBe(400);
    expect((await hub.admin("/invitation/create", { node_id: "list" })).status).toBe(400);
    const token = await invite(hub, "w");
    for (const key_hash of ["", "x".repeat(64), "AB".repeat(32), "a".repeat(63)])
      expect((await hub.post("/join", { token, key_hash }, OPEN)).status).toBe(400);
    await ok(join(hub, token, "s"));
  });

  once.test("is one of at most INVITATIONS_MAX, listed in pages", async () => {
    await using hub = await startHub();
    const made = Array.from({ length: INVITATIONS_MAX }, (_, i) =>
      hub.admin("/invitation/create", { node_id: `w${i}` }),
    );
    await Promise.all(made);
    await refused(hub.admin("/invitation/create", { node_id: "w" }), 409, "invitations_limit");
    const seen: unknown[] = [];
    for (let cursor: unknown = ""; cursor !== null;) {
      const page = await ok(
        hub.get(`/invitation/list?per_page=50&cursor=${cursor}`, {
          headers: { "X-Admin-Key": "test-admin-key" },
        }),
      );
      seen.push(...list(page, "invitations").map((one) => record(one)["invitation_id"]));
      cursor = page["next_cursor"];
    }
    expect(new Set(seen).size).toBe(INVITATIONS_MAX);
    expect(seen).toHaveLength(INVITATIONS_MAX);
    const [first] = seen;
    await ok(hub.admin("/invitation/delete", { invitation_id: first }));
    await ok(hub.admin("/invitation/create", { node_id: "w" }));
  });
});

once.test(
  "guesses of tokens count as wrong secrets of their address, and a right token is still taken",
  async () => {
    await using hub = await startHub({ alone: "wrongSecrets" });
    const token = await invite(hub, "w2");
    const statuses: number[] = [];
    for (let i = 0; i < WRONG_SECRETS_PER_MINUTE + 2; i++)
      statuses.push((await join(hub, `guess-${i}`.padEnd(32, "x"), "s")).status);
    expect(statuses.slice(0, WRONG_SECRETS_PER_MINUTE - 1)).toEqual(
      new Array(WRONG_SECRETS_PER_MINUTE - 1).fill(404),
    );
    expect(statuses.slice(WRONG_SECRETS_PER_MINUTE - 1)).toEqual([429, 429, 429]);
    await ok(join(hub, token, "right"));
    expect((await hub.get("/task/pull?node_id=x", as(SECRET))).status).toBe(404);
  },
);
