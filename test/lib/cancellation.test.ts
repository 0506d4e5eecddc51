// The source of cancellation of a waiting call: it aborts once, and calls who listens then.
import { expect, test } from "bun:test";
import { CancellationSource } from "../../src/lib/cancellation.ts";

test("it calls each listener once, also when one of them removes others", () => {
  const source = new CancellationSource();
  const called: string[] = [];
  const removed = () => called.push("removed");
  const second = () => called.push("second");
  source.addEventListener("abort", removed);
  source.addEventListener("abort", () => {
    called.push(`first, aborted: ${source.aborted}`);
    source.removeEventListener("abort", second);
  });
  source.addEventListener("abort", second);
  source.removeEventListener("abort", removed);
  source.removeEventListener("abort", removed);
  expect(source.aborted).toBe(false);
  source.abort();
  source.abort();
  expect(source.aborted).toBe(true);
  expect(called).toEqual(["first, aborted: true", "second"]);
});
