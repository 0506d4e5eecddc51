/** The command line: help, version, settings and their precedence, mistakes, and `luxhub keys`. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { version } from "../../package.json";
import { type Config, ConfigError, SETTING_ROWS, type Sources, readConfig } from "../../src/config.ts";
import { parseNetwork } from "../../src/lib/ip.ts";
import { SQLITE_SCHEMA } from "../../src/store/sqlite/schema.ts";
import { PROGRAM } from "../support/executable.ts";
import { HANG_MS } from "../support/hang.ts";
import { Hub, SECRET, TempDir, run, until } from "./program.ts";

describe("help and version", () => {
  const rows: readonly (readonly [args: readonly string[], says: RegExp])[] = [
    [[], /luxhub serve \[flags\]/],
    [["help"], /luxhub keys/],
    [["--help"], /luxhub version/],
    [["-h"], /luxhub help/],
    [["serve", "--help"], /--offline-tasks requeue\|keep/],
    [["serve", "--port", "1", "-h"], /--listen SPEC/],
    [["keys"], /luxhub keys revoke NAME/],
    [["keys", "--help"], /luxhub keys pin NAME A\|B\|none/],
    [["keys", "add", "--help"], /--expires TIME/],
    [["backup", "--help"], /tar archive/],
    [["restore", "--help"], /must be empty/],
    [["help", "doctor"], /Exit code 0/],
    [["openapi", "--help"], /--variant A\|B/],
    [["openapi"], /"title": "luxhub, variant A"/],
    [["openapi", "--variant", "B"], /"title": "luxhub, variant B"/],
    [["help", "help"], /luxhub keys/],
    [["--help", "--help"], /luxhub keys/],
    [["help", "-h"], /luxhub keys/],
    [["version"], new RegExp(`^luxhub ${version}\n$`)],
    [["--version"], new RegExp(`^luxhub ${version}\n$`)],
  ];
  for (const [args, says] of rows)
    test(`luxhub ${args.join(" ")}`, async () => {
      const { code, stdout, stderr } = await run(args);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toMatch(says);
    });

  test("a reader that closes the pipe early is not an error if the output can be printed again", async () => {
    for (const words of ["openapi", "help", "man", "completions bash", "service print", "keys --help"]) {
      const shell = Bun.spawn(
        ["bash", "-c", '"$@" | true; echo "${PIPESTATUS[0]}"', "-", ...PROGRAM, ...words.split(" ")],
        {
          stdout: "pipe",
          stderr: "pipe",
        },
      );
      expect([words, await shell.stdout.text(), await shell.stderr.text()]).toEqual([words, "0\n", ""]);
    }
  });

  test("the help of serve has every setting with its default", async () => {
    const { stdout } = await run(["serve", "--help"]);
    for (const row of SETTING_ROWS) {
      expect(stdout).toContain(row.isSwitch ? row.flag : `${row.flag} ${row.value}`);
      if (row.fallback !== null) expect(stdout).toContain(`(${row.fallback})`);
    }
  });
});

/** For each setting: what it is read into, its default, and three values with what they mean. */
type SettingCase = {
  readonly flag: string;
  readonly of: (config: Config) => unknown;
  readonly byDefault: unknown;
  readonly values: readonly (readonly [text: string, means: unknown])[];
};

const SETTINGS: readonly SettingCase[] = [
  {
    flag: "--host",
    of: (config) => config.listen[0]?.host,
    byDefault: "127.0.0.1",
    values: [
      ["127.0.0.1", "127.0.0.1"],
      ["localhost", "localhost"],
      ["[::1]", "::1"],
    ],
  },
  {
    flag: "--port",
    of: (config) => config.listen[0]?.port,
    byDefault: 19104,
    values: [
      ["0", 0],
      ["80", 80],
      ["65535", 65535],
    ],
  },
  {
    flag: "--variant",
    of: (config) => config.listen[0]?.variant,
    byDefault: "A",
    values: [
      ["B", "B"],
      ["A", "A"],
      ["B", "B"],
    ],
  },
  {
    flag: "--data",
    of: (config) => config.dataDir,
    byDefault: "./luxhub-data",
    values: [
      ["a", "a"],
      ["/b", "/b"],
      ["c d", "c d"],
    ],
  },
  {
    flag: "--database",
    of: (config) => config.database,
    byDefault: null,
    values: [
      ["postgres://a", "postgres://a"],
      ["postgresql://u:p@h:5433/n?sslmode=require", "postgresql://u:p@h:5433/n?sslmode=require"],
      ["postgres://u:p%2F@h/n", "postgres://u:p%2F@h/n"],
    ],
  },
  {
    flag: "--listen",
    of: (config) => config.listen.slice(1),
    byDefault: [],
    values: [
      ["B:127.0.0.1:19105", [{ variant: "B", host: "127.0.0.1", port: 19105, tls: false }]],
      ["A:[::1]:1", [{ variant: "A", host: "::1", port: 1, tls: false }]],
      ["B:0.0.0.0:0", [{ variant: "B", host: "0.0.0.0", port: 0, tls: false }]],
    ],
  },
  {
    flag: "--tls",
    of: (config) => config.tlsAuto,
    byDefault: false,
    values: [
      ["auto", true],
      ["auto", true],
      ["auto", true],
    ],
  },
  {
    flag: "--tls-cert",
    of: (config) => config.tlsCert,
    byDefault: null,
    values: [
      ["a.pem", "a.pem"],
      ["b.pem", "b.pem"],
      ["c.pem", "c.pem"],
    ],
  },
  {
    flag: "--tls-key",
    of: (config) => config.tlsKey,
    byDefault: null,
    values: [
      ["a.pem", "a.pem"],
      ["b.pem", "b.pem"],
      ["c.pem", "c.pem"],
    ],
  },
  {
    flag: "--max-file",
    of: (config) => config.maxFileBytes,
    byDefault: 2 ** 30,
    values: [
      ["500000", 500_000],
      ["64KiB", 65_536],
      ["2GiB", 2 ** 31],
    ],
  },
  {
    flag: "--max-answers",
    of: (config) => config.maxAnswersBytes,
    byDefault: 2 ** 30,
    values: [
      ["500000", 500_000],
      ["64KiB", 65_536],
      ["2GiB", 2 ** 31],
    ],
  },
  {
    flag: "--min-free",
    of: (config) => config.minFreeBytes,
    byDefault: null,
    values: [
      ["500000", 500_000],
      ["64KiB", 65_536],
      ["2GiB", 2 ** 31],
    ],
  },
  {
    flag: "--max-nodes",
    of: (config) => config.maxNodes,
    byDefault: 100_000,
    values: [
      ["1", 1],
      ["5000", 5_000],
      ["200000", 200_000],
    ],
  },
  {
    flag: "--quota-tasks",
    of: (config) => config.quotaTasks,
    byDefault: 10_000,
    values: [
      ["1", 1],
      ["500", 500],
      ["1000000000", 1_000_000_000],
    ],
  },
  {
    flag: "--quota-bytes",
    of: (config) => config.quotaBytes,
    byDefault: null,
    values: [
      ["500000", 500_000],
      ["64KiB", 65_536],
      ["2GiB", 2 ** 31],
    ],
  },
  {
    flag: "--self-reward",
    of: (config) => config.selfReward,
    byDefault: true,
    values: [
      ["off", false],
      ["on", true],
      ["off", false],
    ],
  },
  {
    flag: "--signin-lux",
    of: (config) => config.signinLux,
    byDefault: 10,
    values: [
      ["0", 0],
      ["2.5", 2.5],
      ["100", 100],
    ],
  },
  {
    flag: "--signin",
    of: (config) => config.signinBound,
    byDefault: false,
    values: [
      ["bound", true],
      ["any", false],
      ["bound", true],
    ],
  },
  {
    flag: "--output-head",
    of: (config) => config.outputHeadBytes,
    byDefault: 65_536,
    values: [
      ["4096", 4_096],
      ["128KiB", 131_072],
      ["64MiB", 2 ** 26],
    ],
  },
  {
    flag: "--output-tail",
    of: (config) => config.outputTailBytes,
    byDefault: 196_608,
    values: [
      ["64MiB", 2 ** 26],
      ["4096", 4_096],
      ["1MiB", 2 ** 20],
    ],
  },
  {
    flag: "--retain",
    of: (config) => config.retainMs,
    byDefault: 7 * 86_400_000,
    values: [
      ["90s", 90_000],
      ["12h", 43_200_000],
      ["30d", 30 * 86_400_000],
    ],
  },
  {
    flag: "--retain-nodes",
    of: (config) => config.retainNodesMs,
    byDefault: null,
    values: [
      ["30d", 2_592_000_000],
      ["12h", 43_200_000],
      ["90s", 90_000],
    ],
  },
  {
    flag: "--retain-tasks",
    of: (config) => config.retainTasksMs,
    byDefault: null,
    values: [
      ["30d", 2_592_000_000],
      ["12h", 43_200_000],
      ["90s", 90_000],
    ],
  },
  {
    flag: "--retain-files",
    of: (config) => config.retainFilesMs,
    byDefault: null,
    values: [
      ["7d", 604_800_000],
      ["24h", 86_400_000],
      ["60s", 60_000],
    ],
  },
  {
    flag: "--retain-usage",
    of: (config) => config.retainUsageMs,
    byDefault: null,
    values: [
      ["400d", 34_560_000_000],
      ["24h", 86_400_000],
      ["60s", 60_000],
    ],
  },
  {
    flag: "--report-max",
    of: (config) => config.reportMaxUsd,
    byDefault: 100,
    values: [
      ["0", 0],
      ["2.5", 2.5],
      ["1000000", 1_000_000],
    ],
  },
  {
    flag: "--offline-tasks",
    of: (config) => config.offlineTasks,
    byDefault: "requeue",
    values: [
      ["keep", "keep"],
      ["requeue", "requeue"],
      ["keep", "keep"],
    ],
  },
  {
    flag: "--fair",
    of: (config) => config.fair,
    byDefault: null,
    values: [
      ["creator", "creator"],
      ["creator", "creator"],
      ["creator", "creator"],
    ],
  },
  {
    flag: "--stuck-after",
    of: (config) => config.stuckAfterMs,
    byDefault: 600_000,
    values: [
      ["1h", 3_600_000],
      ["90s", 90_000],
      ["5m", 300_000],
    ],
  },
  {
    flag: "--backup-to",
    of: (config) => config.backupTo,
    byDefault: null,
    values: [
      ["/backups", "/backups"],
      ["s3://bucket/hub", "s3://bucket/hub"],
      ["C:/backups", "C:/backups"],
    ],
  },
  {
    flag: "--backup-every",
    of: (config) => config.backupEveryMs,
    byDefault: 86_400_000,
    values: [
      ["90m", 5_400_000],
      ["12h", 43_200_000],
      ["30s", 30_000],
    ],
  },
  {
    flag: "--backup-keep",
    of: (config) => config.backupKeep,
    byDefault: 7,
    values: [
      ["30", 30],
      ["1", 1],
      ["9999", 9_999],
    ],
  },
  {
    flag: "--backup-changes",
    of: (config) => config.backupChangesMs,
    byDefault: null,
    values: [
      ["10s", 10_000],
      ["1m", 60_000],
      ["1h", 3_600_000],
    ],
  },
  {
    flag: "--sync",
    of: (config) => config.sync,
    byDefault: "off",
    values: [
      ["on", "on"],
      ["off", "off"],
      ["strict", "strict"],
    ],
  },
  {
    flag: "--redis",
    of: (config) => config.redis,
    byDefault: null,
    values: [
      ["redis://localhost", "redis://localhost"],
      ["rediss://hub:pass@[::1]:6380/3", "rediss://hub:pass@[::1]:6380/3"],
      ["redis://:pass@redis.example/", "redis://:pass@redis.example/"],
    ],
  },
  {
    flag: "--ui",
    of: (config) => config.ui,
    byDefault: true,
    values: [
      ["off", false],
      ["on", true],
      ["off", false],
    ],
  },
  {
    flag: "--mcp",
    of: (config) => config.mcp,
    byDefault: true,
    values: [
      ["off", false],
      ["on", true],
      ["off", false],
    ],
  },
  {
    flag: "--a2a",
    of: (config) => config.a2a,
    byDefault: true,
    values: [
      ["off", false],
      ["on", true],
      ["off", false],
    ],
  },
  {
    flag: "--name",
    of: (config) => config.name,
    byDefault: null,
    values: [
      ["prod-eu", "prod-eu"],
      ["a.B_9", "a.B_9"],
      ["x".repeat(64), "x".repeat(64)],
    ],
  },
  {
    flag: "--public-url",
    of: (config) => config.publicUrl,
    byDefault: null,
    values: [
      ["https://hub.example.org", "https://hub.example.org"],
      ["HTTP://Hub.Example.org:19104/luxhub/", "http://hub.example.org:19104/luxhub"],
      ["http://[::1]:8080/", "http://[::1]:8080"],
    ],
  },
  {
    flag: "--log",
    of: (config) => config.log,
    byDefault: "pretty",
    values: [
      ["json", "json"],
      ["pretty", "pretty"],
      ["json", "json"],
    ],
  },
  {
    flag: "--log-level",
    of: (config) => config.logLevel,
    byDefault: "info",
    values: [
      ["error", "error"],
      ["warn", "warn"],
      ["debug", "debug"],
    ],
  },
  {
    flag: "--private",
    of: (config) => config.isPrivate,
    byDefault: false,
    values: [
      ["true", true],
      ["false", false],
      ["", true],
    ],
  },
  {
    flag: "--strict",
    of: (config) => config.isStrict,
    byDefault: false,
    values: [
      ["true", true],
      ["false", false],
      ["", true],
    ],
  },
  {
    flag: "--trust-proxy",
    of: (config) => config.trustProxy,
    byDefault: [],
    values: [
      ["127.0.0.1", [parseNetwork("127.0.0.1/32")]],
      ["10.0.0.0/8", [parseNetwork("10.0.0.0/8")]],
      ["fd00::/8, ::1", [parseNetwork("fd00::/8"), parseNetwork("::1/128")]],
    ],
  },
  {
    flag: "--user-header",
    of: (config) => config.userHeader,
    byDefault: null,
    values: [
      ["X-Forwarded-User", "X-Forwarded-User"],
      ["Remote-User", "Remote-User"],
      ["X-Auth-Email", "X-Auth-Email"],
    ],
  },
  {
    flag: "--webhook-allow",
    of: (config) => config.webhookAllow,
    byDefault: [],
    values: [
      ["192.168.1.7", [{ address: "192.168.1.7", prefix: 32, port: null }]],
      ["10.0.0.0/8", [{ address: "10.0.0.0", prefix: 8, port: null }]],
      [
        "127.0.0.1:9000, [::1]:9000, fd00::/8",
        [
          { address: "127.0.0.1", prefix: 32, port: 9000 },
          { address: "::1", prefix: 128, port: 9000 },
          { address: "fd00::", prefix: 8, port: null },
        ],
      ],
    ],
  },
  {
    flag: "--push-allow",
    of: (config) => config.pushAllow,
    byDefault: [],
    values: [
      ["192.168.1.7", [{ address: "192.168.1.7", prefix: 32, port: null }]],
      ["10.0.0.0/8", [{ address: "10.0.0.0", prefix: 8, port: null }]],
      ["10.1.2.3:80", [{ address: "10.1.2.3", prefix: 32, port: 80 }]],
    ],
  },
  {
    flag: "--cors",
    of: (config) => config.cors,
    byDefault: [],
    values: [
      ["https://app.example.org", ["https://app.example.org"]],
      ["HTTP://Localhost:3000/", ["http://localhost:3000"]],
      ["*, http://[::1]:8080", ["*", "http://[::1]:8080"]],
    ],
  },
  {
    flag: "--allowed-host",
    of: (config) => config.allowedHosts,
    byDefault: [],
    values: [
      ["hub.example.org", ["hub.example.org"]],
      ["Hub.Example.org.", ["hub.example.org"]],
      ["a,b", ["a", "b"]],
    ],
  },
];

const NOWHERE: Sources = { flags: {}, env: {}, file: null };

describe("flags win over the environment, and that over luxhub.toml", () => {
  test("the table has every setting", () => {
    expect(SETTINGS.map((one) => one.flag)).toEqual(SETTING_ROWS.map((row) => row.flag));
  });

  for (const { flag, of, byDefault, values } of SETTINGS)
    test(flag, () => {
      const row = SETTING_ROWS.find((one) => one.flag === flag);
      const [[inFile, meansFile], [inEnv, meansEnv], [byFlag, meansFlag]] = [
        values[0] ?? ["", 0],
        values[1] ?? ["", 0],
        values[2] ?? ["", 0],
      ];
      const isOfBackups = /^--backup-(?!to$)/.test(flag);
      const needed = isOfBackups ? { backup_to: "backups" } : {};
      const file = { ...needed, [row?.key ?? ""]: inFile };
      const env = { [row?.env ?? ""]: inEnv };
      const flags = { [flag.slice(2)]: [byFlag] };
      expect(of(readConfig(NOWHERE))).toEqual(byDefault);
      expect(of(readConfig({ ...NOWHERE, file }))).toEqual(meansFile);
      expect(of(readConfig({ ...NOWHERE, file, env }))).toEqual(meansEnv);
      expect(of(readConfig({ file, env, flags }))).toEqual(meansFlag);
      // An empty variable is none.
      expect(of(readConfig({ ...NOWHERE, file, env: { [row?.env ?? ""]: "" } }))).toEqual(meansFile);
    });

  test("a list may be repeated, or separated by commas, in every source", () => {
    const specs = ["A:127.0.0.1:1", "B:127.0.0.1:2"];
    const ports = (sources: Partial<Sources>) =>
      readConfig({ ...NOWHERE, ...sources })
        .listen.slice(1)
        .map((spec) => spec.port);
    expect(ports({ flags: { listen: specs } })).toEqual([1, 2]);
    expect(ports({ flags: { listen: [specs.join(",")] } })).toEqual([1, 2]);
    expect(ports({ env: { LUXHUB_LISTEN: specs.join(", ") } })).toEqual([1, 2]);
    expect(ports({ file: { listen: specs } })).toEqual([1, 2]);
    expect(ports({ file: { listen: specs[0] } })).toEqual([1]);
  });

  test("a switch is a word in luxhub.toml, and takes no value on the command line", async () => {
    expect(readConfig({ ...NOWHERE, file: { private: true } }).isPrivate).toBeTrue();
    expect(() => readConfig({ ...NOWHERE, env: { LUXHUB_PRIVATE: "maybe" } })).toThrow(
      "must be true or false",
    );
    const { code, stderr } = await run(["serve", "--private=true"]);
    expect([code, stderr]).toEqual([2, "luxhub: --private takes no value; see luxhub serve --help\n"]);
  });

  test("an origin with a path, and a host with a port, are refused", () => {
    for (const origin of ["app.example.org", "https://app.example.org/x", "null", "ftp://a", "https://a:443"])
      expect(() => readConfig({ ...NOWHERE, flags: { cors: [origin] } })).toThrow("an origin such as");
    for (const host of ["hub:80", "http://hub", "*.example.org"])
      expect(() => readConfig({ ...NOWHERE, flags: { "allowed-host": [host] } })).toThrow("without a port");
  });

  test("numbers in luxhub.toml need no quotes", () => {
    const config = readConfig({ ...NOWHERE, file: { port: 8080, max_file: 1000 } });
    expect([config.listen[0]?.port, config.maxFileBytes]).toEqual([8080, 1000]);
  });

  test("an address of a database that cannot be used is refused and not repeated", () => {
    for (const bad of ["mysql://u:hush@h/n", "hush", "postgres://u:hush@h:port/n"]) {
      const message = /^--database must be a URL such as postgres:(?!.*hush)/;
      expect(() => readConfig({ ...NOWHERE, flags: { database: [bad] } })).toThrow(message);
    }
  });

  test("an unknown sslmode is refused, and the address not repeated", () => {
    const database = (mode: string): string[] => [`postgres://u:hush@h/d?sslmode=${mode}`];
    const message = /^--database must be a URL whose sslmode is one of disable, (?!.*hush)/;
    expect(() => readConfig({ ...NOWHERE, flags: { database: database("foo") } })).toThrow(message);
    expect(readConfig({ ...NOWHERE, flags: { database: database("verify-full") } }).database).toContain(
      "verify-full",
    );
  });

  test("a TLS listener needs a certificate and a key", () => {
    const flags = { listen: ["A+tls:0.0.0.0:19443"] };
    expect(() => readConfig({ ...NOWHERE, flags })).toThrow(ConfigError);
    expect(() => readConfig({ ...NOWHERE, flags, env: { LUXHUB_TLS_CERT: "c.pem" } })).toThrow(ConfigError);
    const env = { LUXHUB_TLS_CERT: "c.pem", LUXHUB_TLS_KEY: "k.pem" };
    expect(readConfig({ ...NOWHERE, flags, env }).listen[1]?.tls).toBe(true);
  });
});

describe("settings through the program", () => {
  /** Starts a hub in a directory with this luxhub.toml; B answers its status with the version 1.0. */
  async function versionOf(env: Record<string, string>, args: readonly string[]): Promise<unknown> {
    using dir = new TempDir();
    writeFileSync(dir.join("luxhub.toml"), 'variant = "B"\ndata = "elsewhere"\n');
    await using hub = await Hub.start({ cwd: dir.path, env, args });
    expect(hub.program.stdout).toContain(`  Data        ${dir.join("elsewhere")}`);
    const { body } = await hub.get("/status");
    return body["version"];
  }

  test("luxhub.toml, then the environment, then the flag", async () => {
    expect(await versionOf({}, [])).toBe("1.0");
    expect(await versionOf({ LUXHUB_VARIANT: "A" }, [])).toBe("1.5");
    expect(await versionOf({ LUXHUB_VARIANT: "A" }, ["--variant", "B"])).toBe("1.0");
    expect(await versionOf({}, ["--variant=A"])).toBe("1.5");
  });

  test("several listeners over one store, each in its variant", async () => {
    using dir = new TempDir();
    const args = ["--listen", "B:127.0.0.1:0", "--listen=A:127.0.0.1:0"];
    await using hub = await Hub.start({ data: dir.join("data"), args });
    expect(hub.listeners.map((one) => one.variant)).toEqual(["A", "B", "A"]);
    await hub.register("worker-1");
    for (const { url, variant } of hub.listeners) {
      const headers = { "X-Matrix-Secret": SECRET };
      const response = await fetch(`${url}/api/v1/status`, { headers });
      expect(await response.json()).toMatchObject({ variant, nodes_count: 1 });
    }
  });

  test("--max-file is the limit of an upload", async () => {
    using dir = new TempDir();
    await using hub = await Hub.start({ data: dir.join("data"), env: { LUXHUB_MAX_FILE: "1KiB" } });
    const upload = (bytes: number) => {
      const body = new FormData();
      body.append("file", new Blob(["x".repeat(bytes)]));
      return hub.call("POST", "/file/upload", { body });
    };
    expect((await upload(1024)).status).toBe(200);
    expect((await upload(1025)).status).toBe(413);
  });
});

describe("a mistake is one line and exit code 2", () => {
  type Mistake = {
    readonly args?: readonly string[];
    readonly env?: Readonly<Record<string, string>>;
    readonly toml?: string;
    readonly says: RegExp;
    /** 2 unless it is given. */
    readonly code?: number;
  };
  const rows: readonly Mistake[] = [
    { args: ["frobnicate"], says: /unknown command "frobnicate"/ },
    { args: ["serve", "--bogus"], says: /unknown flag --bogus; see luxhub serve --help/ },
    { args: ["serve", "--prot", "1"], says: /unknown flag --prot \(did you mean --port\?\);/ },
    { args: ["serve", "--Data=x"], says: /unknown flag --Data \(did you mean --data\?\);/ },
    { args: ["sevre"], says: /unknown command "sevre" \(did you mean serve\?\); see luxhub help/ },
    { args: ["serve", "--bogus=1"], says: /unknown flag --bogus;/ },
    { args: ["serve", "-p", "1"], says: /unknown flag -p/ },
    { args: ["openapi", "--variant", "C"], says: /--variant is A or B; see luxhub openapi --help/ },
    { args: ["serve", "--", "--port"], says: /unexpected "--port"/ },
    { args: ["serve", "--help=1"], says: /--help takes no value/ },
    { args: ["serve", "--port", "1", "--port", "2"], says: /--port is given twice/ },
    { args: ["serve", "--data", "--port=1"], says: /--data needs a value; .*--data=…/ },
    { args: ["serve", "data=/x"], says: /unexpected "data=\/x"/ },
    { args: ["serve", ""], says: /unexpected ""/ },
    { args: ["serve", "--two\nlines"], says: /unknown flag --two lines/ },
    { args: ["serve", "--host", ""], says: /--host is ""/ },
    { args: ["serve", "--host", "*"], says: /--host is "\*".*an address or a name/ },
    { args: ["serve", "--host", "localhost:80"], says: /--host is "localhost:80"/ },
    { args: ["serve", "--host", "[localhost]"], says: /--host is "\[localhost\]"/ },
    { args: ["serve", "--listen", "A:::1:80"], says: /--listen is "A:::1:80"/ },
    { args: ["serve", "--listen", "A:[::1:80"], says: /--listen is "A:\[::1:80"/ },
    { args: ["serve", "--data", "~/hub"], says: /--data is "~\/hub".*without ~/ },
    { args: ["serve", "--data", "two\nlines"], says: /--data is "two\\nlines".*control characters/ },
    {
      args: ["serve", "--data", "/dev/null"],
      says: /data directory \/dev\/null: it exists and is not a directory/,
      code: 1,
    },
    {
      args: ["serve", "--data", "/dev/null/x"],
      says: /data directory \/dev\/null\/x: not a directory/,
      code: 1,
    },
    { args: ["version", "x"], says: /unexpected "x"/ },
    { args: ["version", "--data", "x"], says: /unknown flag --data/ },
    { args: ["help", "x"], says: /unknown command "x"/ },
    { args: ["help", "serve", "x"], says: /unexpected "x"/ },
    { args: ["serve", "extra"], says: /unexpected "extra"/ },
    { args: ["serve", "--port"], says: /--port needs a value/ },
    { args: ["serve", "--port", "99999"], says: /--port is "99999".*0 to 65535/ },
    { args: ["serve", "--port", "http"], says: /--port is "http"/ },
    { args: ["serve", "--variant", "C"], says: /--variant is "C".*A or B/ },
    { args: ["serve", "--listen", "B:19105"], says: /--listen is "B:19105"/ },
    { args: ["serve", "--listen", "A+tls:127.0.0.1:0"], says: /--tls-cert and --tls-key/ },
    { args: ["serve", "--tls-cert", "cert.pem"], says: /--tls-cert is given without --tls-key/ },
    { args: ["serve", "--tls-key", "key.pem"], says: /--tls-key is given without --tls-cert/ },
    { args: ["serve", "--max-file", "1GB"], says: /--max-file is "1GB"/ },
    { args: ["serve", "--max-file", "0"], says: /--max-file is "0"/ },
    { args: ["serve", "--retain", "7"], says: /--retain is "7"/ },
    { args: ["serve", "--backup-every", "daily"], says: /--backup-every is "daily".*12h or 7d/ },
    { args: ["serve", "--backup-keep", "0"], says: /--backup-keep is "0".*from 1 to 9999/ },
    { args: ["serve", "--offline-tasks", "drop"], says: /--offline-tasks is "drop".*requeue or keep/ },
    {
      args: ["serve", "--trust-proxy", "10.0.0.0/33"],
      says: /--trust-proxy is "10\.0\.0\.0\/33".*10\.0\.0\.0\/8/,
    },
    {
      args: ["serve", "--webhook-allow", "169.254.0.0/16"],
      says: /--webhook-allow is "169\.254\.0\.0\/16".*ADDRESS:PORT/,
    },
    { args: ["serve", "--trust-proxy", "localhost"], says: /--trust-proxy is "localhost"/ },
    { args: ["serve"], toml: 'trust_proxy = ["::1", 5]\n', says: /trust_proxy in luxhub\.toml is "5"/ },
    { args: ["serve", "--log", "xml"], says: /--log is "xml".*pretty or json/ },
    { args: ["serve", "--data", ""], says: /--data/ },
    { args: ["serve"], env: { LUXHUB_PORT: "x" }, says: /LUXHUB_PORT is "x"/ },
    { args: ["serve"], env: { LUXHUB_LISTEN: "B:127.0.0.1:1,C" }, says: /LUXHUB_LISTEN is "C"/ },
    { args: ["serve"], env: { LUXHUB_SECRET: "two words" }, says: /LUXHUB_SECRET must hold one word/ },
    {
      args: ["serve"],
      env: { LUXHUB_SECRET: "same", LUXHUB_ADMIN_KEY: "same" },
      says: /secret and the administrator key must not be the same/,
    },
    { args: ["serve"], toml: "colour = 1\n", says: /unknown key colour;/ },
    { args: ["serve"], toml: "max-file = 1\n", says: /unknown key max-file \(did you mean max_file\?\);/ },
    { args: ["serve"], toml: "port = -1\n", says: /port in luxhub\.toml is "-1"/ },
    { args: ["serve"], toml: "port = \n", says: /luxhub\.toml is not TOML/ },
    { args: ["serve"], toml: "redis = pass-word\n", says: /is not TOML: [^\n]*Strings must be quoted\n$/ },
    {
      args: ["serve", "--tls-cert", "none.pem", "--tls-key", "none.pem", "--port", "0"],
      says: /cannot read none\.pem \(--tls-cert\): no such file or directory/,
      code: 1,
    },
    { args: ["keys", "frobnicate"], says: /unknown command keys frobnicate;/ },
    { args: ["keys", "--data", "x", "rovoke"], says: /keys rovoke \(did you mean revoke\?\);/ },
    { args: ["keys", "list", "--bogus"], says: /unknown flag --bogus/ },
    { args: ["keys", "list", "x"], says: /unexpected "x"/ },
    { args: ["keys", "list", "--variant", "A"], says: /unknown flag --variant; see luxhub keys list --help/ },
    {
      args: ["keys", "revoke", "x", "--expires", "1d"],
      says: /unknown flag --expires; see luxhub keys revoke --help/,
    },
    { args: ["keys", "add", "x", "--admin=yes"], says: /--admin takes no value/ },
    { args: ["keys", "--data", "x"], says: /keys needs list, add, / },
    { args: ["backup"], says: /backup needs FILE;/ },
    { args: ["backup", "a", "b"], says: /unexpected "b"/ },
    { args: ["restore", "--data", "d"], says: /restore needs FILE;/ },
    { args: ["restore", "-"], says: /standard input cannot be restored: it is no whole backup/, code: 1 },
    { args: ["backup", ""], says: /the FILE is ""/ },
    { args: ["backup", "~/x"], says: /the FILE is "~\/x".*without ~/ },
    { args: ["move", "x"], says: /unexpected "x"/ },
    { args: ["move"], says: /one of --to and --from/ },
    { args: ["move", "--to", "postgres", "--to", "postgres"], says: /--to is given twice/ },
    { args: ["doctor", "--data", "a", "--data", "b"], says: /--data is given twice/ },
    { args: ["doctor", "extra"], says: /unexpected "extra"/ },
    { args: ["doctor", "--repair"], says: /unknown flag --repair/ },
  ];
  for (const { args = [], env = {}, toml, says, code: wanted = 2 } of rows)
    test(`${args.join(" ")} ${JSON.stringify(env)} ${toml ?? ""}`, async () => {
      using dir = new TempDir();
      if (toml !== undefined) writeFileSync(dir.join("luxhub.toml"), toml);
      const { code, stdout, stderr } = await run(args, { cwd: dir.path, env });
      expect({ code, stdout }).toEqual({ code: wanted, stdout: "" });
      expect(stderr).toMatch(/^luxhub: [^\n]+\n$/);
      expect(stderr).toMatch(says);
    });
});

test("keys does not generate the hub's own secret: a secret that is not on disk is in the hub's environment", async () => {
  using dir = new TempDir();
  const data = dir.join("data");
  await using _hub = await Hub.start({ data });
  await run(["keys", "list", "--data", data]);
  await run(["keys", "revoke", "primary", "--data", data]);
  expect(readdirSync(data)).not.toContain("secret");
  expect(readdirSync(data)).not.toContain("admin-key");
});

test("a port in use is one line and exit code 1", async () => {
  using dir = new TempDir();
  await using hub = await Hub.start({ data: dir.join("one") });
  const args = ["serve", "--host", "127.0.0.1", "--port", String(hub.port), "--data", dir.join("two")];
  const { code, stdout, stderr } = await run(args);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toBe(
    `luxhub: cannot listen on 127.0.0.1:${hub.port}: the port is in use; choose another with --port or --listen\n`,
  );
});

describe.concurrent("keys", () => {
  /** A hub with secrets of its own making, and `luxhub keys` beside it. */
  async function start() {
    const dir = new TempDir();
    const data = dir.join("data");
    const hub = await Hub.start({ data, ownSecrets: false });
    const keys = (...args: readonly string[]) => run(["keys", ...args, "--data", data]);
    const add = async (...args: readonly string[]): Promise<string> => {
      const { code, stdout, stderr } = await keys("add", ...args);
      expect([code, stderr]).toEqual([0, expect.stringMatching(/^This is the secret of \S+\. [^\n]+\n$/)]);
      expect(stdout).toMatch(/^\S+\n$/); // only the secret: SECRET=$(luxhub keys add …)
      return stdout.trim();
    };
    const statusWith = async (secret: string): Promise<number> =>
      (await hub.get("/lux/ledger?node_id=worker-7", { headers: { "X-Matrix-Secret": secret } })).status;
    /** Asks so seldom that the wrong secrets do not count as guessing. */
    const soon = (holds: () => Promise<boolean>) => until(holds, HANG_MS, 500);
    await hub.register("worker-7");
    return {
      hub,
      data,
      keys,
      add,
      statusWith,
      soon,
      [Symbol.asyncDispose]: async () => {
        await hub[Symbol.asyncDispose]();
        dir[Symbol.dispose]();
      },
    };
  }

  test("add, list and revoke, while the hub runs", async () => {
    await using at = await start();
    const secret = await at.add("fleet-2027");
    expect(secret).toMatch(/^[\w-]{32}$/);
    await at.soon(async () => (await at.statusWith(secret)) === 200);
    const listed = await at.keys("list");
    expect(listed.stdout).toMatch(/^NAME +ROLE +VARIANT +NODE +MINT +EXPIRES +STATE +USED\n/);
    expect(listed.stdout).toMatch(/\nprimary +full +- +- +- +never +valid +-\n/);
    expect(listed.stdout).toMatch(/\nprimary-admin +admin +- +- +- +never +valid +-\n/);
    expect(listed.stdout).toMatch(/\nfleet-2027 +full +- +- +- +never +valid +-\n/);
    expect(listed.stdout).not.toContain(secret);
    expect(listed.stdout).not.toContain(at.hub.secret);
    expect((await at.keys("revoke", "fleet-2027")).stdout).toBe("fleet-2027 is revoked\n");
    await at.soon(async () => (await at.statusWith(secret)) === 401);
    expect((await at.keys("list")).stdout).toMatch(/\nfleet-2027 .* revoked +-\n/);
    const adminKey = (await Bun.file(`${at.data}/admin-key`).text()).trim();
    const shown = await at.hub.get("/key/list", { headers: { "X-Admin-Key": adminKey } });
    expect(JSON.parse((await at.keys("list", "--json")).stdout)).toEqual(shown.body["keys"]);
    const { secret: robot, ...added } = JSON.parse(
      (await at.keys("add", "robot", "--node", "worker-7", "--json")).stdout,
    );
    expect(added).toMatchObject({ name: "robot", node_id: "worker-7", state: "valid" });
    await at.soon(async () => (await at.statusWith(robot)) === 200);
  });

  test("the first secret can be changed without downtime", async () => {
    await using at = await start();
    const secret = await at.add("fleet-2027");
    await at.soon(async () => (await at.statusWith(secret)) === 200);
    expect(await at.statusWith(at.hub.secret)).toBe(200);
    const revoked = await at.keys("revoke", "primary");
    expect(revoked.stderr).toContain(`in ${at.data}/secret. Delete that file`);
    await at.soon(async () => (await at.statusWith(at.hub.secret)) === 401);
    expect(await at.statusWith(secret)).toBe(200);
  });

  test("a pinned key is answered in its variant on any listener, until it is unpinned", async () => {
    await using at = await start();
    const secret = await at.add("fleet-b", "--variant", "B");
    const variant = async (): Promise<unknown> =>
      (await at.hub.get("/status", { headers: { "X-Matrix-Secret": secret } })).body["variant"];
    await at.soon(async () => (await variant()) === "B");
    expect((await at.keys("pin", "fleet-b", "none")).stdout).toBe("fleet-b is pinned to no variant\n");
    await at.soon(async () => (await variant()) === "A");
    await at.keys("pin", "fleet-b", "B");
    await at.soon(async () => (await variant()) === "B");
  });

  test("a bound key acts for its node only; an admin key calls the administrator's endpoints", async () => {
    await using at = await start();
    const secret = await at.add("robot", "--node", "worker-7");
    const admin = await at.add("chief", "--admin");
    await at.soon(async () => (await at.statusWith(secret)) === 200);
    const headers = { "X-Matrix-Secret": secret };
    const other = await at.hub.post("/node/register", { node_id: "worker-8", name: "x" }, { headers });
    expect([other.status, other.body["error"]]).toEqual([403, "key_bound_to_other_node"]);
    const remove = () =>
      at.hub.post("/task/delete", { task_id: "none" }, { headers: { "X-Admin-Key": admin } });
    await at.soon(async () => (await remove()).status === 404);
    expect(await at.statusWith(admin)).toBe(401);
  });

  test("a key expires, and can get a new expiry", async () => {
    await using at = await start();
    const secret = await at.add("guest", "--expires", "12h");
    await at.soon(async () => (await at.statusWith(secret)) === 200);
    expect((await at.keys("expire", "guest", "2001-02-03")).stdout).toBe(
      "guest expires at 2001-02-03T00:00:00.000Z\n",
    );
    await at.soon(async () => (await at.statusWith(secret)) === 401);
    expect((await at.keys("list")).stdout).toMatch(/\nguest .* 2001-02-03T00:00:00\.000Z +expired +-\n/);
    const before = Date.now();
    const { stdout } = await at.keys("expire", "guest", "90s");
    const [, end = ""] = /^guest expires at (\S+)\n$/.exec(stdout) ?? [];
    expect(Date.parse(end) - 90_000).toBeWithin(before, Date.now() + 1);
    await at.keys("expire", "guest", "never");
    await at.soon(async () => (await at.statusWith(secret)) === 200);
  });

  test("of two concurrent adds of one name, one succeeds", async () => {
    await using at = await start();
    const ended = await Promise.all(Array.from({ length: 4 }, () => at.keys("add", "twin")));
    expect(ended.map(({ code }) => code).toSorted()).toEqual([0, 5, 5, 5]);
    for (const { code, stderr } of ended) {
      if (code !== 0)
        expect(stderr).toBe("luxhub: The key name twin is already in use, or was. Choose another name.\n");
    }
    const secret = ended.find(({ code }) => code === 0)?.stdout.split("\n")[0] ?? "";
    await at.soon(async () => (await at.statusWith(secret)) === 200); // the one that was told its secret has it
  });

  test("keys neither migrates a database nor checkpoints its log", async () => {
    await using at = await start();
    const path = `${at.data}/luxhub.db`;
    const log = () => readFileSync(`${path}-wal`).length;
    await at.add("before");
    const bytes = log();
    expect(bytes).toBeGreaterThan(0);
    expect((await at.keys("list")).code).toBe(0);
    expect(log()).toBeGreaterThanOrEqual(bytes); // not written back under the hub, which may itself write
    await at.hub.stop();
    const db = new Database(path);
    db.run("PRAGMA user_version = 0");
    db.close();
    const { code, stderr } = await at.keys("list");
    expect([code, stderr]).toEqual([
      1,
      `luxhub: the database is of schema 0, and this luxhub knows ${SQLITE_SCHEMA.version}: use the one that the hub runs\n`,
    ]);
  });

  test("an error is one line, with the exit code of its kind", async () => {
    await using at = await start();
    await at.add("once");
    const rows: readonly (readonly [args: readonly string[], code: number, says: RegExp])[] = [
      [["add"], 2, /keys add needs NAME;/],
      [["add", "a b"], 2, /a NAME is/],
      [["add", "x", "--variant", "C"], 2, /it must be A, B/],
      [["add", "x", "--node", "a b"], 2, /no node_id/],
      [["add", "x", "--expires", "soon"], 2, /no time/],
      [["add", "x", "--expires", "2001-02-03"], 2, /--expires is in the past/],
      [["add", "once"], 5, /key name once is already in use/],
      [["pin", "once"], 2, /keys pin needs NAME A\|B\|none;/],
      [["pin", "none-such", "A"], 3, /no key none-such/],
      [["expire", "once", "tomorrow"], 2, /no time/],
      [["revoke", "none-such"], 3, /no key none-such/],
      [["expire", "ended", "never"], 5, /ended is revoked, and stays so/],
      [["pin", "ended", "B"], 5, /ended is revoked, and stays so/],
    ];
    await at.add("ended");
    await at.keys("revoke", "ended");
    expect((await at.keys("revoke", "ended")).stdout).toBe("ended is revoked\n"); // and again
    for (const [args, code, says] of rows) {
      const ended = await at.keys(...args);
      expect([args, ended.code, ended.stdout]).toEqual([args, code, ""]);
      expect(ended.stderr).toMatch(/^luxhub: [^\n]+\n$/);
      expect(ended.stderr).toMatch(says);
    }
    const nowhere = await run(["keys", "list", "--data", "/nowhere/at/all"]);
    expect([nowhere.code, nowhere.stdout]).toEqual([1, ""]);
    expect(nowhere.stderr).toMatch(/^luxhub: there is no hub in \/nowhere\/at\/all; [^\n]+\n$/);
  });
});
