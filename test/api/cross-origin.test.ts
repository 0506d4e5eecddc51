/** Pages of other origins (CORS), names that the hub answers to (DNS rebinding), and a hub whose reads are all private. */
import { describe, expect, test } from "bun:test";
import { type TestHub, SECRET, startHub } from "../support/hub.ts";
import { transcripts } from "../support/transcript.ts";

const PUBLIC =
  "node/list node/x task/list task/stats file/list file/download/x status events poll?timeout=0 pg/diagnostic".split(
    " ",
  );
const PAGE = "https://app.example.org";

const ask = (
  hub: TestHub,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> => fetch(`${hub.base()}/api/v1${path}`, { method, headers, keepalive: false });

const preflightOf = (origin: string, method = "POST") => ({
  Origin: origin,
  "Access-Control-Request-Method": method,
  "Access-Control-Request-Headers": "content-type, x-matrix-secret",
});

function corsHeaders({ headers }: Response): string[] {
  return [...headers.keys()].filter((name) => name.startsWith("access-control-"));
}

describe("pages of other origins", () => {
  test("get no CORS headers unless their origin is allowed", async () => {
    await using hub = await startHub({ alone: "ownHead" });
    const answer = await ask(hub, "GET", "/status", { Origin: PAGE });
    expect([answer.status, corsHeaders(answer)]).toEqual([200, []]);
    const preflight = await ask(hub, "OPTIONS", "/task/create", preflightOf(PAGE));
    expect([preflight.status, corsHeaders(preflight), preflight.headers.get("allow")]).toEqual([
      405,
      [],
      "POST",
    ]);
  });

  test("of an allowed origin may call and read, on both variants; others may not", async () => {
    await using hub = await startHub({ alone: "ownHead", cors: [PAGE, "http://localhost:3000"] });
    for (const variant of ["A", "B"] as const) {
      const url = `${hub.base(variant)}/api/v1`;
      const preflight = await fetch(`${url}/task/create`, { method: "OPTIONS", headers: preflightOf(PAGE) });
      expect(preflight.status).toBe(204);
      expect(preflight.headers.get("access-control-allow-origin")).toBe(PAGE);
      expect(preflight.headers.get("access-control-allow-methods")).toBe("POST");
      expect(preflight.headers.get("access-control-allow-headers")).toContain("X-Matrix-Secret");
      expect(preflight.headers.get("access-control-allow-headers")).toContain("Authorization");
      expect(preflight.headers.get("access-control-max-age")).toBe("600");
      expect(preflight.headers.get("vary")).toContain("Origin");
      expect(preflight.headers.has("access-control-allow-credentials")).toBeFalse();
      for (const [path, secret, status] of [
        ["/node/list", SECRET, 200],
        ["/task/pull?node_id=none", SECRET, 404],
        ["/task/pull?node_id=none", "", 401],
        ["/nowhere", SECRET, 404],
      ] as const) {
        const headers = { Origin: "http://localhost:3000", "X-Matrix-Secret": secret };
        const answer = await fetch(`${url}${path}`, { headers });
        expect([path, answer.status]).toEqual([path, status]);
        expect(answer.headers.get("access-control-allow-origin")).toBe("http://localhost:3000");
        expect(answer.headers.get("access-control-expose-headers")).toContain("Retry-After");
      }
    }
    for (const origin of ["https://evil.example", "https://app.example.org.evil.example", "null"]) {
      const answer = await ask(hub, "GET", "/status", { Origin: origin });
      expect([answer.status, corsHeaders(answer), answer.headers.get("vary")?.includes("Origin")]).toEqual([
        200,
        [],
        true,
      ]);
      expect((await ask(hub, "OPTIONS", "/task/create", preflightOf(origin))).status).toBe(405);
    }
    const missing = await ask(hub, "OPTIONS", "/nowhere", preflightOf(PAGE));
    expect(missing.status).toBe(404);
    const plain = await ask(hub, "OPTIONS", "/status", { Origin: PAGE }); // no preflight
    expect(plain.status).toBe(405);
  });

  test("also read streams and files", async () => {
    await using hub = await startHub({ alone: "ownHead", cors: [PAGE] });
    await hub.post("/node/register", { node_id: "w", name: "W" });
    const form = new FormData();
    form.append("file", new File(["abc"], "a.txt"));
    const { body } = await hub.post("/file/upload", form);
    for (const path of [`/file/download/${body["file_id"]}`, "/agent/sse?node_id=w"]) {
      const aborting = new AbortController();
      const headers = { Origin: PAGE, "X-Matrix-Secret": SECRET };
      const answer = await fetch(`${hub.base()}/api/v1${path}`, { headers, signal: aborting.signal });
      expect([answer.status, answer.headers.get("access-control-allow-origin")]).toEqual([200, PAGE]);
      aborting.abort();
    }
  });

  test("of any origin are never allowed credentials", async () => {
    await using hub = await startHub({ alone: "ownHead", cors: ["*"] });
    for (const answer of [
      await ask(hub, "GET", "/status", { Origin: "https://anything.example" }),
      await ask(hub, "OPTIONS", "/task/create", preflightOf("https://anything.example")),
    ]) {
      expect(answer.headers.get("access-control-allow-origin")).toBe("*");
      expect(answer.headers.has("access-control-allow-credentials")).toBeFalse();
    }
  });
});

describe("a Host", () => {
  const statusOf = async (hub: TestHub, host: string, path = "/status"): Promise<unknown> => {
    const answer = await ask(hub, "GET", path, { Host: host, "X-Matrix-Secret": SECRET });
    const body: Readonly<Record<string, unknown>> = JSON.parse(await answer.text());
    return answer.status === 403 ? body["error"] : answer.status;
  };

  test("is not checked unless names are configured", async () => {
    await using hub = await startHub({ alone: "ownHead" });
    expect(await statusOf(hub, "evil.example")).toBe(200);
  });

  test("must be an address, localhost or a configured name", async () => {
    await using hub = await startHub({ alone: "ownHead", allowedHosts: ["hub.example.org"] });
    for (const host of [
      "hub.example.org",
      "HUB.example.org:19104",
      "hub.example.org.",
      "localhost",
      "localhost:1",
    ])
      expect([host, await statusOf(hub, host)]).toEqual([host, 200]);
    for (const host of ["127.0.0.1", "192.168.1.10:19104", "[::1]:19104", "[fe80::1]"])
      expect([host, await statusOf(hub, host)]).toEqual([host, 200]);
    for (const host of [
      "evil.example",
      "x.hub.example.org",
      "hub.example.org.evil.example:80",
      "127.0.0.1.nip.io",
      "a b",
    ])
      expect([host, await statusOf(hub, host)]).toEqual([host, "host_not_allowed"]);
    expect(await statusOf(hub, "evil.example", "/nowhere")).toBe("host_not_allowed");
    const preflight = await ask(hub, "OPTIONS", "/task/create", {
      ...preflightOf(PAGE),
      Host: "evil.example",
    });
    expect(preflight.status).toBe(403);
  });
});

transcripts(`
-- a private hub asks for the secret at the public paths of A too {isPrivate: true}
  anon <|B >GET <${PUBLIC.join("|")}> -> 401 unauthorized
  <|B >GET <${PUBLIC.filter((path) => !path.endsWith("/x")).join("|")}>
`);
