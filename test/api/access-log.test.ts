/** The access log: the level of each line, the address that it shows, and the bounds on its size. */
import { expect, test } from "bun:test";
import { LOG_PATH_MAX_CHARS, LOG_WARNINGS_PER_SECOND } from "../../src/domain/limits.ts";
import { parseNetwork } from "../../src/lib/ip.ts";
import { type TestHub, startHub } from "../support/hub.ts";
import { until } from "../e2e/program.ts";

type Line = Readonly<Record<string, unknown>>;

function lines(hub: TestHub): Line[] {
  return hub.logged
    .join("")
    .split("\n")
    .filter(Boolean)
    .map((line): Line => JSON.parse(line));
}

const requests = (hub: TestHub): Line[] => lines(hub).filter(({ message }) => message === "request");

test("at debug each request is logged, with its caller's address; of a path at most 1 KiB", async () => {
  const trustProxy = [parseNetwork("127.0.0.1")].filter((one) => one !== null);
  await using hub = await startHub({ alone: "ownHead", trustProxy });
  await hub.get("/status");
  await hub.get("/status", { headers: { "X-Forwarded-For": "203.0.113.7, 2001:db8::7" } });
  await hub.get(`/${"p".repeat(3_000)}?secret=abc`);
  await hub.get(`/status?${"secret&".repeat(1_000)}secret=abc`);
  await until(() => requests(hub).length === 4);
  const [own, forwarded, long, query] = requests(hub);
  expect(own).toMatchObject({ level: "debug", path: "/api/v1/status", status: 200, from: "127.0.0.1" });
  expect(forwarded).toMatchObject({ from: "2001:db8::7" });
  for (const line of [long, query]) expect(String(line?.["path"])).toHaveLength(LOG_PATH_MAX_CHARS);
  expect(hub.logged.join("")).not.toContain("abc");
});

test("at info only 429 and 5xx are logged, as warnings, and few of them in a second", async () => {
  await using hub = await startHub({ alone: "wrongSecrets", logLevel: "info" });
  await hub.get("/status");
  await hub.get("/nope");
  const wrong = () => hub.get("/task/pull?node_id=x", { headers: { "X-Matrix-Secret": "wrong" } });
  for (let i = 0; i < 20 + 3 * LOG_WARNINGS_PER_SECOND; i++) await wrong();
  const counted = () => lines(hub).find(({ message }) => /more requests/.test(String(message)));
  await until(() => counted() !== undefined);
  expect(requests(hub).every(({ level, status }) => level === "warn" && status === 429)).toBeTrue();
  expect(requests(hub).length).toBeGreaterThanOrEqual(LOG_WARNINGS_PER_SECOND);
  const shown = () =>
    requests(hub).length + lines(hub).reduce((sum, { requests = 0 }) => sum + Number(requests), 0);
  await until(() => shown() === 1 + 3 * LOG_WARNINGS_PER_SECOND); // the 20th wrong one was the first 429
});

test("at error neither requests nor activity are logged", async () => {
  await using hub = await startHub({ alone: "wrongSecrets", logLevel: "error" });
  await hub.post("/node/register", { node_id: "n", name: "N" });
  for (let i = 0; i < 30; i++)
    await hub.get("/task/pull?node_id=n", { headers: { "X-Matrix-Secret": "wrong" } });
  await hub.close();
  expect(lines(hub)).toEqual([]);
});
