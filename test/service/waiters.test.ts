import { test, expect, jest } from "bun:test";
test("x", () => {
  jest.useFakeTimers();
  let n = 0;
  setTimeout(() => n++, 1000);
  setInterval(() => n++, 15000);
  jest.advanceTimersByTime(60000);
  expect(n).toBe(5);
  console.log(Date.now(), performance.now());
  jest.useRealTimers();
});
