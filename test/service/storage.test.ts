/** The warning of status: what the data takes is half of the disk. */
import { expect, test } from "bun:test";
import { takesHalf } from "../../src/service/system.ts";

test.each([
  [101, false],
  [100, true],
  [null, false],
])("100 bytes of data with %p free: %p", (freeBytes, warns) => {
  expect(takesHalf({ databaseBytes: 60, filesBytes: 40, finishedTasks: 1, freeBytes })).toBe(warns);
});
