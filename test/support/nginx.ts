/**
 * An nginx in front of hubs, for tests, configured by the example in docs/machines.md with other addresses. Needs no root
 * and nothing of the system's own nginx. Without nginx the suites that need it are skipped; servers.test.ts says so.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Keeper, endNow, freePorts, isListening, keep } from "./keeper.ts";

const PROGRAM = Bun.which("nginx", { PATH: `${process.env["PATH"] ?? ""}:/usr/sbin:/usr/local/sbin` });

/** Why suites that need nginx are skipped; null when they run. */
export const NGINX_MISSING: string | null = PROGRAM === null ? "no nginx here; install Debian's nginx" : null;

export type Site = readonly [hub: string, ...more: string[]];

export class Nginx implements AsyncDisposable {
  readonly ports: readonly number[];
  readonly #folder: string;
  readonly #keeper: Keeper;

  private constructor(ports: readonly number[], folder: string, keeper: Keeper) {
    this.ports = ports;
    this.#folder = folder;
    this.#keeper = keeper;
  }

  /**
   * `await using nginx = await Nginx.start([hubs])` ends it and removes what it wrote.
   * @param repeats with the lines of docs/postgresql-failures.md that repeat a request with an Idempotency-Key
   * @param prefix the path under which the hubs are, as docs/dashboard.md says: `/hub/`
   */
  static async start(sites: readonly Site[], repeats = false, prefix = "/"): Promise<Nginx> {
    for (let tries = 0; ; tries++) {
      const nginx = await Nginx.#tryStart(sites, repeats, prefix);
      if (nginx !== null) return nginx;
      // nginx cannot be told to choose a port: somebody else may have taken one that was free when we looked.
      if (tries === 5) throw new Error("nginx does not start");
    }
  }

  static async #tryStart(sites: readonly Site[], repeats: boolean, prefix: string): Promise<Nginx | null> {
    const folder = mkdtempSync(join(tmpdir(), "luxhub-nginx-"));
    const ports = freePorts(sites.length, "127.0.0.1");
    const servers = sites.map((hubs, i) => siteOf(hubs, ports[i] ?? 0, `luxhub_${i}`, repeats, prefix));
    const config = join(folder, "nginx.conf");
    writeFileSync(config, frame(folder, servers));
    const command = [PROGRAM ?? "nginx", "-p", folder, "-c", config, "-e", join(folder, "log")];
    const nginx = new Nginx(ports, folder, keep(command, folder, "TERM"));
    while (!(await isListening(ports[0] ?? 0, "127.0.0.1"))) {
      const said = readFileSync(join(folder, "log"), { encoding: "utf8", flag: "a+" });
      const ended = nginx.#keeper.exitCode !== null;
      if (ended || said.includes("Address already in use")) {
        await nginx.close();
        if (ended && !said.includes("Address already in use")) throw new Error(`nginx: ${said}`);
        return null;
      }
      await Bun.sleep(2);
    }
    return nginx;
  }

  get log(): string {
    return readFileSync(join(this.#folder, "log"), "utf8");
  }

  async close(): Promise<void> {
    await endNow(this.#keeper);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

const DOCS = join(import.meta.dir, "../../docs");

function exampleOf(page: string): string {
  return /\n```nginx\n([\s\S]*?)\n```\n/.exec(readFileSync(join(DOCS, page), "utf8"))?.[1] ?? "";
}

const LOCATION = /^ {2}location \/ \{\n([\s\S]*?)^ {2}\}\n/m;

/** The locations of docs/postgresql-failures.md, each with those lines of the example's location that it does not set itself. */
function withRepeats(example: string): string {
  const lines = (LOCATION.exec(example)?.[1] ?? "").split("\n");
  const locations = exampleOf("postgresql-failures.md").split(/^(?= {2}location )/m);
  const whole = locations.map((location) => {
    const others = lines.filter(
      (line) => !location.includes(`${/\w+/.exec(line)?.[0]} `) || /set_header/.test(line),
    );
    return location.replace(/^ *# and the .*$/m, () => others.join("\n"));
  });
  return example.replace(LOCATION, () => `${whole.join("")}\n`);
}

/** The page's example with other addresses: as many lines of hubs as there are, one port without TLS, its own name. */
function siteOf(hubs: Site, port: number, name: string, repeats: boolean, prefix: string): string {
  const plain = exampleOf("machines.md");
  const example = repeats ? withRepeats(plain) : plain;
  const change = (text: string, pattern: RegExp, by: (found: string) => string): string => {
    if (!pattern.test(text))
      throw new Error(`the nginx example of docs/machines.md has nothing like ${pattern}`);
    return text.replace(pattern, by);
  };
  const line = /^ {2}server (127\.0\.0\.1:\d+)(.*)\n/m;
  const [first = "", address = ""] = line.exec(example) ?? [];
  let text = change(example, /(?:^ {2}server .*\n)+/m, () =>
    hubs.map((hub) => first.replace(address, hub)).join(""),
  );
  text = change(text, /listen 443 ssl;/, () => `listen 127.0.0.1:${port};`);
  text = change(text, /upstream luxhub /, () => `upstream ${name} `);
  if (prefix === "/") return change(text, /http:\/\/luxhub;/g, () => `http://${name};`);
  text = change(text, /location \/ \{/, () => `location ${prefix} {`);
  return change(text, /http:\/\/luxhub;/g, () => `http://${name}/;`);
}

/** What an nginx.conf has around its sites. One process, which runs as whoever starts it. */
function frame(folder: string, servers: readonly string[]): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path ${join(folder, name)};`,
  );
  return `
    daemon off;
    master_process off;
    pid ${join(folder, "pid")};
    worker_rlimit_nofile 16384;
    events { worker_connections 8192; }
    http {
      access_log off;
      ${temporary.join("\n")}
      ${servers.join("\n")}
    }`;
}
