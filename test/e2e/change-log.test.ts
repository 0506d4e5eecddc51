/** The change log of the real program: commands that write beside a hub write into it too. */
import { expect, test } from "bun:test";
import { Follower } from "../../tools/torture/follower.ts";
import { Hub, TempDir, run } from "./program.ts";

test("what commands write beside a hub is in its log: after each of them a copy has the same rows", async () => {
  using dir = new TempDir();
  const data = dir.join("data");
  await using hub = await Hub.start({ data });
  const follower = await Follower.of(hub, data, dir.join("copy.db"));
  await hub.register("worker-1");
  const commands = [
    ["keys", "add", "ci", "--node", "worker-1"],
    ["keys", "pin", "ci", "B"],
    ["keys", "expire", "ci", "30d"],
    ["keys", "revoke", "ci"],
    ["keys", "list"],
    ["doctor"],
    ["backup", dir.join("hub.tar")],
  ];
  for (const [i, words] of commands.entries()) {
    const { code } = await run([...words, "--data", data]);
    expect([words, code, follower.differences()]).toEqual([words, 0, []]);
    await hub.register(`after-${i}`); // the hub goes on from the command's entry
  }
  expect(follower.differences()).toEqual([]);
  follower.close();
});
