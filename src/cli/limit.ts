/**
 * `luxhub limit …`: sets, lists, deletes and holds limits. `luxhub pause`, `resume` and `pauses`: what is not handed
 * out.
 */
import type { Environment } from "../config.ts";
import { UsageError } from "./arguments.ts";
import { EXIT } from "./exit-codes.ts";
import { type Remote, type Run, printRows, runGroup, runRemote } from "./remote.ts";
import { writeLine } from "./standard-output.ts";
import { plain, printJson } from "./table.ts";

type Command = (argv: readonly string[], env: Environment) => Promise<number>;

export const limitCommand: Command = (argv, env) => runGroup("limit", LIMIT_RUNS, argv, env);
export const pauseCommand: Command = (argv, env) => runRemote("pause", pause, argv, env);
export const resumeCommand: Command = (argv, env) => runRemote("resume", resume, argv, env);
export const pausesCommand: Command = (argv, env) => runRemote("pauses", pauses, argv, env);

const LIMIT_RUNS: Readonly<Record<string, Run>> = {
  "limit set": async (remote) => {
    const { hub, values, json } = remote;
    const { limit } = await hub.limits.set({
      key: keyOf(remote, "limit set"),
      running: values.whole("running"),
      per_minute: values.whole("per-minute"),
    });
    if (json) printJson(limit);
    return json ? EXIT.OK : writeLine(`${plain(limit.key || "(none)")}  set`);
  },
  "limit list": (remote) =>
    printRows(remote, {
      load: async (page) => {
        const { limits, pages } = await remote.hub.limits.list(page);
        return { rows: limits, pages };
      },
      nameOf: ({ key }) => key,
      none: "There are no limits.",
      head: ["KEY", "RUNNING", "OF", "LAST MINUTE", "OF", "HELD UNTIL", "HELD BY"],
      cells: (limit) => [
        plain(limit.key || "(none)"),
        limit.running_now,
        limit.running,
        limit.last_minute,
        limit.per_minute,
        limit.held_until,
        limit.held_by,
      ],
    }),
  "limit delete": async (remote) => {
    const { limit } = await remote.hub.limits.delete({ key: keyOf(remote, "limit delete") });
    if (remote.json) printJson(limit);
    return remote.json ? EXIT.OK : writeLine(`${plain(limit.key || "(none)")}  deleted`);
  },
  "limit hold": async (remote) => {
    const { hub, values, json } = remote;
    values.needed("for");
    const { limit } = await hub.limits.hold({
      key: keyOf(remote, "limit hold"),
      for_s: values.seconds("for") ?? 0,
      node_id: values.text("node"),
    });
    if (json) printJson(limit);
    return json ? EXIT.OK : writeLine(`${plain(limit.key || "(none)")}  held until ${limit.held_until}`);
  },
};

function keyOf({ words: [key, extra] }: Remote, command: string): string {
  if (key === undefined) throw new UsageError(`${command} needs a KEY`, command);
  if (extra !== undefined) throw new UsageError(`unexpected ${JSON.stringify(extra)}`, command);
  return key;
}

const pause: Run = async ({ hub, values, json }) => {
  const { pause: paused } = await hub.limits.pause({ ...subjectOf(values), reason: values.text("reason") });
  if (json) printJson(paused);
  return json ? EXIT.OK : writeLine(`${plain(nameOf(paused))}  paused`);
};

const resume: Run = async ({ hub, values, json }) => {
  const { pause: ended } = await hub.limits.resume(subjectOf(values));
  if (json) printJson(ended);
  return json ? EXIT.OK : writeLine(`${plain(nameOf(ended))}  resumed`);
};

const pauses: Run = (remote) =>
  printRows(remote, {
    load: async (page) => {
      const answer = await remote.hub.limits.pauses(page);
      return { rows: answer.pauses, pages: answer.pages };
    },
    nameOf,
    none: "Nothing is paused.",
    head: ["PAUSED", "SINCE", "REASON"],
    cells: (paused) => [plain(nameOf(paused)), paused.at, plain(paused.reason ?? "")],
  });

function subjectOf(values: Remote["values"]) {
  return {
    type: values.text("type"),
    limit_key: values.text("limit-key"),
    creator_node: values.text("creator"),
  };
}

function nameOf({ scope, value }: { readonly scope: string; readonly value: string | null }): string {
  return scope === "hub" ? "the hub" : `${scope.replace("_", " ")} ${value ?? "(none)"}`;
}
