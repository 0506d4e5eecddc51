/**
 * Declares every command: its words, its flags and a one-line summary. The grammar of the command line, the help, the
 * manual page, the completions and "did you mean" come from here. Must not: import the code that runs a command.
 */
import { SETTING_ROWS } from "../config.ts";
import { EVENT_KINDS } from "../domain/event.ts";
import { KEY_ROLES, SEND_TYPES } from "../domain/model.ts";
import type { Form } from "./arguments.ts";

/** The clients of `luxhub mcp-config`; the last one is no client. */
export const MCP_CLIENTS = ["claude", "codex", "cursor", "gemini", "vscode", "zed", "agents-md"] as const;

export type Flag = {
  /** The placeholder of its value; a flag without one is a switch. */
  readonly value?: string;
  readonly help: string;
  /** One letter, for -o. */
  readonly short?: string;
  readonly multiple?: boolean;
  /** The allowed values, if they are few. */
  readonly choices?: readonly string[];
  readonly isPath?: boolean;
};

export type Command = {
  /** The full name: "backup", "task add". */
  readonly name: string;
  /** The positional arguments: see Form. */
  readonly words: string;
  /** What it does, in one line without a full stop. */
  readonly summary: string;
  readonly flags: Readonly<Record<string, Flag>>;
  /** Further paragraphs of its help. */
  readonly about?: string;
  /** Whether it is a client of a hub, on this machine or another. */
  readonly isRemote?: boolean;
};

const DATA: Flag = { value: "DIR", help: "the data directory (LUXHUB_DATA; ./luxhub-data)", isPath: true };
const PLACE: Command["flags"] = {
  data: DATA,
  database: { value: "URL", help: "the hub's PostgreSQL, if it has one (LUXHUB_DATABASE)" },
};
export const REMOTE_FLAGS: Command["flags"] = {
  json: { help: "print JSON" },
  url: { value: "URL", help: "the hub (LUXHUB_URL); without it, the hub that runs on --data" },
  "secret-file": { value: "FILE", help: "a file that holds the secret (or LUXHUB_SECRET)", isPath: true },
  data: DATA,
};

const LIMIT: Flag = { value: "N", help: "how many rows at most (50; with --json all)" };
const NODE: Flag = { value: "NODE", help: "the node to act for" };
const PER: Flag = {
  value: "PERIOD",
  help: "day, month (both in UTC) or total",
  choices: ["day", "month", "total"],
};
const PAUSED: Command["flags"] = {
  type: { value: "TYPE", help: "the tasks of a type" },
  "limit-key": { value: "KEY", help: "the tasks with a limit key" },
  creator: { value: "NODE", help: "the tasks that a node has created" },
};
const IF_VERSION: Flag = { value: "N", help: "only if the note has this version; 0: if there is none" };
const PREFIX: Flag = { value: "TEXT", help: "only keys that begin with this" };
const LEASE_TASK: Flag = { value: "ID", help: "only leases for this task" };
const FENCING: Flag = { value: "N", help: "only the lease with this fencing number" };
const EPOCH: Flag = {
  value: "N",
  help: "the epoch of the lease: 409 stale_lease if the task was handed out again since",
};

/** Clients of a hub without --json, because they print no record, or only JSON. */
const NO_JSON: readonly string[] = ["file get", "lux export", "worker", "mcp", "mcp-config"];

function remote(
  name: string,
  words: string,
  summary: string,
  flags: Command["flags"] = {},
  about = "",
): Command {
  const { json, ...place } = REMOTE_FLAGS;
  const all = { ...flags, ...(json && !NO_JSON.includes(name) && { json }), ...place };
  return { name, words, summary, flags: all, isRemote: true, ...(about !== "" && { about }) };
}

const LUX_ABOUT = `luxhub lux export, head and verify are about the ledger of all nodes; see luxhub lux verify --help.`;

const VERIFY_ABOUT = `FILE is an export (luxhub lux export); without it, or for -, standard input. Every entry has the
SHA-256 of itself and of the hash before it. So one changed digit is found, and a missing, moved or added entry. With
--head it also finds that the ledger was rewritten, or that entries are missing at its end.
Exit code 1: the export is not intact.

luxhub lux export | luxhub lux verify --head 5f2c…`;

const ADMIN_ABOUT = "Needs the administrator key (LUXHUB_ADMIN_KEY, or the one in the data directory).";

const INVITE_ABOUT = `The line has the hub's URL, a token for one use and, with serve --tls auto, the hash of the hub's key, which
the joining machine checks before it sends anything. ${ADMIN_ABOUT}

luxhub invite worker-2 --expires 10m`;

const JOIN_ABOUT = `Makes a key that is bound to the node, and stores it with the hub's URL in ~/.config/luxhub/hub.json (or the
file of LUXHUB_JOINED), for this user only. From then on the commands that call a hub need nothing else here:

luxhub worker -- ./work.sh`;

const WORKER_ABOUT = `The command gets the task as JSON on standard input, and as LUXHUB_TASK_ID, LUXHUB_TASK_TITLE,
LUXHUB_TASK_TYPE, LUXHUB_TASK_DESCRIPTION and LUXHUB_TASK_EPOCH; also LUXHUB_NODE_ID and LUXHUB_URL.

Its exit code: 0    completed; standard output is the result: a JSON object with problem, improvement
                    and lesson, or any text
               75   failed; retried as the task specifies. Every other code means the same
               65   failed permanently
The last lines of standard error are the error.

SIGTERM or Ctrl-C: the worker takes no more tasks, finishes those it has, and exits. A second signal
ends the commands and gives their tasks back. The log goes to standard error.

luxhub worker --node worker-1 -- sh -c 'echo "Hello, $LUXHUB_TASK_TITLE"'

With --agent the program of an AI agent does each task, in a directory of its own. It is only started when there is a
task: waiting costs no tokens. When a task is tried again, its session goes on.

luxhub worker --agent claude`;

const MCP_ABOUT = `The client starts it, writes a JSON-RPC message in each line of standard input, and reads the
responses from standard output. It ends with standard input. While the hub is unreachable, it repeats
the requests for up to 5 minutes.

luxhub mcp --url https://hub.example.org --secret-file ~/.config/luxhub/agent-1.secret`;

const MCP_CONFIG_ABOUT = `With the administrator key (LUXHUB_ADMIN_KEY, or the one in the data directory) it creates a key that
is bound to the node. Else it takes the secret of LUXHUB_SECRET; always that of --secret-file.
agents-md prints a paragraph for the AGENTS file of a project, and calls no hub.

luxhub mcp-config claude --node agent-1 --write`;

const SERVE_ABOUT = `Each flag is also an environment variable (--max-file is LUXHUB_MAX_FILE) and a key in ./luxhub.toml
(max_file). A repeatable flag also takes a comma-separated list, and in luxhub.toml a list. Flags win over
the environment, the environment over luxhub.toml.

Prefer LUXHUB_DATABASE to --database: everyone on the machine can read a command line, and the URL
holds a password.

LUXHUB_SECRET and LUXHUB_ADMIN_KEY set the secrets; without them the first start makes secrets and
stores them in the data directory.`;

const BACKUP_ABOUT = `FILE is  hub.tar                a new file; it has a temporary name until it is complete
         backups/               a directory: the file's name is its time, luxhub-20270131T020000Z.tar
         -                      standard output
         s3://BUCKET/hub.tar    an object in a storage that speaks the S3 protocol
         s3://BUCKET/PREFIX/    the same, with its time as name

The backup is a tar archive, a consistent snapshot of the database, the files and the secrets. Only
its owner can read the file. There must be room for a copy of the rows: next to FILE, else in the
data directory. Only secrets in the data directory are in it. The storage's address and credentials
come from S3_ENDPOINT, S3_REGION, S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY (or AWS_…).

It is the same for a hub on SQLite and one on PostgreSQL, and either restores it.`;

const RESTORE_ABOUT = `FILE is a file, s3://BUCKET/KEY, or - for standard input.

A hub on SQLite: the directory must be empty, or must not exist. A hub on PostgreSQL (LUXHUB_DATABASE,
or database in ./luxhub.toml): the database, or its schema, must be empty; the secrets go into the
data directory unless it has its own. All checksums are verified before anything is visible. Then
start the hub.`;

const MOVE_ABOUT = `postgres is the database that LUXHUB_DATABASE names (or database in ./luxhub.toml). You can give a URL
instead, postgres://USER:PASSWORD@HOST/NAME; but everyone on the machine can read a command line.

All rows and the bytes of all files are copied and compared. No hub may run on either side. The
target must be empty: nothing is overwritten, nothing is merged. The source is not changed. An
interrupted move leaves no hub on the target: run the same command again. The secrets stay in the
data directory, which a hub on PostgreSQL has too.`;

/** Flags of a new task. */
const NEW_TASK = {
  description: { value: "TEXT", help: "what to do; - reads standard input", short: "d" },
  type: { value: "TYPE", help: "the capability that a node needs for it" },
  priority: {
    value: "P",
    help: "p0 (first), p1, p2 or p5; also high, medium, low",
    choices: ["p0", "p1", "p2", "p5"],
  },
  reward: { value: "N", help: "LUX for the node that completes it" },
  creator: { value: "NODE", help: "the node that creates it; its event stream shows the task" },
} as const;

const ATTEMPTS = {
  timeout: { value: "TIME", help: "how long a node may hold it without extending its lease" },
  "max-run": { value: "TIME", help: "how long one attempt may take in all, extended or not" },
  retain: { value: "TIME", help: "how long the task is kept after its end (see serve --retain-tasks)" },
  review: { value: "WHO", help: "who checks the result: creator, node:ID or capability:WORD" },
  "review-within": { value: "TIME", help: "how long a result waits for its review (7d)" },
  "on-review-timeout": {
    value: "WORD",
    help: "when nobody has reviewed it in time: pay (the default) or reject",
    choices: ["pay", "reject"],
  },
  quorum: {
    value: "N[/M]",
    help: "several nodes do the task: N results must agree, of at most M (a majority of M)",
  },
  compare: { value: "WHAT", help: "what must agree: output (the default) or json:/POINTER[,…]" },
  "max-cost": { value: "USD", help: "the dollars that all attempts together may cost" },
  "max-attempts": { value: "N", help: "how many attempts before the task fails permanently" },
  backoff: {
    value: "TIME",
    help: "the delay before the second attempt (5s); it doubles with each attempt",
  },
} as const;

/** Flags that select tasks. */
const SELECTED_TASKS = {
  status: {
    value: "S",
    help: "only tasks of this status",
    choices: ["open", "assigned", "pending", "completed", "failed"],
  },
  node: { value: "NODE", help: "only tasks that this node holds or completed" },
  creator: { value: "NODE", help: "only tasks that this node created" },
  type: { value: "TYPE", help: "only tasks of this type" },
  group: { value: "NAME", help: "only tasks of this group" },
  tag: { value: "WORD", help: "only tasks with this tag" },
} as const;

/** Which nodes may have a task, and which limit holds for it. */
const LANE = {
  requires: {
    value: "LIST",
    help: "what its node must have: words and amounts of resources, as cuda12,gpu=1,vram_gib=10",
  },
  "limit-key": { value: "KEY", help: "the key of its limit, in place of its type" },
} as const;

export const COMMANDS: readonly Command[] = [
  {
    name: "serve",
    words: "",
    summary: "start the hub",
    flags: Object.fromEntries(
      SETTING_ROWS.map(({ flag, value, help, fallback, multiple, isSwitch }) => [
        flag.slice(2),
        {
          help: fallback === null ? help : `${help} (${fallback})`,
          multiple,
          ...(!isSwitch && { value }),
          ...(/^[a-zA-Z]+(?:\|[a-zA-Z]+)+$/.test(value) && { choices: value.split("|") }),
          ...(/^(?:DIR|FILE)$/.test(value) && { isPath: true }),
        },
      ]),
    ),
    about: SERVE_ABOUT,
  },
  {
    name: "demo",
    words: "",
    summary: "start a hub with six simulated nodes, to try it; its data is removed at the end",
    flags: {
      port: { value: "PORT", help: "the port on 127.0.0.1; without it the first free one from 19114 on" },
    },
    about: `Open the URL that it prints first, and sign in with the secret below it. It runs until Ctrl-C. It reads
no setting: neither LUXHUB_ variables nor luxhub.toml.`,
  },
  remote("status", "", "the health of the hub, and counts", {}, "Exit code 1: the hub cannot write."),
  remote(
    "top",
    "",
    "the hub live: the running tasks and the online nodes",
    {
      interval: { value: "TIME", help: "the refresh interval (2s)" },
      once: { help: "print the state once and exit" },
    },
    "q or Ctrl-C ends it. If standard output is no terminal, it prints the state once and exits.",
  ),
  remote(
    "lessons",
    "[WORDS]",
    "what the workers of completed tasks have learned, newest first",
    { type: { value: "TYPE", help: "only from tasks of this type" }, limit: LIMIT },
    "WORDS search the lessons and the titles of their tasks: luxhub lessons 'login cookie'",
  ),
  remote("questions", "", "the open questions of all tasks, the most urgent first", { limit: LIMIT }),
  remote("reviews", "", "the results that wait for a review, the most urgent first", { limit: LIMIT }),
  remote("usage", "", "what work has cost in tokens and dollars", {
    by: {
      value: "WHAT",
      help: "day (the default), node, creator, type, model or group",
      choices: ["day", "node", "creator", "type", "model", "group"],
    },
    since: { value: "DAY", help: "the first day in UTC, as 2030-01-31; 29 days before the last" },
    until: { value: "DAY", help: "the last day; today" },
    limit: LIMIT,
  }),
  remote(
    "budget set",
    "[SCOPE VALUE]",
    "limit what work may cost",
    {
      per: PER,
      "cost-usd": { value: "USD", help: "the dollars" },
      tokens: { value: "N", help: "the tokens, input and output together" },
      "on-limit": {
        value: "WHAT",
        help: "pause (the default): its tasks are not handed out; warn: only an event",
        choices: ["pause", "warn"],
      },
    },
    `SCOPE is hub, or node, creator, type or group with a VALUE; creator and type without one are the tasks without a
creator or type. ${ADMIN_ABOUT}`,
  ),
  remote(
    "webhook put",
    "NAME URL",
    "create or replace a webhook, which sends events to a URL; prints the secret that signs them, once",
    {
      kind: {
        value: "KIND",
        help: "only events of this kind, repeatable",
        multiple: true,
        choices: EVENT_KINDS,
      },
      task: { value: "ID", help: "only events of this task" },
      node: { value: "NODE", help: "only events of this node" },
      creator: { value: "NODE", help: "only events of the tasks that this node created" },
      group: { value: "NAME", help: "only events of the tasks of this group" },
      format: {
        value: "FORMAT",
        help: "luxhub (the default): JSON, signed; ntfy: notifications for people; a2a: as A2A pushes",
        choices: ["luxhub", "ntfy", "a2a"],
      },
      "secret-env": {
        value: "NAME",
        help: "environment variable with the secret to use: whsec_…, or the access token of ntfy",
      },
    },
    `The hub must reach the URL: it calls no loopback or link-local address, and a private network only if serve names it
with --webhook-allow. ${ADMIN_ABOUT}`,
  ),
  remote(
    "webhook list",
    "",
    "all webhooks, and what became of their deliveries",
    { limit: LIMIT },
    ADMIN_ABOUT,
  ),
  remote("webhook test", "NAME", "send a test message now, and say what came of it", {}, ADMIN_ABOUT),
  remote(
    "webhook resume",
    "NAME",
    "deliver again, from the first event that was not delivered",
    {
      after: {
        value: "N",
        help: "from the events after this id instead: to leave some out, or to send some again",
      },
    },
    ADMIN_ABOUT,
  ),
  remote("webhook delete", "NAME", "delete a webhook", {}, ADMIN_ABOUT),
  remote("budget list", "", "all budgets, and what is spent of them", { limit: LIMIT }, ADMIN_ABOUT),
  remote("budget delete", "[SCOPE VALUE]", "delete a budget", { per: PER }, ADMIN_ABOUT),
  remote(
    "limit set",
    "[KEY]",
    "limit how many tasks of a key run at once, or start in a minute",
    {
      running: { value: "N", help: "how many may be assigned at once" },
      "per-minute": { value: "N", help: "how many may be handed out in any 60 s" },
    },
    `The KEY of a task is its limit_key or, without one, its type. ${ADMIN_ABOUT}`,
  ),
  remote("limit list", "", "all limits and holds, and what is used of them", { limit: LIMIT }, ADMIN_ABOUT),
  remote("limit delete", "[KEY]", "delete a limit, and end its hold", {}, ADMIN_ABOUT),
  remote("limit hold", "[KEY]", "hand out no task of a key for a time", {
    for: { value: "SECONDS", help: "how long, at most 3600" },
    node: NODE,
  }),
  remote(
    "pause",
    "",
    "hand out no tasks: of a type, a limit key, a creator, or at all",
    { ...PAUSED, reason: { value: "TEXT", help: "why" } },
    ADMIN_ABOUT,
  ),
  remote("resume", "", "end a pause", PAUSED, ADMIN_ABOUT),
  remote("pauses", "", "what is paused", { limit: LIMIT }, ADMIN_ABOUT),
  remote("lux", "NODE", "the balance and the ledger of a node", { limit: LIMIT }, LUX_ABOUT),
  remote(
    "lux export",
    "",
    "the ledger of all nodes, oldest first, a line of JSON each",
    {},
    "luxhub lux export > ledger.jsonl",
  ),
  remote("lux head", "", "the number and the hash of the newest entry of the ledger: note it for lux verify"),
  {
    name: "lux verify",
    words: "[FILE]",
    summary: "verify an exported ledger, without a hub: nothing in it was changed, removed or added",
    flags: {
      head: { value: "HASH", help: "a hash that lux head or a receipt showed: its entry must be there" },
    },
    about: VERIFY_ABOUT,
  },
  remote(
    "events",
    "",
    "the event log",
    {
      follow: { help: "keep printing new events; with --json one line of JSON for each", short: "f" },
      kind: {
        value: "KIND",
        help: "only events of this kind, repeatable",
        multiple: true,
        choices: EVENT_KINDS,
      },
      since: { value: "N", help: "events after this id; without it the newest" },
      task: { value: "ID", help: "only events of this task" },
      node: { value: "NODE", help: "only events of this node" },
      group: { value: "NAME", help: "only events of the tasks of this group, and its end" },
      tag: { value: "WORD", help: "only events of tasks with this tag" },
      limit: { value: "N", help: "how many at most (50; with --since or --json all)" },
    },
    "--follow survives a restart of the hub: no event is missed or printed twice.",
  ),
  remote(
    "schedule put",
    "NAME TITLE",
    "create or replace a schedule, which creates a task at certain times; prints the next time",
    {
      ...NEW_TASK,
      cron: { value: "CRON", help: "minute, hour, day of month, month, day of week; or @daily and the like" },
      tz: { value: "ZONE", help: "the time zone of --cron, for example Europe/Berlin (UTC)" },
      every: { value: "TIME", help: "a fixed interval instead of --cron, for example 15m" },
      overlap: {
        value: "HOW",
        help: "while an earlier task is unfinished: skip the time, or queue one more task (skip)",
        choices: ["skip", "queue"],
      },
      "catch-up": {
        value: "HOW",
        help: "after times at which no hub ran: one task for the last of them, or none (one)",
        choices: ["one", "none"],
      },
      jitter: { value: "TIME", help: "start each task up to so much later" },
      until: { value: "TIME", help: "no times after this: a time from now, or ISO 8601" },
      paused: { help: "no times, until it is saved without this" },
      delay: { value: "TIME", help: "start each task no sooner than this after its time" },
      ...ATTEMPTS,
      group: { value: "NAME", help: "the group that its tasks join" },
      tag: { value: "WORD", help: "a tag of its tasks, repeatable", multiple: true },
      ...LANE,
    },
    "luxhub schedule put nightly 'Back up the wiki' -d 'Into the archive.' --cron '30 2 * * *' --tz Europe/Berlin",
  ),
  remote("group list", "[PREFIX]", "groups by name, those that begin with PREFIX", { limit: LIMIT }),
  remote(
    "group watch",
    "NAME",
    "show the progress of a group of tasks until none is unfinished",
    { timeout: { value: "TIME", help: "how long to wait, for example 10m; without it, no limit" } },
    "A progress bar on a terminal, elsewhere a line when something has changed. Exit code 1 if a task failed.",
  ),
  remote("group show", "NAME", "counts, times, cost and the last failures of a group"),
  remote("group cancel", "NAME", "cancel the unfinished tasks of a group: they end as failed", {
    node: { value: "NODE", help: "the node that cancels them" },
    reason: { value: "TEXT", help: "why" },
  }),
  remote("group retry", "NAME", "open the failed tasks of a group again"),
  remote("schedule list", "", "all schedules, by name", { limit: LIMIT }),
  remote("schedule run", "NAME", "create a task of a schedule now; prints its id"),
  remote("schedule delete", "NAME", "delete a schedule; its tasks stay"),
  remote(
    "task add",
    "TITLE",
    "create a task; prints its id",
    {
      ...NEW_TASK,
      for: { value: "NODE", help: "assign it to this node, which must be online" },
      file: {
        value: "FILE",
        help: "upload this file as an input of the task, repeatable",
        multiple: true,
        isPath: true,
      },
      after: { value: "ID", help: "start it after this task is completed, repeatable", multiple: true },
      "on-dependency": {
        value: "fail|run",
        help: "when one of those fails: fail it too (fail), or start it when all have ended (run)",
        choices: ["fail", "run"],
      },
      "unique-key": { value: "KEY", help: "print the unfinished task that has this key, if there is one" },
      "unique-for": { value: "TIME", help: "the task holds its key so long, also when it is finished" },
      delay: { value: "TIME", help: "start it no sooner than this, for example 30s or 2h from now" },
      expires: {
        value: "TIME",
        help: "fail it if it is not completed by then: a time from now, or ISO 8601",
      },
      ...ATTEMPTS,
      group: { value: "NAME", help: "the group that it joins" },
      tag: { value: "WORD", help: "a word to find it by, repeatable", multiple: true },
      ...LANE,
    },
    "TASK=$(luxhub task add 'Say hello' -d 'To everyone') && luxhub task wait $TASK",
  ),
  remote("task list", "", "tasks, newest first", { ...SELECTED_TASKS, limit: LIMIT }),
  remote(
    "task export",
    "",
    "tasks with their results, a line of JSON each, newest first",
    SELECTED_TASKS,
    "luxhub task export --group nightly > results.jsonl",
  ),
  remote("task show", "ID", "one task, with its result"),
  remote("task why", "ID", "why a task does not run: every reason"),
  remote(
    "task wait",
    "ID…",
    "wait until tasks are completed or have failed",
    {
      any: { help: "until any of them has ended, not all" },
      timeout: { value: "TIME", help: "how long to wait, for example 10s; without it, no limit" },
    },
    "Exit code 0: those that ended are completed. 1: one has failed. 124: not finished within --timeout.",
  ),
  remote(
    "task logs",
    "ID",
    "the output of a task, also while it runs",
    {
      follow: { help: "keep printing until the task is finished", short: "f" },
      attempt: { value: "N", help: "the attempt (its epoch); without it the newest that has output" },
      raw: { help: "print it unchanged, with the control characters that a terminal obeys" },
    },
    "--follow survives a restart of the hub: nothing is missed or printed twice. With --json one line of JSON for each part.",
  ),
  remote("task claim", "ID…", "claim open tasks for a node", { node: NODE }),
  remote("task release", "ID…", "give back tasks that a node holds", {
    node: NODE,
    reason: { value: "TEXT", help: "why" },
    epoch: EPOCH,
  }),
  remote("task complete", "ID", "complete a task with its result", {
    node: NODE,
    result: {
      value: "FILE",
      help: "a JSON object with problem, improvement and lesson; - reads standard input",
      isPath: true,
    },
    epoch: EPOCH,
  }),
  remote("task fail", "ID", "report that a node's attempt at a task failed", {
    node: NODE,
    error: { value: "TEXT", help: "what went wrong" },
    "no-retry": { help: "the task has failed permanently" },
    epoch: EPOCH,
  }),
  remote(
    "task checkpoint",
    "ID",
    "save a checkpoint of a task that a node holds: the JSON on standard input",
    { node: NODE, epoch: EPOCH },
    `Within luxhub worker, --node and --epoch follow from its environment.`,
  ),
  remote(
    "task ask",
    "ID QUESTION",
    "ask a person about a task that a node holds",
    {
      node: NODE,
      epoch: EPOCH,
      choice: { value: "TEXT", help: "an answer to choose from; repeatable", multiple: true },
      schema: { value: "FILE", help: "the JSON Schema of the answer", isPath: true },
      within: { value: "TIME", help: "how long the question waits (1d)" },
      park: { help: "give the task back until there is an answer" },
      wait: { value: "TIME", help: "wait so long, and print the answer" },
    },
    `Prints the id of the question, or with --wait the answer: a text as it is, anything else as JSON.
Exit code 124: there is no answer yet, or none came in time.
Within luxhub worker, --node and --epoch follow from its environment.`,
  ),
  remote(
    "task review",
    "ID VERDICT",
    "pass or reject the result of a task that was created with --review",
    {
      node: { value: "NODE", help: "the node that reviews" },
      note: { value: "TEXT", help: "why; the worker who does it again gets it" },
      epoch: { value: "N", help: "the epoch of the result that was checked: 409 if there is another since" },
    },
    "VERDICT is pass, which pays the reward, or reject, which opens the task again.",
  ),
  remote("task answer", "ID ANSWER", "answer an open question of a task", {
    question: { value: "ID", help: "which question; needed if the task has several open ones" },
    parse: { help: "ANSWER is JSON; without it, a text" },
    node: { value: "NODE", help: "the node that answers" },
  }),
  remote(
    "task usage",
    "[ID]",
    "report what a step of a node's attempt at a task has used",
    {
      model: { value: "NAME", help: "the model" },
      "input-tokens": { value: "N", help: "tokens that it read" },
      "output-tokens": { value: "N", help: "tokens that it wrote" },
      "cached-tokens": { value: "N", help: "how many of the input tokens came from a cache" },
      "cost-usd": { value: "USD", help: "what it cost; left out: unknown" },
      seq: { value: "N", help: "the number of the step in the attempt: a repeat counts once" },
      node: NODE,
      epoch: EPOCH,
    },
    `In a command of luxhub worker leave out ID, --seq, --node and --epoch: the worker numbers and sends the report,
and the command needs no secret.`,
  ),
  remote("task retry", "ID…", "open failed tasks again", {
    "with-dependents": { help: "and the tasks that failed only because of them" },
    "max-cost": { value: "USD", help: "a new limit of cost, for tasks that have cost too much" },
  }),
  remote("task cancel", "ID…", "cancel unfinished tasks: they end as failed", {
    node: { value: "NODE", help: "the node that cancels them" },
    reason: { value: "TEXT", help: "why" },
  }),
  remote("task update", "ID…", "change tasks that nobody holds", {
    title: { value: "TEXT", help: "a new title" },
    description: { value: "TEXT", help: "what to do; - reads standard input", short: "d" },
    priority: NEW_TASK.priority,
    reward: { value: "N", help: "more LUX; less only with LUXHUB_ADMIN_KEY" },
    "not-before": {
      value: "TIME",
      help: "start them no sooner: a time from now, ISO 8601, or none: at once",
    },
    expires: { value: "TIME", help: "fail them if they are not completed by then; none: they never expire" },
    "limit-key": { value: "KEY", help: "the key of their limits; none: their type" },
    tag: {
      value: "WORD",
      help: "their tags instead of those they have, repeatable; none: no tags",
      multiple: true,
    },
  }),
  remote("task delete", "ID…", "delete tasks permanently", {}, ADMIN_ABOUT),
  remote("node list", "", "all nodes"),
  remote("node show", "ID", "one node"),
  remote("node drain", "ID", "give a node no new tasks, and let it finish those it has", {
    off: { help: "give it tasks again" },
  }),
  remote("node delete", "ID", "delete a node's registration", {}, ADMIN_ABOUT),
  remote(
    "message send",
    "CONTENT",
    "send a message to a node; prints its id",
    {
      from: { value: "NODE", help: "the sender" },
      to: { value: "NODE", help: "the recipient" },
      all: { help: "send it to every node that is online" },
      taking: { value: "TYPE", help: "send it to every node that is online and takes these tasks" },
      type: { value: "TYPE", help: "text (the default), task or status", choices: SEND_TYPES },
      ack: { help: "redeliver it until it is confirmed" },
      "reply-to": { value: "ID", help: "the message that it answers" },
      thread: { value: "NAME", help: "the conversation that it belongs to" },
    },
    "CONTENT - reads standard input. --type and --ack are for a message to one node.",
  ),
  remote(
    "message receive",
    "NODE",
    "take messages out of a mailbox, oldest first",
    {
      wait: { value: "TIME", help: "how long to wait for the first, for example 30s" },
      count: { value: "N", help: "how many at most (10)" },
      ack: { help: "confirm them once they are printed" },
    },
    "Exit code 124: no message came within --wait.",
  ),
  remote("message history", "NODE", "the messages that a node sent or got, newest first", {
    thread: { value: "NAME", help: "only messages of this conversation" },
    limit: LIMIT,
  }),
  remote("message parked", "NODE", "the messages that a node never confirmed", { limit: LIMIT }),
  remote(
    "note put",
    "KEY TEXT",
    "write a note into the shared memory of the nodes",
    { node: { value: "NODE", help: "who writes" }, "if-version": IF_VERSION },
    "TEXT - reads standard input. Exit code 5: the note has another version.",
  ),
  remote("note get", "KEY", "the text of a note"),
  remote("note list", "", "the notes by key", { prefix: PREFIX, limit: LIMIT }),
  remote("note search", "WORD…", "notes with words that begin with these", { prefix: PREFIX, limit: LIMIT }),
  remote("note delete", "KEY…", "delete notes", {
    node: { value: "NODE", help: "who deletes them" },
    "if-version": IF_VERSION,
  }),
  remote(
    "lease acquire",
    "NAME",
    "take an advisory lease on a name or on the paths of a glob",
    {
      node: NODE,
      ttl: { value: "TIME", help: "how long it lasts (5m)" },
      shared: { help: "others may have a shared lease on the same" },
      task: { value: "ID", help: "it ends with this task, which the node holds" },
      epoch: EPOCH,
    },
    "Acquiring it again renews it. Exit code 5: another lease is in the way.",
  ),
  remote("lease renew", "NAME", "begin the time of a lease again", {
    node: NODE,
    ttl: { value: "TIME", help: "how long it lasts; without it as before" },
    task: LEASE_TASK,
    fencing: FENCING,
  }),
  remote("lease release", "NAME…", "end leases", { node: NODE, task: LEASE_TASK, fencing: FENCING }),
  remote("lease list", "", "the leases that nodes have now", {
    node: { value: "NODE", help: "only leases of this node" },
    task: LEASE_TASK,
    limit: LIMIT,
  }),
  remote("file put", "FILE", "upload a file; prints its id", {
    task: { value: "ID", help: "attach it to this task" },
    node: { value: "NODE", help: "attach it to this node" },
    name: { value: "NAME", help: "its name; without it the name of FILE" },
    type: { value: "TYPE", help: "its content type; without it by its name" },
  }),
  remote(
    "file get",
    "ID",
    "download a file",
    { output: { value: "FILE", help: "the file to write; - is standard output", short: "o", isPath: true } },
    "Without -o it keeps the name that it was uploaded with. An existing file is not overwritten.",
  ),
  remote("file url", "ID", "print a URL that downloads a file without a secret, for 10 minutes"),
  remote(
    "file upload-url",
    "",
    "print a URL that uploads one file without a secret, for 10 minutes",
    {
      task: { value: "ID", help: "attach the file to this task" },
      node: { value: "NODE", help: "attach the file to this node" },
    },
    'curl -F file=@report.pdf "$(luxhub file upload-url)"',
  ),
  remote("file list", "", "files, newest first", { limit: LIMIT }),
  remote("file rm", "ID…", "delete files permanently"),
  remote(
    "worker",
    "-- [COMMAND…]",
    "do tasks: run a command, or an AI agent, for each and report its result",
    {
      agent: {
        value: "NAME",
        help: "claude, codex, gemini, opencode, or an agent of worker.toml: run it in place of a command",
      },
      node: { value: "ID", help: "the id of the node that the worker registers; of an agent NAME-HOST" },
      name: { value: "NAME", help: "the node's name for people; without it the id" },
      capabilities: {
        value: "LIST",
        help: "the task types that it takes, comma-separated; without it all types",
      },
      resources: {
        value: "LIST",
        help: "what the node has, as gpu=2,vram_gib=24: tasks may require some of it",
      },
      detect: { help: "add cpu, memory_gib and, where nvidia-smi is there, gpu and vram_gib" },
      concurrency: { value: "N", help: "how many tasks at once (1)" },
      timeout: {
        value: "TIME",
        help: "time limit of the command, by default max_run_s of its task; then it is ended and the attempt fails",
      },
      grace: { value: "TIME", help: "the time from SIGTERM to SIGKILL when a command must end (10s)" },
      once: { help: "wait for one task, do it and exit; exit code 1 if it is not completed" },
      workdir: {
        value: "DIR",
        help: "run each task in its own directory below DIR, with its inputs; upload out/",
        isPath: true,
      },
      "no-output": { help: "do not send the hub what the command prints while it runs" },
      "pass-secret": { help: "give the command the secret, as LUXHUB_SECRET" },
      log: { value: "pretty|json", help: "form of the log (pretty)", choices: ["pretty", "json"] },
    },
    WORKER_ABOUT,
  ),
  remote(
    "mcp",
    "",
    "connect a client of MCP that speaks only stdio to the hub",
    { node: { value: "NODE", help: "the node to act for, with a key that is bound to no node" } },
    MCP_ABOUT,
  ),
  remote(
    "mcp-config",
    MCP_CLIENTS.join("|"),
    "print or write the configuration of an MCP client, with a key for its node",
    {
      node: { value: "NODE", help: "the node of the client, to which its key is bound" },
      write: { help: "add it to the client's file, of which a backup is kept" },
      file: { value: "FILE", help: "the client's file, if it is another one", isPath: true },
      stdio: { help: "the client starts luxhub mcp; the secret is in a file of its own" },
      name: { value: "NAME", help: "the name of the server in the client (luxhub)" },
    },
    MCP_CONFIG_ABOUT,
  ),
  remote(
    "invite",
    "NODE",
    "invite a node: print the line with which its machine joins",
    {
      expires: { value: "TIME", help: "how long the line is good for: 10m, 12h, 7d (1h)" },
      "join-url": {
        value: "URL",
        help: "the hub's URL in the line; without it --url, or one of the hub's own",
      },
    },
    INVITE_ABOUT,
  ),
  remote("invitation list", "", "the invitations of the last days", { limit: LIMIT }, ADMIN_ABOUT),
  remote(
    "invitation delete",
    "ID…",
    "delete invitations, so that nobody can join with them",
    {},
    `A key that was made from one stays: luxhub keys revoke. ${ADMIN_ABOUT}`,
  ),
  {
    name: "join",
    words: "LINE",
    summary: "join a hub with the line that luxhub invite printed there",
    flags: { replace: { help: "leave the hub that this machine has joined before" } },
    about: JOIN_ABOUT,
  },
  {
    name: "keys list",
    words: "",
    summary: "the keys, without their secrets",
    flags: { ...PLACE, json: { help: "print JSON" } },
  },
  {
    name: "keys add",
    words: "NAME",
    summary: "create a key; prints its secret",
    flags: {
      ...PLACE,
      variant: {
        value: "A|B",
        help: "gets its responses in this variant on any listener",
        choices: ["A", "B"],
      },
      node: { value: "NODE_ID", help: "acts for this node only" },
      mint: {
        value: "LUX/d",
        help: "LUX per UTC day that it may promise as rewards, such as 100/d (any amount)",
      },
      expires: { value: "TIME", help: "2027-01-31, an ISO 8601 time, or from now: 90s, 12h, 30d" },
      role: { value: "ROLE", help: "full (the default), viewer or admin", choices: KEY_ROLES },
      admin: { help: "the same as --role admin" },
    },
    about: `Prints only the secret on standard output, once. A viewer only reads (GET, HEAD), but no message contents; an
administrator key is for X-Admin-Key.`,
  },
  { name: "keys pin", words: "NAME A|B|none", summary: "pin a key to a variant, or unpin it", flags: PLACE },
  { name: "keys expire", words: "NAME TIME|never", summary: "set when a key expires", flags: PLACE },
  { name: "keys revoke", words: "NAME", summary: "revoke a key at once, permanently", flags: PLACE },
  {
    name: "backup",
    words: "FILE",
    summary: "back up the whole hub into one file, even while it runs",
    flags: {
      keep: { value: "N", help: "of the backups in FILE/ keep the newest N, and delete the others" },
      ...PLACE,
    },
    about: BACKUP_ABOUT,
  },
  {
    name: "restore",
    words: "FILE",
    summary: "restore a backup into an empty directory or an empty PostgreSQL database",
    flags: PLACE,
    about: RESTORE_ABOUT,
  },
  {
    name: "openapi",
    words: "",
    summary: "print the API as an OpenAPI document",
    flags: { variant: { value: "A|B", help: "the variant that it describes (A)", choices: ["A", "B"] } },
    about: `No hub needs to run. A hub returns the same at GET /api/v1/openapi.json, and as a page at /docs/api-reference.`,
  },
  {
    name: "doctor",
    words: "",
    summary: "check everything of the hub, even while it runs",
    flags: PLACE,
    about: `Checks the whole database, the ledger with its hashes and all totals against their rows, the bytes of
every file against its checksum, the clock, the free space, the version of SQLite, the secrets, and
the permissions of their files. It changes nothing. For a hub on PostgreSQL it needs room for a copy
of the rows in the data directory.
Exit code 0: no error found. 1: an error was found.`,
  },
  {
    name: "move",
    words: "",
    summary: "move a stopped hub from SQLite into PostgreSQL, or back",
    flags: {
      to: { value: "postgres|URL", help: "from the data directory into the database" },
      from: { value: "postgres|URL", help: "from the database into the data directory" },
      data: DATA,
    },
    about: MOVE_ABOUT,
  },
  {
    name: "service install",
    words: "",
    summary: "install the program, its user and the systemd unit, and start it; needs root",
    flags: {},
  },
  { name: "service print", words: "", summary: "print the unit", flags: {} },
  {
    name: "service remove",
    words: "",
    summary: "stop the service and remove the unit; keeps the data; needs root",
    flags: {},
  },
  {
    name: "completions",
    words: "bash|zsh|fish",
    summary: "print the completions of a shell",
    flags: {},
    about: `  bash   source <(luxhub completions bash)                       in ~/.bashrc
  zsh    source <(luxhub completions zsh)                        in ~/.zshrc, after compinit
  fish   luxhub completions fish > ~/.config/fish/completions/luxhub.fish`,
  },
  {
    name: "man",
    words: "",
    summary: "print the manual page",
    flags: {},
    about: "luxhub man | man -l -   reads it; luxhub man > /usr/local/share/man/man1/luxhub.1 installs it.",
  },
  { name: "version", words: "", summary: "print the version", flags: {} },
  { name: "help", words: "[COMMAND…]", summary: "print the help", flags: {} },
];

/** The distinct first words of all commands: "serve", "task", … */
export const FIRST_WORDS: readonly string[] = [
  ...new Set(COMMANDS.map(({ name }) => name.split(" ")[0] ?? "")),
];

/** Returns the commands of a group: "task add", "task list", … */
export function commandsOf(group: string): readonly Command[] {
  return COMMANDS.filter(({ name }) => name.startsWith(`${group} `));
}

/** Finds a command by its full name. @throws {Error} a fault of the program: there is no such command */
export function commandNamed(name: string): Command {
  const command = COMMANDS.find((one) => one.name === name);
  if (!command) throw new Error(`no command is named ${name}`);
  return command;
}

export function formOf(name: string): Form {
  const { words, flags } = commandNamed(name);
  return {
    name,
    words,
    flags: Object.fromEntries(
      Object.entries(flags).map(([flag, { value, short, multiple }]) => [
        flag,
        {
          type: value === undefined ? "boolean" : "string",
          ...(short !== undefined && { short }),
          ...(multiple !== undefined && { multiple }),
        },
      ]),
    ),
  };
}
