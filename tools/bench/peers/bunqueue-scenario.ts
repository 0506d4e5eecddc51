// One cycle of bunqueue over its HTTP API: push, pull, ack, with the same strings as the cycle of a task. A pull gives
// whatever job is next, so its id is the one that is acknowledged.
import { PLACEHOLDER_ID, type Scenario, WORKS, type Work, nameWith, resultOf, taskOf } from "../scenarios.ts";

const JOBS = "/queues/bench/jobs";

export const BUNQUEUE = "bunqueue";

const scenario = (work: Work): Scenario => ({
  name: nameWith(BUNQUEUE, work),
  title: "bunqueue",
  registers: false,
  idMark: '"job":{"id":"',
  steps: [
    {
      method: "POST",
      path: JOBS,
      body: () => ({ name: "task", data: taskOf(work), durable: true }),
      expect: '"ok":true',
    },
    { method: "GET", path: JOBS, body: null, givesId: true, expect: '"ok":true' },
    {
      method: "POST",
      path: `/jobs/${PLACEHOLDER_ID}/ack`,
      body: () => ({ result: resultOf(work) }),
      expect: '"ok":true',
    },
  ],
});

export const BUNQUEUE_SCENARIOS: readonly Scenario[] = WORKS.map(scenario);
