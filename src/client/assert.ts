/** Assertions of the client, which imports nothing of the hub: a state that cannot be is a defect of the client. */
export function assert(condition: boolean, what: string): asserts condition {
  if (!condition) throw new Error(`The client of luxhub is broken: ${what}.`);
}
