/**
 * JSON as strangers send it: what cannot be kept as it was sent is refused, what can be is given back the same, and no
 * name or depth of a value reaches anything but the fields that an endpoint reads.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Corpus, NODE, type Row, expectUnchanged } from "./corpus.ts";
import { SECRET, listOf, workedMs } from "./program.ts";

const BAD = ["400 invalid_request"];
const TAKEN = { get: ["200"], does: 1 };

/** A POST of these bytes (a string: UTF-8), as they are. */
function post(path: string, body: string | Uint8Array, lines = ""): Uint8Array {
  const bytes = Buffer.from(body);
  const head = `POST /api/v1${path} HTTP/1.1\r\nHost: hub\r\nX-Matrix-Secret: ${SECRET}\r\n${lines}`;
  return Buffer.concat([Buffer.from(`${head}Content-Length: ${bytes.length}\r\n\r\n`), bytes]);
}

/** A task/create whose body ends with these fields, written by hand. */
const task = (fields: string): Uint8Array =>
  post("/task/create", `{"title":"t","description":"d",${fields}}`);
const titled = (title: string): Uint8Array => post("/task/create", `{"title":${title},"description":"d"}`);
const reward = (number: string): Uint8Array => task(`"lux_reward":${number}`);
const nested = (open: string, close: string, levels: number): string =>
  `${open.repeat(levels)}1${close.repeat(levels)}`;
const DEEP = 150_000;
/** Two of the commas and the body's own bracket count too. */
const TAKEN_DEEP = 4_997;

const rows: Readonly<Record<string, readonly Row[]>> = {
  "what is no JSON object": [
    ..."|null|true|1|\"text\"|[]|[{}]|{|}|{}}|{} {}|{}x|{'title':'t'}|{title:\"t\"}|NaN|-Infinity|undefined"
      .split("|")
      .map((body) => ({ name: JSON.stringify(body), send: post("/task/create", body), get: BAD })),
    { name: "a comma at the end", send: task(`"priority":1,`), get: BAD },
    { name: "a comment", send: task(`/* none */ "priority":1`), get: BAD },
    { name: "a line break in a string", send: titled(`"a\nb"`), get: BAD },
    { name: "an escape that is none", send: titled(`"\\x41"`), get: BAD },
    { name: "half an escape", send: titled(`"\\u12"`), get: BAD },
    { name: "NUL after the end", send: post("/task/create", `{"title":"t","description":"d"}\0`), get: BAD },
    {
      name: "white space that JSON has not",
      send: post("/task/create", `\u00a0{"title":"t","description":"d"}`),
      get: BAD,
    },
    { name: "two objects", send: post("/task/create", `{"title":"t","description":"d"}\n{}`), get: BAD },
  ],
  "what is no text": [
    {
      name: "bytes that are no UTF-8",
      send: post("/task/create", Buffer.from(`{"title":"\xff","description":"d"}`, "latin1")),
      get: BAD,
    },
    {
      name: "a long form of a slash",
      send: post("/task/create", Buffer.from(`{"title":"\xc0\xaf","description":"d"}`, "latin1")),
      get: BAD,
    },
    {
      name: "a surrogate in UTF-8",
      send: post("/task/create", Buffer.from(`{"title":"\xed\xa0\x80","description":"d"}`, "latin1")),
      get: BAD,
    },
    {
      name: "UTF-16",
      send: post("/task/create", Buffer.from(`{"title":"t","description":"d"}`, "utf16le")),
      get: BAD,
    },
    {
      name: "a character cut off",
      send: post("/task/create", Buffer.from(`{"title":"\xf0\x9f","description":"d"}`, "latin1")),
      get: BAD,
    },
    { name: "half a surrogate pair", send: titled(`"\\ud83d"`), get: BAD },
    { name: "a pair the wrong way round", send: titled(`"\\udc00\\ud83d"`), get: BAD },
    { name: "NUL", send: titled(`"a\\u0000b"`), get: BAD },
    {
      name: "a byte order mark before the object",
      send: post("/task/create", `\ufeff{"title":"t","description":"d"}`),
      ...TAKEN,
    },
  ],
  "names that mean something to the engine": [
    {
      name: "__proto__ with a title",
      send: post("/task/create", `{"__proto__":{"title":"t","description":"d"}}`),
      get: BAD,
    },
    { name: "constructor.prototype", send: task(`"constructor":{"prototype":{"admin":true}}`), ...TAKEN },
    { name: "__proto__ as null", send: task(`"__proto__":null`), ...TAKEN },
    {
      name: "toString and hasOwnProperty",
      send: task(`"toString":1,"hasOwnProperty":1,"valueOf":null,"then":1`),
      ...TAKEN,
    },
    {
      name: "a result that inherits",
      send: post(
        "/task/complete",
        `{"task_id":"x","node_id":"${NODE}","result":{"__proto__":{"problem":"p","improvement":"i","lesson":"l"}}}`,
      ),
      get: BAD,
    },
    {
      name: "length in the place of a list",
      send: post("/task/batch-assign", `{"assignments":{"length":1,"0":{}}}`),
      get: BAD,
    },
    {
      name: "__proto__ with an Idempotency-Key",
      send: post(
        "/task/create",
        `{"title":"t","description":"d","__proto__":{"a":1}}`,
        "Idempotency-Key: proto\r\n",
      ),
      ...TAKEN,
    },
  ],
  "the same name twice: the last counts": [
    { name: "a good one last", send: task(`"priority":"none","priority":2`), ...TAKEN },
    { name: "a bad one last", send: task(`"priority":2,"priority":"none"`), get: BAD },
    { name: "in two spellings", send: task(`"priority":2,"\\u0070riority":"none"`), get: BAD },
  ],
  numbers: [
    ...[
      "1e999",
      "-1e999",
      "-1",
      "1000000001",
      "0.0000001",
      "1e-7",
      "5e-324",
      "NaN",
      "Infinity",
      "0x10",
      "01",
      "+1",
      ".5",
      "1.",
      "1e",
      '"1"',
      "true",
      "[1]",
      "123456789012345678901234567890",
    ].map((number) => ({ name: `a reward of ${number}`, send: reward(number), get: BAD })),
    ...[
      "null",
      "0",
      "-0",
      "0.000001",
      "1000000000",
      "1e9",
      "1E0",
      "0.1e1",
      `0.${"0".repeat(400)}`,
      `1${"0".repeat(400)}e-400`,
    ].map((number) => ({
      name: `a reward of ${number.slice(0, 20)}`,
      send: reward(number),
      ...TAKEN,
    })),
    ...["1.5", "-1", "3", "1e999", "0.0", "9007199254740993"].map((number) => ({
      name: `a priority of ${number}`,
      send: task(`"priority":${number}`),
      ...(number === "0.0" ? TAKEN : { get: BAD }),
    })),
    ...["0", "-1", "1.5", "65536", "1e999"].map((number) => ({
      name: `a port of ${number}`,
      send: post("/node/register", `{"node_id":"n","name":"n","port":${number}}`),
      ...(number === "0" ? { get: ["200"], does: 2 } : { get: BAD }),
    })),
    ...["-1", "301", "1e999", '"5"'].map((number) => ({
      name: `a timeout of ${number}`,
      send: post("/message/receive", `{"node_id":"${NODE}","blocking":true,"timeout":${number}}`),
      get: BAD,
    })),
  ],
  "depth and size": [
    { name: `${DEEP} lists in a field nobody reads`, send: task(`"x":${nested("[", "]", DEEP)}`), get: BAD },
    { name: "as many lists as there may be", send: task(`"x":${nested("[", "]", TAKEN_DEEP)}`), ...TAKEN },
    {
      name: `${DEEP} objects in a field nobody reads`,
      send: task(`"x":${nested('{"a":', "}", DEEP)}`),
      get: BAD,
    },
    { name: "half a million numbers", send: task(`"x":[${"0,".repeat(500_000)}0]`), get: BAD },
    { name: "commas and brackets in a text", send: task(`"x":"\\"${",[{".repeat(100_000)}"`), ...TAKEN },
    { name: "depth in a field that is read", send: task(`"priority":${nested("[", "]", DEEP)}`), get: BAD },
    {
      name: "depth in a list that is read",
      send: post("/node/register", `{"node_id":"n","name":"n","capabilities":${nested("[", "]", DEEP)}}`),
      get: BAD,
    },
    {
      name: "depth in assignments",
      send: post("/task/batch-assign", `{"assignments":[${nested('{"task_id":', "}", DEEP / 2)}]}`),
      get: BAD,
    },
    {
      name: "depth with an Idempotency-Key",
      send: post(
        "/task/create",
        `{"title":"t","description":"d","x":${nested("[", "]", DEEP)}}`,
        "Idempotency-Key: deep\r\n",
      ),
      get: BAD,
    },
    {
      name: "depth that is never closed",
      send: post("/task/create", `{"x":${"[".repeat(900_000)}`),
      get: BAD,
    },
    {
      name: "100,000 names",
      send: task(Array.from({ length: 100_000 }, (_, i) => `"${i}":0`).join(",")),
      get: BAD,
    },
    {
      name: "80,000 names with an Idempotency-Key",
      send: post(
        "/task/create",
        `{"title":"t","description":"d",${Array.from({ length: 80_000 }, (_, i) => `"n${i}":0`).join(",")}}`,
        "Idempotency-Key: wide\r\n",
      ),
      get: BAD,
    },
    {
      name: "names that are one another's hash",
      send: task(Array.from({ length: 60_000 }, () => `"Aa":0,"BB":0`).join(",")),
      get: BAD,
    },
    {
      name: "as many names as there may be, with an Idempotency-Key",
      send: post(
        "/task/create",
        `{"title":"t","description":"d",${Array.from({ length: 4_998 }, (_, i) => `"n${i}":0`).join(",")}}`,
        "Idempotency-Key: full\r\n",
      ),
      ...TAKEN,
    },
    {
      name: "500,000 assignments",
      send: post("/task/batch-assign", `{"assignments":[${"0,".repeat(500_000)}0]}`),
      get: BAD,
    },
    {
      name: "500,000 capabilities",
      send: post("/node/register", `{"node_id":"n","name":"n","capabilities":[${"1,".repeat(500_000)}1]}`),
      get: BAD,
    },
    {
      name: "capabilities of 500,000 commas",
      send: post("/node/register", `{"node_id":"n","name":"n","capabilities":"${",".repeat(500_000)}"}`),
      get: BAD,
    },
    { name: "a string of 1,000,000 characters", send: titled(`"${"a".repeat(1_000_000)}"`), get: BAD },
    { name: "a string of escapes only", send: titled(`"${"\\u0061".repeat(150_000)}"`), get: BAD },
    { name: "a number of 1,000,000 digits", send: reward("1".repeat(1_000_000)), get: BAD },
    { name: "white space of 1,000,000 bytes", send: task(`${" ".repeat(1_000_000)}"priority":1`), ...TAKEN },
    {
      name: "a node_id made to be slow to match",
      send: post("/node/register", `{"node_id":"${"a".repeat(900_000)}!","name":"n"}`),
      get: BAD,
    },
    {
      name: "one byte over the limit",
      send: post("/task/create", " ".repeat(2 ** 20 + 1)),
      get: ["413 body_too_large", "closed"],
    },
  ],
};

let corpus: Corpus;
let workMax = 0;
beforeAll(async () => {
  corpus = await Corpus.open();
  workMax = await corpus.workMax();
});
afterAll(() => corpus[Symbol.asyncDispose]());

for (const [title, table] of Object.entries(rows)) {
  describe(title, () => {
    for (const row of table)
      test(row.name, async () => {
        const before = workedMs(corpus.hub.pid);
        await corpus.run(row);
        expect(workedMs(corpus.hub.pid) - before).toBeLessThan(workMax);
      });
  });
}

describe("accepted text is returned unchanged", () => {
  const texts: readonly string[] = [
    "\ufeffbyte order mark",
    "\u2028\u2029 line ends of JavaScript",
    "\u202eright to left\u202c",
    "</script><script>alert(1)</script>",
    "'; DROP TABLE tasks; --",
    "\u0001\u001b[2J\u007f\u0085\u009b",
    "a\u0301\u0323 \u1e69 not normalised",
    "\u{10ffff}\ufffe\uffff",
    "%s %n ${title} {{title}}",
    "😀".repeat(250),
  ];
  for (const title of texts)
    test(JSON.stringify(title.slice(0, 40)), async () => {
      const { body } = await corpus.hub.post("/task/create", { title, description: title });
      const { tasks } = (await corpus.hub.get("/task/list?per_page=1")).body;
      expect(listOf(tasks)[0]).toMatchObject({ task_id: String(body["task_id"]), title, description: title });
    });

  test("-0 is 0", async () => {
    await corpus.hub.call("POST", "/task/create", {
      body: '{"title":"t","description":"d","lux_reward":-0}',
    });
    const response = await fetch(`${corpus.hub.api}/task/list?per_page=1`);
    expect(await response.text()).toContain('"lux_reward":0,');
  });
});

test("no name of a request has become one of every object", async () => {
  const { body } = await corpus.hub.get("/status");
  expect(Object.keys(body)).not.toContain("admin");
  const refused = await corpus.hub.post("/task/delete", { task_id: "x" });
  expect([refused.status, refused.body["error"]]).toEqual([403, "admin_key_required"]);
});

test("afterwards the hub is healthy", () => corpus.isWell());

test("refused requests change nothing", () => expectUnchanged(Object.values(rows).flat()));
