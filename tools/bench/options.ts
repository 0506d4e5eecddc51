// The bench's command line and its usage text.
import { parseArgs } from "node:util";
import { tmpdir } from "node:os";
import { REQUESTS } from "./growth/growth.ts";
import { whole } from "./markdown.ts";
import { SCENARIOS } from "./scenarios.ts";

export const MEMORY = "memory";
export const START = "start";

export const STREAMS = "streams";
export const NEXT = "next";
export const WAKE = "wake";
export const LOG = "log";

/** Compares the hub with a bare server, with itself and a large store, with other queues, or with others on PostgreSQL. */
export type Mode = "echo" | "growth" | "peers" | "postgres";

export type Options = {
  mode: Mode;
  seconds: number;
  rounds: number;
  connections: number[];
  /** Scenario names, or the name of another table. */
  only: string[];
  /** How the hub is run, without `serve`. */
  hub: string[];
  dataRoot: string;
  json: boolean;
  record: boolean;
};

const NAMES = [...SCENARIOS.map(({ name }) => name), MEMORY, START, STREAMS, NEXT, WAKE, LOG];

const CONNECTIONS: Readonly<Record<Mode, string>> = {
  echo: "64,256",
  growth: "64",
  peers: "256",
  postgres: "64,256",
};

const USAGE = `bun run bench [flags]   measures luxhub on 127.0.0.1, and prints the tables of docs/benchmarks.md

                      without one of the next three flags: compares the hub with a bare Bun.serve
  --growth            compares a store of 1,000,000 tasks, 10,000 nodes and 1,000,000 messages with a store of
                      1,000 tasks; takes about 3 minutes and 5 GiB of disk
  --peers             compares the hub with other queues at their most durable: bunqueue, BullMQ on Redis,
                      beanstalkd; installs them into a temporary folder, if possible (npm; Debian's packages)
  --postgres          compares two hubs on a new PostgreSQL with pg-boss and graphile-worker on the same server;
                      installs these libraries into a temporary folder (npm)

  --seconds N         length of a round (default 2); a round of --growth is ${whole(REQUESTS)} requests
  --rounds N          rounds of each system, in turns (default 3)
  --connections N,M   callers at once (default ${CONNECTIONS.echo}); one number for --growth (${CONNECTIONS.growth}) and --peers (${CONNECTIONS.peers})
  --only NAME,NAME    of ${NAMES.join(", ")} (default all); only for the bare Bun.serve
  --hub COMMAND       how to run the hub (default "bun src/main.ts"), e.g. --hub dist/luxhub
  --data-root DIR     directory of all data during the run (default ${tmpdir()}); choose a real disk
  --json              JSON instead of Markdown
  --record            keeps the tables in tools/recorded/figures.json, with which a test compares the pages; of the
                      scenarios all or none`;

/** Parses the arguments after the file's name. Ends the process on --help (0) and on a mistake (2). */
export function parseOptions(argv: string[]): Options {
  try {
    const { values } = parseArgs({
      args: argv,
      options: {
        seconds: { type: "string", default: "2" },
        rounds: { type: "string", default: "3" },
        connections: { type: "string" },
        only: { type: "string", default: NAMES.join(",") },
        hub: { type: "string", default: "bun src/main.ts" },
        "data-root": { type: "string", default: tmpdir() },
        json: { type: "boolean", default: false },
        record: { type: "boolean", default: false },
        growth: { type: "boolean", default: false },
        peers: { type: "boolean", default: false },
        postgres: { type: "boolean", default: false },
        help: { type: "boolean", default: false },
      },
    });
    if (values.help) {
      console.log(USAGE);
      process.exit(0);
    }
    const [mode = "echo", another] = (["growth", "peers", "postgres"] as const).filter(
      (name) => values[name],
    );
    if (another) throw new Error(`--${mode} and --${another} are two runs`);
    const only = values.only.split(",").map(parseName);
    const missing = SCENARIOS.filter(({ name }) => !only.includes(name));
    if (values.record && missing.length > 0 && missing.length < SCENARIOS.length)
      throw new Error("--record needs all scenarios, or none");
    return {
      mode,
      seconds: parseNumber("--seconds", values.seconds, 0.1, 60),
      rounds: parseCount("--rounds", values.rounds, 100),
      connections: (values.connections ?? CONNECTIONS[mode])
        .split(",")
        .map((text) => parseCount("--connections", text, 4_096)),
      only,
      hub: values.hub.split(" ").map((word, at) => (at === 0 && word === "bun" ? process.execPath : word)),
      dataRoot: values["data-root"],
      json: values.json,
      record: values.record,
    };
  } catch (error) {
    console.error(`bench: ${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
    process.exit(2);
  }
}

function parseNumber(flag: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (text.trim() === "" || !(value >= least && value <= most)) {
    throw new Error(`${flag} takes ${least} to ${most}, not "${text}"`);
  }
  return value;
}

function parseCount(flag: string, text: string, most: number): number {
  const value = parseNumber(flag, text, 1, most);
  if (!Number.isInteger(value)) throw new Error(`${flag} takes whole numbers, not "${text}"`);
  return value;
}

function parseName(name: string): string {
  if (!NAMES.includes(name)) throw new Error(`--only knows ${NAMES.join(", ")}, not "${name}"`);
  return name;
}
