/** The commands of notes and of advisory leases. */
import fc from "fast-check";
import { SECOND_MS } from "../../src/lib/clock.ts";
import { LEASED, type Lease, type LeaseName, type Note } from "./model.ts";
import { same } from "./real.ts";
import { command, node, recent, variant } from "./world.ts";

const key = fc.constantFrom("k0", "k1");
const name = fc.constantFrom(...(Object.keys(LEASED) as LeaseName[])); // the record has these keys
const noteWords = (key: string, { version, node }: Note) => ({ key, version, node_id: node });

export const leaseWords = ({ name, node, taskId, shared, fencing, ttlMs, until }: Lease) => ({
  name,
  node_id: node,
  task_id: taskId,
  shared,
  fencing,
  ttl_s: ttlMs / SECOND_MS,
  until: new Date(until).toISOString(),
});

export const putNote = command(
  "put note",
  fc.record({
    variant,
    key,
    text: fc.constantFrom("one", "two"),
    node,
    ifVersion: fc.constantFrom(null, 0, 1, 2),
  }),
  ({ model }, { hub }, { variant, key, text, node, ifVersion }) =>
    same(hub.post("/note/put", { key, text, node_id: node, if_version: ifVersion }, { variant }), () => ({
      note: noteWords(key, model.putNote(key, text, node, ifVersion)),
    })),
);

export const deleteNote = command(
  "delete note",
  fc.record({ variant, key, node }),
  ({ model }, { hub }, { variant, key, node }) =>
    same(hub.post("/note/delete", { key, node_id: node }, { variant }), () => ({
      note: noteWords(key, model.deleteNote(key, node)),
    })),
);

export const acquire = command(
  "acquire",
  fc.record({
    variant,
    name,
    node,
    task: fc.option(recent),
    shared: fc.boolean(),
    seconds: fc.constantFrom(20, 60, 200),
  }),
  (world, { hub }, { variant, name, node, task, shared, seconds }) => {
    const taskId = task === null ? null : world.task(task);
    const asked = { name, node_id: node, task_id: taskId, shared, ttl_s: seconds };
    return same(hub.post("/lease/acquire", asked, { variant }), () => {
      const lease = world.model.acquire(name, node, { taskId, shared, ttlMs: seconds * SECOND_MS });
      return { lease: leaseWords(lease) };
    });
  },
);

export const renew = command(
  "renew",
  fc.record({ variant, name, node }),
  ({ model }, { hub }, { variant, name, node }) =>
    same(hub.post("/lease/renew", { name, node_id: node }, { variant }), () => ({
      lease: leaseWords(model.renew(name, node)),
    })),
);

export const releaseLease = command(
  "release lease",
  fc.record({ variant, name, node }),
  ({ model }, { hub }, { variant, name, node }) =>
    same(hub.post("/lease/release", { name, node_id: node }, { variant }), () => ({
      released: model.releaseLease(name, node),
    })),
);

export const leases = command("leases", fc.record({ variant }), ({ model }, { hub }, { variant }) =>
  same(hub.get("/lease/list?per_page=50", { variant }), () => ({ leases: model.leases.map(leaseWords) })),
);

export const notes = command("notes", fc.record({ variant }), ({ model }, { hub }, { variant }) =>
  same(hub.get("/note/list", { variant }), () => ({
    notes: [...model.notes]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, note]) => noteWords(key, note)),
  })),
);
