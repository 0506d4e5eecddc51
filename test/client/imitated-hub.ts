/** Imitates a hub or a copy of it: accepts calls, turns them away, refuses connections, or says nothing. */

export const HOST = "127.0.0.1";
type Call = { readonly path: string; readonly key: string | null; readonly body: unknown };
export type Reply = (call: Call) => Response | Promise<Response>;

export class Imitation implements AsyncDisposable {
  readonly url: string;
  /** Without the probes. */
  readonly calls: Call[] = [];
  reply: Reply;
  /** As a machine that is off: it responds to nothing. */
  isOff = false;
  readonly #server: Bun.Server<undefined>;

  constructor(reply: Reply) {
    this.reply = reply;
    this.#server = this.#listen();
    this.url = `http://${HOST}:${this.#server.port}`;
  }

  get paths(): readonly string[] {
    return this.calls.map(({ path }) => path);
  }

  async refuseConnections(): Promise<void> {
    await this.#server.stop(true);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.refuseConnections();
  }

  #listen(): Bun.Server<undefined> {
    return Bun.serve({
      hostname: HOST,
      port: 0,
      idleTimeout: 0,
      fetch: async (request) => {
        if (this.isOff) return silent();
        const { pathname, search } = new URL(request.url);
        if (pathname === "/healthz") return new Response("ok");
        const text = await request.text();
        const call = {
          path: (pathname + search).replace("/api/v1/", ""),
          key: request.headers.get("idempotency-key"),
          body: text === "" ? null : JSON.parse(text),
        };
        this.calls.push(call);
        return this.reply(call);
      },
    });
  }
}

export const accepts = (fields: object = {}): Response => Response.json({ success: true, ...fields });

export function refusal(status: number, error: string, members: object = {}): Response {
  return Response.json({ success: false, error, detail: "no", ...members }, { status });
}

export const standby = (hub?: string): Response => refusal(503, "standby", hub === undefined ? {} : { hub });
export const foreign = (status: number): Response => new Response("<p>Bad gateway</p>", { status });
export const silent = (): Promise<Response> => new Promise(() => {});
