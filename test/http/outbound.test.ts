/**
 * The requests that the hub sends to others, over real sockets: which address is connected to, with which name, and what
 * is not done (redirects, proxies).
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NAMES_BUSY, NAME_FAILED_MS, type Resolve, nameResolver } from "../../src/http/names.ts";
import { type Posted, outbound, urlRefusal } from "../../src/http/outbound.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { type AddressCheck, addressCheck, parseAllowed } from "../../src/lib/address-policy.ts";

const checkOf = (...allowed: readonly string[]): AddressCheck =>
  addressCheck(
    "--webhook-allow",
    allowed.flatMap((text) => parseAllowed(text) ?? []),
    () => [],
  );
const NONE = checkOf();

function post(
  url: string,
  check: AddressCheck,
  resolve: Resolve = nameResolver(systemClock()),
  signal = AbortSignal.timeout(60_000),
  own = "1",
): Promise<Posted> {
  const checks = { webhook: check, push: NONE };
  return outbound(checks, resolve)({ sender: "webhook", url, headers: { "X-Own": own }, body: "{}", signal });
}

describe("what is refused before anything is sent", () => {
  const refusals: readonly (readonly [url: string, found: readonly string[]])[] = [
    ["http://127.0.0.1/", []],
    ["http://2130706433/", []],
    ["http://0x7f000001/", []],
    ["http://017700000001/", []],
    ["http://127.1/", []],
    ["http://0/", []],
    ["http://１２７.０.０.１/", []],
    ["http://127.0.0.1./", []],
    ["http://[::1]/", []],
    ["http://[::ffff:7f00:1]/", []],
    ["http://[::ffff:127.0.0.1]:80/", []],
    ["http://[64:ff9b::169.254.169.254]/", []],
    ["http://169.254.169.254/latest/meta-data/", []],
    ["http://10.0.0.1:9200/", []],
    ["https://localhost/", ["127.0.0.1", "::1"]],
    ["https://LOCALHOST./", ["127.0.0.1"]],
    ["https://inside.example/", ["10.1.2.3"]],
    ["https://inside.example:8443/path", ["fd00::1"]],
    ["https://metadata.example/", ["169.254.169.254"]],
    ["https://zone.example/", ["fe80::1%eth0"]],
    ["https://user:word@inside.example/", ["127.0.0.1"]],
    ["https://public.example@inside.example/", ["127.0.0.1"]],
    ["https://nowhere.example/", []],
  ];
  for (const [url, found] of refusals)
    test(`${url}${found.length === 0 ? "" : ` at ${found.join(", ")}`}`, async () => {
      const posted = await post(url, NONE, async () => found);
      expect(posted).toEqual({ status: null, error: expect.stringMatching(/refused|no address/) });
    });

  test("a header with what would begin another header or another request", async () => {
    using server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
    const sent = (own: string): Promise<Posted> =>
      post(server.url.href, checkOf("127.0.0.1"), undefined, undefined, own);
    expect(await sent("a=1, b=2")).toMatchObject({ status: 200 });
    for (const own of ["1\r\nX-Other: 1", "1\nX-Other: 1", "1\r\n\r\nGET / HTTP/1.1", "\u65e5", "\u010a"])
      expect(await sent(own)).toEqual({ status: null, error: expect.stringContaining("X-Own") });
  });

  test("the names of this machine, as the system resolves them", async () => {
    expect(await post("http://localhost:1/", NONE)).toEqual({
      status: null,
      error: expect.stringMatching(/^refused: \S+ is an address of this machine, which --webhook-allow/),
    });
  });

  test("the URL itself shows it for an address, not for a name", () => {
    expect(urlRefusal("http://127.1:19104/", NONE)).toContain("127.0.0.1");
    expect(urlRefusal("http://[fd00::1]/", NONE)).toContain("--webhook-allow");
    for (const name of ["localhost", "LOCALHOST.", "a.localhost"]) {
      expect(urlRefusal(`http://${name}:9000/`, NONE)).toContain("--webhook-allow");
      expect(urlRefusal(`http://${name}:9000/`, checkOf("127.0.0.1:9000"))).toBeNull();
      expect(urlRefusal(`http://${name}/`, checkOf("127.0.0.1:9000"))).not.toBeNull();
    }
    expect(urlRefusal("http://hook.example/", NONE)).toBeNull();
    expect(urlRefusal("https://8.8.8.8/", NONE)).toBeNull();
  });
});

describe("a name", () => {
  test("is looked up once at a time, not again for a minute after it failed, and never blocks others", async () => {
    let steady = 0;
    const lookups: { name: string; backend: string; end: PromiseWithResolvers<{ address: string }[]> }[] = [];
    const resolve = nameResolver({ steady: () => steady }, (name, { backend }) => {
      const end = Promise.withResolvers<{ address: string }[]>();
      lookups.push({ name, backend, end });
      return end.promise;
    });
    const asked = (): readonly string[] => lookups.map(({ name, backend }) => `${name} ${backend}`);
    const first = resolve("a.example", "webhook");
    const second = resolve("a.example", "webhook");
    const local = [resolve("one.local", "webhook"), resolve("two.LOCAL.", "webhook")];
    await Bun.sleep(0);
    expect(asked()).toEqual(["a.example c-ares", "one.local system"]);
    lookups[0]?.end.reject(new Error("silent"));
    lookups[1]?.end.reject(new Error("silent"));
    const ends = await Promise.allSettled([first, second, local[0]]);
    expect(ends.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    await Bun.sleep(0);
    expect(asked().slice(2)).toEqual(["two.LOCAL. system"]);
    lookups[2]?.end.resolve([{ address: "10.0.0.1" }]);
    expect(await local[1]).toEqual(["10.0.0.1"]);
    steady = NAME_FAILED_MS - 1;
    expect(resolve("a.example", "webhook")).rejects.toThrow("silent");
    expect(lookups).toHaveLength(3);
    steady = NAME_FAILED_MS;
    const again = resolve("a.example", "webhook");
    lookups[3]?.end.resolve([{ address: "8.8.8.8" }]);
    expect(await again).toEqual(["8.8.8.8"]);
    expect(resolve("a.example", "webhook")).not.toBe(again); // what is found is not remembered
    expect(asked().slice(3)).toEqual(["a.example c-ares", "a.example c-ares"]);
  });

  test("of mDNS that a client of A2A names keeps nobody waiting for more than one lookup", async () => {
    const ends: PromiseWithResolvers<{ address: string }[]>[] = [];
    const resolve = nameResolver({ steady: () => 0 }, () => {
      const end = Promise.withResolvers<{ address: string }[]>();
      ends.push(end);
      return end.promise;
    });
    const codeOf = (name: string): Promise<unknown> => resolve(name, "push").catch(({ code }) => code);
    const first = codeOf("0.local");
    const refused = Array.from({ length: 40 }, (_, i) => codeOf(`${i + 1}.local`));
    expect(new Set(await Promise.all(refused))).toEqual(new Set([NAMES_BUSY]));
    const own = resolve("ntfy.local", "webhook");
    expect(await codeOf("41.local")).toBe(NAMES_BUSY);
    ends[0]?.resolve([]);
    await first;
    await Bun.sleep(0);
    expect(ends).toHaveLength(2);
    ends[1]?.resolve([{ address: "10.0.0.1" }]);
    expect(await own).toEqual(["10.0.0.1"]);
    const again = codeOf("1.local"); // a refusal is not remembered as a failure
    await Bun.sleep(0);
    ends[2]?.resolve([{ address: "10.0.0.2" }]);
    expect(await again).toEqual(["10.0.0.2"]);
  });
});

describe("a receiver", () => {
  const address = "127.0.0.1";
  const allowed = checkOf(address);
  const seen: { path: string; host: string | null; own: string | null }[] = [];
  const dir = mkdtempSync(join(tmpdir(), "luxhub-test-"));
  let server: Bun.Server<undefined>;

  beforeAll(() => {
    server = Bun.serve({
      hostname: address,
      port: 0,
      fetch: async (request) => {
        const { pathname } = new URL(request.url);
        seen.push({
          path: pathname,
          host: request.headers.get("host"),
          own: request.headers.get("x-own"),
        });
        if (pathname === "/redirect") return Response.redirect("http://127.0.0.1:1/", 307);
        if (pathname === "/busy") return new Response("x", { status: 503, headers: { "Retry-After": "7" } });
        if (pathname === "/never") await Bun.sleep(2 ** 30);
        return new Response("x".repeat(1_000_000));
      },
    });
  });
  afterAll(async () => {
    await server.stop(true);
    rmSync(dir, { recursive: true });
  });

  const at = (path: string): string => `http://hook.example:${server.port}${path}`;

  test("is connected to at the address that was resolved once, with the name of the URL", async () => {
    const asked: string[] = [];
    const rebinding: Resolve = async (name) => {
      asked.push(name);
      return asked.length === 1 ? [address] : ["10.1.2.3"];
    };
    expect(await post(at("/a?q=1"), allowed, rebinding)).toEqual({ status: 200, retryAfter: null });
    expect(asked).toEqual(["hook.example"]);
    expect(seen.at(-1)).toEqual({ path: "/a", host: `hook.example:${server.port}`, own: "1" });
    const second = await post(at("/a"), allowed, rebinding);
    expect(second).toEqual({
      status: null,
      error: expect.stringContaining("10.1.2.3 is in a private network"),
    });
  });

  test("is refused if its network is not allowed, and is the one allowed among several", async () => {
    const before = seen.length;
    expect(await post(at("/b"), NONE, async () => [address])).toMatchObject({ status: null });
    expect(seen.length).toBe(before);
    expect(await post(at("/b"), allowed, async () => ["10.1.2.3", address])).toMatchObject({ status: 200 });
  });

  test("is not followed by a redirect, and may ask for time", async () => {
    const resolve: Resolve = async () => [address];
    expect(await post(at("/redirect"), allowed, resolve)).toMatchObject({ status: 307 });
    expect(await post(at("/busy"), allowed, resolve)).toEqual({ status: 503, retryAfter: "7" });
  });

  test("that sends interim responses, or headers, without end is left", async () => {
    for (const part of ["HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n", "X-A: b\r\n"]) {
      let sent = 0;
      const begin = part.startsWith("X") ? "HTTP/1.1 200 OK\r\n" : "";
      const chunk = Buffer.from(begin + part.repeat(1_000));
      const pump = (socket: Bun.Socket): void => {
        for (let n = 1; n > 0; sent += n) n = socket.write(chunk);
      };
      using endless = Bun.listen({
        hostname: address,
        port: 0,
        socket: { data: pump, drain: pump, open: () => {} },
      });
      const posted = await post(`http://${address}:${endless.port}/`, allowed);
      expect(posted).toEqual({ status: null, error: "the headers of the response are too large" });
      expect(sent).toBeLessThan(2 ** 24);
    }
  });

  test("may send an interim response first, and its head in parts", async () => {
    using slow = Bun.listen({
      hostname: address,
      port: 0,
      socket: {
        open: () => {},
        data: async (socket) => {
          for (const part of [
            "HTTP/1.1 100 Continue\r\n\r",
            "\nHTTP/1.1 429 Slow\r\nRetry-",
            "After:  4.5 \r\n\r\n",
          ]) {
            socket.write(part);
            await Bun.sleep(1);
          }
        },
      },
    });
    expect(await post(`http://${address}:${slow.port}/`, allowed)).toEqual({
      status: 429,
      retryAfter: "4.5",
    });
    using odd = Bun.listen({
      hostname: address,
      port: 0,
      socket: { open: () => {}, data: (socket) => void socket.write("SSH-2.0\r\n\r\n") },
    });
    expect(await post(`http://${address}:${odd.port}/`, allowed)).toMatchObject({ status: null });
  });

  test("gets a large body whole", async () => {
    const body = "x".repeat(5_000_000);
    using large = Bun.serve({
      hostname: address,
      port: 0,
      fetch: async (request) => new Response(null, { status: (await request.text()) === body ? 204 : 400 }),
    });
    const checks = { webhook: allowed, push: NONE };
    const signal = AbortSignal.timeout(60_000);
    const url = `http://${address}:${large.port}/`;
    const posted = await outbound(checks, async () => [])({
      sender: "webhook",
      url,
      headers: {},
      body,
      signal,
    });
    expect(posted).toEqual({ status: 204, retryAfter: null });
  });

  test("is called without the proxies of the environment", async () => {
    const before = process.env["HTTP_PROXY"];
    process.env["HTTP_PROXY"] = "http://127.0.0.1:1";
    try {
      expect(await post(at("/c"), allowed, async () => [address])).toMatchObject({ status: 200 });
    } finally {
      if (before === undefined) delete process.env["HTTP_PROXY"];
      else process.env["HTTP_PROXY"] = before;
    }
  });

  test("that does not answer, or is not there, is a fault without the URL", async () => {
    const resolve: Resolve = async () => [address];
    const never = post(at("/never"), allowed, resolve, AbortSignal.timeout(100));
    expect(await never).toEqual({ status: null, error: "no response in time" });
    const slow: Resolve = () => new Promise(() => {});
    expect(await post(at("/d"), allowed, slow, AbortSignal.timeout(50))).toEqual({
      status: null,
      error: "no response in time",
    });
    expect(await post("http://hook.example:1/secret", allowed, resolve)).toEqual({
      status: null,
      error: "connection refused",
    });
    const lost: Resolve = async () => {
      throw Object.assign(new Error("getaddrinfo ENOTFOUND /secret"), { code: "DNS_ENOTFOUND" });
    };
    expect(await post(at("/secret"), allowed, lost)).toEqual({
      status: null,
      error: "the name of the host is not found",
    });
  });

  test.skipIf(Bun.which("openssl") === null)(
    "shows a certificate for the name, and not for another",
    async () => {
      const made = Bun.spawnSync(
        `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem
       -days 2 -subj /CN=hook.example -addext subjectAltName=DNS:hook.example`.split(/\s+/),
        { cwd: dir },
      );
      expect(made.exitCode).toBe(0);
      const program = `
      import { outbound } from ${JSON.stringify(join(import.meta.dir, "../../src/http/outbound.ts"))};
      const tls = { cert: Bun.file("cert.pem"), key: Bun.file("key.pem") };
      const server = Bun.serve({ hostname: ${JSON.stringify(address)}, port: 0, tls, fetch: (request) =>
        new Response(null, { status: request.headers.get("host")?.startsWith("hook.example:") ? 204 : 400 }) });
      const send = outbound({ webhook: () => null, push: () => null }, async () => [${JSON.stringify(address)}]);
      for (const name of ["hook.example", "other.example"])
        console.log(JSON.stringify(await send({ sender: "webhook", url: \`https://\${name}:\${server.port}/\`, headers: {}, body: "{}",
          signal: AbortSignal.timeout(60_000) })));
      server.stop(true);`;
      await Bun.write(join(dir, "send.ts"), program);
      const run = Bun.spawnSync([process.execPath, "send.ts"], {
        cwd: dir,
        env: { ...process.env, NODE_EXTRA_CA_CERTS: join(dir, "cert.pem") },
      });
      expect(run.stdout.toString().trim().split("\n")).toEqual([
        '{"status":204,"retryAfter":null}',
        '{"status":null,"error":"the certificate is for another host"}',
      ]);
    },
  );
});
