/** Durations and moments, as flags and settings give them. */
import { expect, test } from "bun:test";
import { durationMs, momentMs } from "../../src/lib/duration.ts";

test("a duration is a number with a unit", () => {
  const rows: readonly (readonly [text: string, ms: number | null])[] = [
    ["500ms", 500],
    ["10s", 10_000],
    ["1.5h", 5_400_000],
    ["2m", 120_000],
    ["30d", 2_592_000_000],
    ["90", null],
    ["", null],
    ["-1s", null],
    ["1w", null],
    ["1e3s", null],
    ["10 s", null],
    ["1234567890s", null],
  ];
  for (const [text, ms] of rows) expect([text, durationMs(text)]).toEqual([text, ms]);
});

test("a moment is an ISO 8601 time or a duration from now", () => {
  const rows: readonly (readonly [text: string, at: number | null])[] = [
    ["1970-01-02", 86_400_000],
    ["1970-01-01T00:00:05Z", 5_000],
    ["10s", 11_000],
    ["2027", null],
    ["2027-13-01", null],
    ["tomorrow", null],
    ["999999999d", null],
  ];
  for (const [text, at] of rows) expect([text, momentMs(text, 1_000)]).toEqual([text, at]);
});
