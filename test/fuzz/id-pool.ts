/**
 * A pool of ids that exist in the hub. A generated request contains placeholders such as `_.task.3._`, which are replaced
 * by ids when it is sent. The pool keeps only the newest ids, so that several requests use the same ones.
 */
export type IdKind = "task" | "node" | "message" | "file" | "question" | "invitation" | "token";

const KEPT = 10;
const PLACEHOLDER = /_\.(task|node|message|file|question|invitation|token)\.(\d)\._/g;

export function placeholder(kind: IdKind, n: number): string {
  return `_.${kind}.${n}._`;
}

export class IdPool {
  readonly #ids: Readonly<Record<IdKind, string[]>> = {
    task: [],
    node: [],
    message: [],
    file: [],
    question: [],
    invitation: [],
    token: [],
  };

  resolve(text: string): string {
    return text.replace(PLACEHOLDER, (_, kind: IdKind, n: string) => {
      const ids = this.#ids[kind];
      return ids[Number(n) % Math.max(ids.length, 1)] ?? `no-${kind}`;
    });
  }

  learn(body: Readonly<Record<string, unknown>>): void {
    for (const kind of ["task", "message", "file"] as const) {
      const id = body[`${kind}_id`];
      if (typeof id === "string") this.#addNew(kind, id);
    }
    const { question, invitation, line } = body;
    if (typeof question === "object" && question !== null && "question_id" in question)
      this.#addNew("question", String(question.question_id));
    if (typeof invitation !== "object" || invitation === null || !("invitation_id" in invitation)) return;
    this.#addNew("invitation", String(invitation.invitation_id));
    const [token] = /(?<=#join\.)[\w-]+/.exec(String(line)) ?? [];
    if (token !== undefined) this.#addNew("token", token);
  }

  #addNew(kind: IdKind, id: string): void {
    if (!this.#ids[kind].includes(id)) this.add(kind, id);
  }

  add(kind: IdKind, id: string): void {
    const ids = this.#ids[kind];
    ids.push(id);
    if (ids.length > KEPT) ids.shift();
  }
}
