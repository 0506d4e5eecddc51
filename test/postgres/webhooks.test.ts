/**
 * Webhooks with two real hubs on one database: only the leader delivers, and when it is killed the other one goes on.
 * Without PostgreSQL this is skipped.
 */
import { expect, test } from "bun:test";
import { Hub, TempDir } from "../e2e/program.ts";
import { POSTGRES_MISSING, newSchema, sharedServer } from "../support/postgres.ts";
import { Receiver, idOf } from "../support/receiver.ts";

const missing = POSTGRES_MISSING;
const suffix = missing === null ? "" : ` (skipped: ${missing})`;

test.skipIf(missing !== null)(`the leader delivers, and another hub when it is killed${suffix}`, async () => {
  using dir = new TempDir();
  const schema = await newSchema(await sharedServer());
  await using cleanUp = new AsyncDisposableStack();
  cleanUp.defer(() => schema.remove());
  await using receiver = new Receiver();
  const start = (name: string): Promise<Hub> =>
    Hub.start({
      data: dir.join(name),
      args: ["--webhook-allow", "127.0.0.1"],
      env: { LUXHUB_DATABASE: schema.url },
    });
  await using first = await start("first");
  await using second = await start("second");
  const url = `http://127.0.0.1:${receiver.port}/`;
  const kinds = ["task.created"];
  // At the hub that does not lead: the leader hears of it.
  expect((await second.admin("/webhook/put", { name: "ci", url, kinds })).status).toBe(200);
  const create = async (hub: Hub, titles: readonly string[]): Promise<void> => {
    for (const title of titles)
      expect((await hub.post("/task/create", { title, description: "d" })).status).toBe(200);
  };
  await create(first, ["a"]);
  await create(second, ["b"]);
  const before = await receiver.until(({ length }) => length === 2);
  expect(new Set(before.map(idOf)).size).toBe(2);
  const hold = Promise.withResolvers<Response>();
  receiver.answer = () => hold.promise;
  await create(second, ["c"]);
  await receiver.until(({ length }) => length === 3);
  first.program.child.kill("SIGKILL");
  await first.program.ended;
  receiver.answer = () => new Response();
  hold.resolve(new Response());
  await create(second, ["d"]);
  const all = await receiver.until(({ length }) => length === 5);
  const titles = all.map(({ body }) => JSON.stringify(body).match(/"title":"(.)"/)?.[1]);
  expect(titles).toEqual(["a", "b", "c", "c", "d"]);
  expect(all[3] && idOf(all[3])).toBe(all[2] && idOf(all[2]));
});
