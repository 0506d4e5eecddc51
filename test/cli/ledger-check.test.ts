/** `luxhub lux verify`: every way of changing an export is found, in a ledger of 100,000 entries too. */
import { describe, expect, test } from "bun:test";
import { LedgerCheck } from "../../src/cli/ledger-check.ts";
import { EMPTY_LEDGER, GENESIS_HASH, TREASURY, heldAccount, toLux, transfer } from "../../src/domain/lux.ts";
import type { LedgerEntry, LedgerHead } from "../../src/domain/model.ts";
import { isoTime } from "../../src/lib/clock.ts";

const START = Date.UTC(2027, 0, 1);

/** The export of a ledger, a line for each entry. */
class Ledger {
  readonly lines: string[] = [];
  head: LedgerHead = EMPTY_LEDGER;
  #account = { nodeId: "n1", entries: 0, balanceMicro: 0n };

  pay(
    kind: LedgerEntry["kind"],
    amountMicro: number,
    to?: "treasury" | `held:${string}`,
    from = TREASURY,
  ): void {
    const seq = this.head.seq + 1;
    const what = { id: `e${seq}`, amountMicro, kind, taskId: `t${seq}`, at: START + seq };
    this.add(transfer(this.head, what, to ?? this.#account, from as "treasury"));
  }

  add(entry: ReturnType<typeof transfer>): void {
    if ("code" in entry) throw new Error(entry.detail);
    const { id, from, to, nodeId, amountMicro, kind, taskId, hash, seq } = entry;
    const line = { seq, id, node_id: nodeId, from, to, amount: toLux(amountMicro), kind, task_id: taskId };
    const chain = { at: isoTime(entry.at), prev_hash: this.head.hash ?? GENESIS_HASH, hash };
    this.lines.push(JSON.stringify({ ...line, ...chain }));
    if (nodeId !== null)
      this.#account = { nodeId, entries: entry.n ?? 0, balanceMicro: entry.balanceMicro ?? 0n };
    this.head = entry;
  }
}

function ledgerOf(entries: number): Ledger {
  const ledger = new Ledger();
  for (let i = 0; i < entries; i++)
    ledger.pay(i % 10 === 0 ? "signin" : "reward", 1_000_001 + (i % 7) * 250_000);
  return ledger;
}

function verify(lines: readonly string[], head: string | null = null) {
  const check = new LedgerCheck(head);
  for (const line of lines) check.take(line);
  return check.end();
}

const hashAt = (lines: readonly string[], index: number): string =>
  String((JSON.parse(lines[index] ?? "") as { hash: unknown }).hash);

describe("an export", () => {
  const { lines, head } = ledgerOf(40);

  test("is intact as it was written, with its head, an earlier one, and empty lines", () => {
    expect(verify(lines)).toMatchObject({ faults: [], more: 0 });
    expect(verify([...lines, ""], head.hash).faults).toEqual([]);
    const report = verify(lines, hashAt(lines, 9));
    expect(report).toMatchObject({ faults: [] });
    expect(report.summary).toBe(
      `40 entries, 68.75004 LUX paid, the noted hash is that of entry 10, head 40 ${head.hash}`,
    );
    expect(verify([]).faults).toEqual([]);
  });

  test("one changed character of any field of any entry is found", () => {
    const missed: string[] = [];
    for (const [at, line] of lines.entries())
      for (const [name, value] of Object.entries(JSON.parse(line) as Record<string, unknown>)) {
        const text = JSON.stringify(value);
        const last = text.match(/[\da-z](?=[^\da-z]*$)/i)?.index ?? 0;
        const other = text[last] === "1" ? "2" : "1";
        const changed = `"${name}":${text.slice(0, last)}${other}${text.slice(last + 1)}`;
        const tampered = line.replace(`"${name}":${text}`, changed);
        if (tampered === line) throw new Error(`nothing was changed in ${name}`);
        if (verify(lines.with(at, tampered)).faults.length === 0) missed.push(`${name} of line ${at + 1}`);
      }
    expect(missed).toEqual([]);
  });

  const HARM: readonly (readonly [string, (lines: readonly string[]) => readonly string[], RegExp])[] = [
    ["a line is missing", (all) => all.toSpliced(5, 1), /^line 6: entry 7 stands behind entry 5$/],
    ["the first line is missing", (all) => all.slice(1), /^line 1: entry 2 stands behind entry 0$/],
    [
      "two lines are swapped",
      (all) => all.with(3, all[4] ?? "").with(4, all[3] ?? ""),
      /^line 4: entry 5 stands/,
    ],
    [
      "a line is there twice",
      (all) => all.toSpliced(7, 0, all[7] ?? ""),
      /^line 9: entry 8 stands behind entry 8$/,
    ],
    [
      "a line of another ledger",
      (all) => [...all, ledgerOf(41).lines[40]?.replace("node:n1", "node:n2").replace('"n1"', '"n2"') ?? ""],
      /^line 41: entry 41 is not the one/,
    ],
    ["a line is no JSON", (all) => all.with(2, "{"), /^line 3: it is not JSON$/],
    [
      "a field is missing",
      (all) => all.with(2, (all[2] ?? "").replace(/"kind":"\w+",/, "")),
      /^line 3: it has no kind$/,
    ],
    [
      "a field too many",
      (all) => all.with(2, (all[2] ?? "").replace("{", '{"note":1,')),
      /^line 3: an entry has no "note"$/,
    ],
    [
      "hashes are removed in the middle",
      (all) => all.map((line, i) => (i < 20 ? line : withoutHash(line))),
      /^line 21: entry 21 has no hash, and an earlier/,
    ],
    [
      "hashes are removed at the beginning",
      (all) => all.map((line, i) => (i < 20 ? withoutHash(line) : line)),
      /^line 21: entry 21 is not the one that its hash/,
    ],
  ];
  for (const [name, harm, says] of HARM)
    test(`${name}`, () => expect(verify(harm(lines)).faults[0]).toMatch(says));

  test("what is missing at the end, and a ledger that was rewritten, is found with a noted hash", () => {
    const { hash } = head;
    expect(verify(lines.slice(0, -1)).faults).toEqual([]);
    expect(verify(lines.slice(0, -1), hash).faults).toEqual([
      expect.stringMatching(/^no entry has the hash/),
    ]);
    const rewritten = ledgerOf(39);
    rewritten.pay("reward", 7);
    expect(verify(rewritten.lines).faults).toEqual([]);
    expect(verify(rewritten.lines, hash).faults).toEqual([expect.stringMatching(/^no entry has the hash/)]);
  });
});

test("held rewards: paid or returned once; what was never held cannot be paid", () => {
  const ledger = ledgerOf(3);
  ledger.pay("hold", 5_000_000, heldAccount("t1"));
  ledger.pay("hold", 2_000_000, heldAccount("t2"));
  expect(verify(ledger.lines).summary).toContain("7 LUX held back");
  ledger.pay("reward", 5_000_000, undefined, "held:t1" as "treasury");
  ledger.pay("return", 2_000_000, TREASURY, "held:t2" as "treasury");
  expect(verify(ledger.lines)).toMatchObject({ faults: [] });
  expect(verify(ledger.lines).summary).not.toContain("held back");
  ledger.pay("reward", 5_000_000, undefined, "held:t1" as "treasury");
  expect(verify(ledger.lines).faults).toEqual(["held:t1 gives 5 LUX that it never had"]);
});

test("entries older than the chain are counted, and the chain begins behind them", () => {
  const older = ledgerOf(2).lines.map(withoutHash);
  const ledger = new Ledger();
  ledger.head = { seq: 2, hash: null };
  ledger.pay("reward", 1);
  ledger.pay("reward", 2);
  const report = verify([...older, ...ledger.lines]);
  expect(report).toMatchObject({ faults: [] });
  expect(report.summary).toContain("2 entries are older than the hash chain");
});

test("one changed digit, a missing, a moved and an added entry are found among 100,000", () => {
  const { lines, head } = ledgerOf(100_000);
  expect(verify(lines, head.hash).faults).toEqual([]);
  const digit = (line = ""): string =>
    line.replace(/"amount":(\d)/, (_, found: string) => `"amount":${(Number(found) + 1) % 10}`);
  const [last = "", moved = ""] = lines.slice(79_998);
  const harmed = [
    ...lines.slice(0, 19_999),
    digit(lines[19_999]),
    ...lines.slice(20_000, 39_999), // and not the next one
    ...lines.slice(40_000, 59_999),
    lines[59_998] ?? "", // once more
    ...lines.slice(59_999, 79_998),
    moved,
    last,
    ...lines.slice(80_000),
  ];
  const report = verify(harmed);
  expect(report.faults).toEqual([
    "line 20000: entry 20000 is not the one that its hash was made of",
    "line 40000: entry 40001 stands behind entry 39999",
    "line 59999: entry 59999 stands behind entry 59999",
    "line 79999: entry 80000 stands behind entry 79998",
    "line 80000: entry 79999 stands behind entry 80000",
  ]);
  expect(report.more).toBe(1); // the entry behind the two that were swapped
});

function withoutHash(line: string): string {
  return line.replace(/"prev_hash":"\w+","hash":"\w+"/, '"prev_hash":null,"hash":null');
}
