/**
 * The ids that the hub is known to know, for requests to be about something. A request names one as `_.task.3._`; what that
 * is, is settled when it is sent. Only the newest are kept, so that they meet one another.
 */
export type IdKind = "task" | "node" | "message" | "file";

const KEPT = 10;
const MARK = /_\.(task|node|message|file)\.(\d)\._/g;

/** An id of a kind; its form is that of an id, for a schema to take it. */
export function mark(kind: IdKind, n: number): string {
  return `_.${kind}.${n}._`;
}

export class Known {
  readonly #ids: Readonly<Record<IdKind, string[]>> = { task: [], node: [], message: [], file: [] };

  /** Puts ids in the place of the marks. */
  settle(text: string): string {
    return text.replace(MARK, (_, kind: IdKind, n: string) => {
      const ids = this.#ids[kind];
      return ids[Number(n) % Math.max(ids.length, 1)] ?? `no-${kind}`;
    });
  }

  /** Notes the ids in the answer to a POST. */
  learn(body: Readonly<Record<string, unknown>>): void {
    for (const kind of ["task", "message", "file"] as const) {
      const id = body[`${kind}_id`];
      if (typeof id === "string" && !this.#ids[kind].includes(id)) this.add(kind, id);
    }
  }

  add(kind: IdKind, id: string): void {
    const ids = this.#ids[kind];
    ids.push(id);
    if (ids.length > KEPT) ids.shift();
  }
}
