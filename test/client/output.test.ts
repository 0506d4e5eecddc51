/** The sender of a task's output: order, offsets, bounded memory, and a handler that never waits. */
import { describe, expect, test } from "bun:test";
import { HubUnreachable, LuxHubError } from "../../src/client/http.ts";
import { OutputSender } from "../../src/client/output.ts";
import { until } from "../e2e/program.ts";

const error = (status: number, code: string) => new LuxHubError({ status, code, detail: "no" });

/** A hub that keeps what it gets. */
class Receiver {
  text = "";
  readonly sizes: number[] = [];
  readonly offsets: number[] = [];
  fault: Error | null = null;
  /** Resolves when it may answer. */
  gate: Promise<void> = Promise.resolve();

  readonly append = async (offset: number, data: string): Promise<number> => {
    await this.gate;
    if (this.fault) throw this.fault;
    this.offsets.push(offset);
    this.sizes.push(Buffer.byteLength(data));
    expect(offset).toBe(Buffer.byteLength(this.text));
    this.text += data;
    return offset + Buffer.byteLength(data);
  };
}

function open(): { sender: OutputSender; hub: Receiver; abort: AbortController } {
  const [hub, abort] = [new Receiver(), new AbortController()];
  return { hub, abort, sender: new OutputSender(hub.append, abort.signal) };
}

describe("a sender", () => {
  test("sends small pieces together, in order, and at the end the rest", async () => {
    const { sender, hub } = open();
    for (let i = 0; i < 100; i++) sender.write(`line ${i} ✓\n`);
    expect(hub.sizes).toEqual([]);
    await sender.end();
    expect(hub.sizes).toHaveLength(1);
    expect(hub.text).toBe(Array.from({ length: 100 }, (_, i) => `line ${i} ✓\n`).join(""));
    sender.write("too late");
    await sender.end();
    expect(hub.text).not.toContain("too late");
  });

  test("sends after a second, and at once what has 16 KiB", async () => {
    const { sender, hub } = open();
    sender.write("a");
    await until(() => hub.text === "a");
    sender.write("b".repeat(20_000));
    await until(() => hub.text.length === 20_001);
    await sender.end();
  });

  test("cuts no character, whatever the size, and sends at most 64 KiB at once", async () => {
    const { sender, hub } = open();
    const text = "x𝄞é".repeat(9_000);
    sender.write(text);
    sender.write("\0\ud800");
    await sender.end();
    expect(hub.text).toBe(`${text}\ufffd\ufffd`);
    expect(Math.max(...hub.sizes)).toBeLessThanOrEqual(65_536);
  });

  test("holds 256 KiB for a hub that does not answer, and says what it dropped", async () => {
    const { sender, hub } = open();
    const gate = Promise.withResolvers<void>();
    hub.gate = gate.promise;
    for (let i = 0; i < 100_000; i++) sender.write(`${i} `.padStart(20));
    gate.resolve();
    await sender.end();
    const note = /\n\[(\d+) bytes of output were dropped: the hub was too slow\]\n/;
    const [whole = "", dropped] = note.exec(hub.text) ?? [];
    expect(hub.text.length - whole.length + Number(dropped)).toBe(2_000_000);
    expect(hub.text).toEndWith(`${99_999} `);
    expect(hub.text.length).toBeLessThan(400_000);
  });

  test("tries again while the hub is away, at the same offset", async () => {
    const { sender, hub } = open();
    hub.fault = new HubUnreachable("away");
    sender.write("one");
    const ended = sender.end();
    setTimeout(() => (hub.fault = error(503, "database_unavailable")), 20);
    setTimeout(() => (hub.fault = null), 60);
    await ended;
    expect(hub.text).toBe("one");
  });

  test.each([
    [409, "stale_lease"],
    [404, "not_found"],
    [429, "quota_exceeded"],
    [507, "insufficient_storage"],
  ])("gives up at its end when the hub refuses: %d %s", async (status, code) => {
    const { sender, hub } = open();
    hub.fault = error(status, code);
    sender.write("one");
    await sender.end();
    expect(hub.text).toBe("");
  });

  test("ends at once when nothing more may be sent", async () => {
    const { sender, hub, abort } = open();
    hub.fault = new HubUnreachable("away");
    sender.write("x".repeat(20_000));
    const ended = sender.end();
    abort.abort();
    await ended;
    expect(hub.text).toBe("");
  });
});
