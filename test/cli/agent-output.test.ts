/** The reader of an agent's output by itself; test/e2e/agent.test.ts has it in a worker. */
import { expect, test } from "bun:test";
import { AgentOutput, type Place, type Reads } from "../../src/cli/agent-output.ts";

function at(path: string, more: Partial<Place> = {}): Place {
  return { where: {}, at: path.split(" "), take: "last", over: "run", ...more };
}

const READS: Reads = {
  session: at("id"),
  answer: at("text other", { where: { type: "say", "by.role": "agent" }, take: "join" }),
  input_tokens: at("n.in n.cached", { take: "sum" }),
  output_tokens: at("n.out", { over: "session" }),
  cost_usd: at("usd"),
};

type Found = { readonly output: AgentOutput; readonly sessions: string[]; readonly said: string };

function read(lines: readonly unknown[], chunk = 1_000_000, reads: Reads = READS): Found {
  const sessions: string[] = [];
  let said = "";
  const output = new AgentOutput(
    reads,
    (session) => sessions.push(session),
    (piece) => (said += piece),
  );
  const text = lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n");
  const bytes = new TextEncoder().encode(text);
  for (let i = 0; i < bytes.length; i += chunk) output.add(bytes.subarray(i, i + chunk));
  output.end();
  return { output, sessions, said };
}

const SAYS = { type: "say", by: { role: "agent" } };

test.each([1, 7, 1_000_000])("the same in pieces of %d bytes; the last line may lack its end", (chunk) => {
  const lines = [
    "warning: no JSON",
    '{"id": "broken"',
    { id: "s-1" },
    { ...SAYS, text: "thinking" },
    { type: "tool" },
    { ...SAYS, text: "Ü" },
    { ...SAYS, other: "nï 𝒳" },
    { n: { in: 5, cached: 2, out: 9 } },
    { ...SAYS, text: "" },
    { n: { in: 1, out: 12 }, usd: 0.1 + 0.2 },
  ];
  const { output, sessions } = read(lines, chunk);
  expect(sessions).toEqual(["s-1"]);
  expect(output.text("answer")).toBe("Ünï 𝒳");
  expect(output.usage({}, "m")).toEqual({ model: "m", input_tokens: 8, output_tokens: 12, cost_usd: 0.3 });
});

test("what the agent says: the pieces of a line together, each line by itself", () => {
  const lines = [
    { ...SAYS, text: "I " },
    { ...SAYS, text: "look." },
    { type: "tool" },
    { ...SAYS, text: "Done" },
  ];
  expect(read(lines).said).toBe("I look.\nDone");
  const say = at("message.content.0.text", { where: { type: "say" } });
  const blocks = ["one", "two"].map((text) => ({ type: "say", message: { content: [{ text }] } }));
  expect(read(blocks, 5, { ...READS, say }).said).toBe("one\ntwo\n");
});

test("a number of the session counts from where the last run ended; a smaller one has started again", () => {
  const { output } = read([{ n: { in: 1, out: 12 } }]);
  expect(output.usage({ output_tokens: 10, input_tokens: 100 }, "m")).toMatchObject({
    input_tokens: 1,
    output_tokens: 2,
  });
  expect(output.usage({ output_tokens: 13 }, "m")).toMatchObject({ output_tokens: 12 });
  expect(output.counters()).toEqual({ input_tokens: 1, output_tokens: 12 });
});

test("no usage without both numbers of tokens, and none that is no count", () => {
  expect(read([{ n: { in: 1 } }]).output.usage({}, "m")).toBeNull();
  expect(read([{ n: { in: -1, out: "2" } }]).output.usage({}, "m")).toBeNull();
  expect(read([]).output.usage({}, "m")).toBeNull();
});

test("a session that could be taken for a flag is none", () => {
  const { output, sessions } = read([{ id: "--dangerous" }, { id: "" }, { id: 7 }, { id: "a b" }]);
  expect([output.text("session"), sessions]).toEqual([null, []]);
});

test("a line that is too long is ignored, and the next one is read", () => {
  const { output } = read([{ id: "long", x: "y".repeat(9_000_000) }, { id: "next" }], 100_000);
  expect(output.text("session")).toBe("next");
});
