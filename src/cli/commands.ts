/**
 * Declares every command: its words, its flags and a one-line summary. The grammar of the command line, the help, the
 * manual page, the completions and "did you mean" come from here. Must not: import the code that runs a command.
 */
import { SETTING_ROWS } from "../config.ts";
import { EVENT_KINDS } from "../domain/event.ts";
import { KEY_ROLES, SEND_TYPES } from "../domain/model.ts";
import { TASK_FIELDS, type TaskField } from "../domain/task/fields.ts";
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

const DATA: Flag = {
  value: "DIR",
  help: "the data directory (LUXHUB_DATA, or else ./luxhub-data)",
  isPath: true,
};
const PLACE: Command["flags"] = {
  data: DATA,
  database: { value: "URL", help: "the database of a hub that uses PostgreSQL (LUXHUB_DATABASE)" },
};
export const REMOTE_FLAGS: Command["flags"] = {
  json: { help: "print JSON" },
  url: { value: "URL", help: "the URL of the hub (LUXHUB_URL); default: the hub that runs on --data" },
  "secret-file": { value: "FILE", help: "a file with the secret (or LUXHUB_SECRET)", isPath: true },
  data: DATA,
};

const LIMIT: Flag = { value: "N", help: "the maximum number of rows (50; all with --json)" };
const NODE: Flag = { value: "NODE", help: "the node to act for" };
const PER: Flag = {
  value: "PERIOD",
  help: "the period of the budget: day, month (both in UTC) or total",
  choices: ["day", "month", "total"],
};
const PAUSED: Command["flags"] = {
  type: { value: "TYPE", help: "only tasks of this type" },
  "limit-key": { value: "KEY", help: "only tasks with this limit key" },
  creator: { value: "NODE", help: "only tasks that this node created" },
};
const IF_VERSION: Flag = {
  value: "N",
  help: "only if the note has this version; 0: only if there is no such note",
};
const PREFIX: Flag = { value: "TEXT", help: "only keys that begin with TEXT" };
const LEASE_TASK: Flag = { value: "ID", help: "only leases for this task" };
const FENCING: Flag = { value: "N", help: "only the lease with this fencing token" };
const EPOCH: Flag = {
  value: "N",
  help: "the epoch of the lease: an error if the task has been handed out again since (stale_lease)",
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

const VERIFY_ABOUT = `FILE is an export of luxhub lux export. Without FILE, or if FILE is -, the command reads standard input.
The hash of each entry covers the entry and the hash before it. So the command finds a changed digit, and
a missing, moved or added entry. With --head it also finds that the ledger was rewritten, or that entries
are missing at its end.
Exit code 1: the export is not intact.

luxhub lux export | luxhub lux verify --head 5f2c…`;

const ADMIN_ABOUT = "Needs the administrator key (from LUXHUB_ADMIN_KEY or the data directory).";

const INVITE_ABOUT = `The line has the URL of the hub, a token for one use and, with serve --tls auto, the hash of the key of the hub.
The joining machine checks this hash before it sends anything.
${ADMIN_ABOUT}

luxhub invite worker-2 --expires 10m`;

const JOIN_ABOUT = `Creates a key that is bound to the node, and stores the key with the URL of the hub in ~/.config/luxhub/hub.json
(or the file of LUXHUB_JOINED), which only this user can read. Afterwards the commands that call a hub need neither a
URL nor a secret on this machine:

luxhub worker -- ./work.sh`;

const WORKER_ABOUT = `The command gets the task as JSON on standard input, and as LUXHUB_TASK_ID, LUXHUB_TASK_TITLE,
LUXHUB_TASK_TYPE, LUXHUB_TASK_DESCRIPTION and LUXHUB_TASK_EPOCH; also LUXHUB_NODE_ID and LUXHUB_URL.

The exit code of the command decides what happens to the task:
  0    completed; standard output is the result: any JSON or text (problem, improvement, lesson
       and output in a JSON object are those of the result)
  65   failed permanently
  75   the attempt has failed, and the hub retries the task; every other code means the same
The last lines of standard error are the error.

SIGTERM or Ctrl-C: the worker takes no more tasks, finishes its tasks, and exits. A second signal
ends the commands and gives their tasks back. The log goes to standard error.

luxhub worker --node worker-1 -- sh -c 'echo "Hello, $LUXHUB_TASK_TITLE"'

With --agent an AI agent does each task, in a directory of its own. The worker starts the agent only when there
is a task, so waiting uses no tokens. The next attempt of a task resumes the session of the agent.

luxhub worker --agent claude --capabilities coding`;

const MCP_ABOUT = `The client starts this command, writes a JSON-RPC message in each line of standard input, and reads the
responses from standard output. The command exits when standard input ends. While the hub is unreachable
or overloaded, the command repeats a request for up to 5 minutes.

luxhub mcp --url https://hub.example.org --secret-file ~/.config/luxhub/agent-1.secret`;

const MCP_CONFIG_ABOUT = `With the administrator key (from LUXHUB_ADMIN_KEY or the data directory) the command creates a key that is
bound to the node. Without the administrator key the command uses the secret in LUXHUB_SECRET. With --secret-file
it uses the secret in this file, and creates no key.
agents-md prints a section for the AGENTS file of a project, and calls no hub.

luxhub mcp-config claude --node agent-1 --write`;

const SERVE_ABOUT = `Each flag is also an environment variable (--max-file is LUXHUB_MAX_FILE) and a key in ./luxhub.toml
(max_file). A repeatable flag also takes a comma-separated list, and in luxhub.toml a list. A flag
overrides the environment variable, and the environment variable overrides luxhub.toml.

Prefer LUXHUB_DATABASE to --database: everyone on the machine can read a command line, and the URL
contains a password.

LUXHUB_SECRET and LUXHUB_ADMIN_KEY set the secrets. Without these variables the first start creates
secrets, and stores them in the data directory.`;

const BACKUP_ABOUT = `FILE is  hub.tar                a new file, with a temporary name until it is complete
         backups/               a directory: the time is the name of the file, luxhub-20270131T020000Z.tar
         -                      standard output
         s3://BUCKET/hub.tar    an object in a storage that speaks the S3 protocol
         s3://BUCKET/PREFIX/    an object whose name is the time

The backup is a tar archive with a consistent snapshot of the database, the files and the secrets in the
data directory. A secret that comes from the environment is not in the backup. Only the owner of the file
can read the file. The backup needs free space for a copy of the rows: next to FILE, or else in the data
directory. The address and the credentials of the storage come from S3_ENDPOINT, S3_REGION,
S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY (or AWS_…).

A backup of a hub on SQLite can be restored into PostgreSQL, and the other way round.`;

const RESTORE_ABOUT = `FILE is a file, s3://BUCKET/KEY, or - for standard input.

For a hub on SQLite, the data directory must be empty, or must not exist. For a hub on PostgreSQL
(LUXHUB_DATABASE, or database in ./luxhub.toml), the database or its schema must be empty, and the
secrets go into the data directory unless the directory has secrets already. The command verifies all
checksums before the data is visible. Start the hub afterwards.`;

const MOVE_ABOUT = `The word postgres means the database of LUXHUB_DATABASE (or of database in ./luxhub.toml). You can give a
URL instead, postgres://USER:PASSWORD@HOST/NAME; but everyone on the machine can read a command line.

The command copies and compares all rows and the bytes of all files. No hub may run on the source or on
the target. The target must be empty. The command does not change the source. An interrupted
move leaves no usable hub on the target: run the same command again. The secrets stay in the data
directory, which a hub on PostgreSQL has too.`;

/** The flags of a new task, or of the task of a schedule. */
function taskFlags(isScheduled: boolean): Command["flags"] {
  const fields = Object.values<TaskField>(TASK_FIELDS).filter(
    ({ shown }) => !isScheduled || shown?.schedule !== undefined,
  );
  const flags = fields.flatMap(({ flags = {} }) => Object.entries(flags));
  return Object.fromEntries(
    flags.map(([name, { scheduled, ...flag }]) => [
      name,
      isScheduled && scheduled !== undefined ? { ...flag, help: scheduled } : flag,
    ]),
  );
}

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
    summary: "start a hub with six simulated nodes, to try luxhub; the data is removed at the end",
    flags: {
      port: { value: "PORT", help: "the port on 127.0.0.1; default: the first free port from 19114 on" },
    },
    about: `Open the URL that the command prints, and sign in with the secret below the URL. The hub runs until Ctrl-C.
The command reads no settings: neither LUXHUB_ variables nor luxhub.toml.`,
  },
  remote("status", "", "show the health of the hub, and counts", {}, "Exit code 1: the hub cannot write."),
  remote(
    "top",
    "",
    "show the running tasks and the online nodes, live",
    {
      interval: { value: "TIME", help: "the refresh interval (2s)" },
      once: { help: "print the state once and exit" },
    },
    "q or Ctrl-C quits. If standard output is not a terminal, the command prints the state once and exits.",
  ),
  remote(
    "lessons",
    "[WORDS]",
    "search what the workers of completed tasks have learned, newest first",
    { type: { value: "TYPE", help: "only lessons from tasks of this type" }, limit: LIMIT },
    "Each of the WORDS must begin a word of the lesson or of the title of its task: luxhub lessons 'login cookie'",
  ),
  remote("questions", "", "list the open questions of all tasks, the most urgent first", { limit: LIMIT }),
  remote("reviews", "", "list the results that wait for a review, the most urgent first", { limit: LIMIT }),
  remote("usage", "", "sum up what work has cost in tokens and dollars", {
    by: {
      value: "WHAT",
      help: "one row for each day (the default), node, creator, type, model or group",
      choices: ["day", "node", "creator", "type", "model", "group"],
    },
    since: {
      value: "DAY",
      help: "the first day in UTC, such as 2030-01-31; default: 29 days before the last day",
    },
    until: { value: "DAY", help: "the last day in UTC; default: today" },
    limit: LIMIT,
  }),
  remote(
    "budget set",
    "[SCOPE VALUE]",
    "limit what work may cost",
    {
      per: PER,
      "cost-usd": { value: "USD", help: "how many dollars work may cost" },
      tokens: { value: "N", help: "how many tokens work may use, input and output together" },
      "on-limit": {
        value: "WHAT",
        help: "pause (the default): stop the dispatch of the tasks; warn: only record an event",
        choices: ["pause", "warn"],
      },
    },
    `SCOPE is hub, or node, creator, type or group with a VALUE; creator or type without a VALUE means the
tasks without a creator or without a type.
${ADMIN_ABOUT}`,
  ),
  remote(
    "webhook put",
    "NAME URL",
    "create or replace a webhook, which sends events to a URL, and print its secret once",
    {
      kind: {
        value: "KIND",
        help: "only events of this kind; repeatable",
        multiple: true,
        choices: EVENT_KINDS,
      },
      task: { value: "ID", help: "only events of this task" },
      node: { value: "NODE", help: "only events of this node" },
      creator: { value: "NODE", help: "only events of the tasks that this node created" },
      group: { value: "NAME", help: "only events of the tasks of this group" },
      format: {
        value: "FORMAT",
        help: "luxhub (the default): signed JSON; ntfy: notifications for people; a2a: A2A push notifications",
        choices: ["luxhub", "ntfy", "a2a"],
      },
      "secret-env": {
        value: "NAME",
        help: "the environment variable with the secret to use: whsec_…, or the access token of ntfy",
      },
    },
    `The hub calls its own machine or a private network only if serve --webhook-allow names this address or network.
${ADMIN_ABOUT}`,
  ),
  remote(
    "webhook list",
    "",
    "list all webhooks, and the state of their deliveries",
    { limit: LIMIT },
    ADMIN_ABOUT,
  ),
  remote("webhook test", "NAME", "send a test message now, and print the outcome", {}, ADMIN_ABOUT),
  remote(
    "webhook resume",
    "NAME",
    "resume the deliveries, from the first event that was not delivered",
    {
      after: {
        value: "N",
        help: "resume after the event with this id instead: skips events, or sends events again",
      },
    },
    ADMIN_ABOUT,
  ),
  remote("webhook delete", "NAME", "delete a webhook", {}, ADMIN_ABOUT),
  remote("budget list", "", "list all budgets, and how much of each is used", { limit: LIMIT }, ADMIN_ABOUT),
  remote("budget delete", "[SCOPE VALUE]", "delete a budget", { per: PER }, ADMIN_ABOUT),
  remote(
    "budget void",
    "NODE",
    "take what a node has reported on a day off all sums and budgets",
    {
      day: { value: "DAY", help: "the day in UTC, such as 2030-01-31; default: today" },
      reason: { value: "TEXT", help: "the reason" },
    },
    ADMIN_ABOUT,
  ),
  remote(
    "limit set",
    "[KEY]",
    "limit how many tasks of a key run at once, or start in a minute",
    {
      running: { value: "N", help: "how many tasks may be assigned at once" },
      "per-minute": { value: "N", help: "how many tasks may be handed out in any 60 s" },
    },
    `The KEY of a task is its limit_key, or its type if the task has no limit_key.
${ADMIN_ABOUT}`,
  ),
  remote(
    "limit list",
    "",
    "list all limits and holds, and how much of each is used",
    { limit: LIMIT },
    ADMIN_ABOUT,
  ),
  remote("limit delete", "[KEY]", "delete a limit, and end its hold", {}, ADMIN_ABOUT),
  remote("limit hold", "[KEY]", "hand out no task of a key for a time", {
    for: { value: "TIME", help: "how long the hold lasts, at most 1h" },
    node: NODE,
  }),
  remote(
    "pause",
    "",
    "stop the dispatch of a type, of a limit key, of a creator, or of all tasks",
    { ...PAUSED, reason: { value: "TEXT", help: "the reason" } },
    ADMIN_ABOUT,
  ),
  remote("resume", "", "end a pause", PAUSED, ADMIN_ABOUT),
  remote("pauses", "", "list the pauses", { limit: LIMIT }, ADMIN_ABOUT),
  remote("lux", "NODE", "show the balance and the ledger of a node", { limit: LIMIT }, LUX_ABOUT),
  remote(
    "lux export",
    "",
    "print the ledger of all nodes as JSON Lines, oldest entry first",
    {},
    "luxhub lux export > ledger.jsonl",
  ),
  remote("lux head", "", "print the number and the hash of the newest entry of the ledger, for lux verify"),
  {
    name: "lux verify",
    words: "[FILE]",
    summary: "verify that nothing in an exported ledger was changed, removed or added; needs no hub",
    flags: {
      head: {
        value: "HASH",
        help: "a hash from lux head or a receipt: the ledger must have the entry with this hash",
      },
    },
    about: VERIFY_ABOUT,
  },
  remote(
    "events",
    "",
    "print the event log",
    {
      follow: { help: "keep printing new events; with --json as JSON Lines", short: "f" },
      kind: {
        value: "KIND",
        help: "only events of this kind; repeatable",
        multiple: true,
        choices: EVENT_KINDS,
      },
      since: { value: "N", help: "only events after this id; without --since the newest events" },
      task: { value: "ID", help: "only events of this task" },
      node: { value: "NODE", help: "only events of this node" },
      group: { value: "NAME", help: "only events of the tasks of this group, and the end of the group" },
      tag: { value: "WORD", help: "only events of tasks with this tag" },
      limit: { value: "N", help: "the maximum number of events (50; all with --since or --json)" },
    },
    "--follow survives a restart of the hub: no event is missed or printed twice.",
  ),
  remote(
    "schedule put",
    "NAME TITLE",
    "create or replace a schedule, which creates tasks at certain times, and print the next time",
    {
      cron: {
        value: "CRON",
        help: "minute, hour, day of month, month, day of week; or a word such as @daily",
      },
      tz: { value: "ZONE", help: "the time zone of --cron, for example Europe/Berlin (UTC)" },
      every: { value: "TIME", help: "a fixed interval instead of --cron, for example 15m" },
      overlap: {
        value: "HOW",
        help: "while an earlier task is unfinished: skip the time (the default), or create a task at each time",
        choices: ["skip", "queue"],
      },
      "catch-up": {
        value: "HOW",
        help: "after times at which no hub ran: one task for the last of these times (the default), or none",
        choices: ["one", "none"],
      },
      jitter: { value: "TIME", help: "start each task later, by a random time of at most TIME" },
      until: { value: "TIME", help: "the end of the schedule: a time from now, or ISO 8601" },
      paused: { help: "create no tasks until the schedule is saved without --paused" },
      ...taskFlags(true),
    },
    "luxhub schedule put nightly 'Back up the wiki' -d 'Into the archive.' --cron '30 2 * * *' --tz Europe/Berlin",
  ),
  remote(
    "group list",
    "[PREFIX]",
    "list the groups by name; with PREFIX those whose name begins with PREFIX",
    { limit: LIMIT },
  ),
  remote(
    "group watch",
    "NAME",
    "show the progress of a group until all its tasks have ended",
    { timeout: { value: "TIME", help: "how long to wait, such as 10m; default: no limit" } },
    "Shows a progress bar on a terminal, and elsewhere prints a line for each change. Exit code 1: a task has failed.",
  ),
  remote("group show", "NAME", "show counts, times, the cost and the last failures of a group"),
  remote("group cancel", "NAME", "cancel the unfinished tasks of a group, whose status is then failed", {
    node: { value: "NODE", help: "the node that cancels the tasks" },
    reason: { value: "TEXT", help: "the reason" },
  }),
  remote("group retry", "NAME", "open the failed tasks of a group again"),
  remote("schedule list", "", "list all schedules, by name", { limit: LIMIT }),
  remote("schedule run", "NAME", "create a task of a schedule now, and print its id"),
  remote("schedule delete", "NAME", "delete a schedule, but not its tasks"),
  remote(
    "task add",
    "TITLE",
    "create a task, and print its id",
    taskFlags(false),
    "TASK=$(luxhub task add 'Say hello' -d 'To everyone') && luxhub task wait $TASK",
  ),
  remote("task list", "", "list tasks, newest first", { ...SELECTED_TASKS, limit: LIMIT }),
  remote(
    "task export",
    "",
    "print tasks with their results as JSON Lines, newest first",
    SELECTED_TASKS,
    "luxhub task export --group nightly > results.jsonl",
  ),
  remote("task show", "ID", "show one task with its result"),
  remote("task why", "ID", "list all reasons why a task does not run"),
  remote(
    "task wait",
    "ID…",
    "wait until tasks are completed or have failed",
    {
      any: { help: "wait only until one of the tasks has ended" },
      timeout: { value: "TIME", help: "how long to wait, such as 10s; default: no limit" },
    },
    "Exit code 0: the tasks that ended are completed. 1: a task has failed. 124: the time of --timeout was over first.",
  ),
  remote(
    "task logs",
    "ID",
    "print the output of a task, also while the task runs",
    {
      follow: { help: "keep printing until the task has ended", short: "f" },
      attempt: { value: "N", help: "the attempt, by its epoch; default: the newest attempt that has output" },
      raw: { help: "print the output unchanged, with its control characters" },
    },
    "--follow survives a restart of the hub: nothing is missed or printed twice. With --json the command prints\neach part as a line of JSON.",
  ),
  remote("task claim", "ID…", "claim open tasks for a node", { node: NODE }),
  remote("task release", "ID…", "give back tasks that a node holds", {
    node: NODE,
    reason: { value: "TEXT", help: "the reason" },
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
  remote("task fail", "ID", "report that the attempt of a node failed", {
    node: NODE,
    error: { value: "TEXT", help: "what went wrong" },
    "no-retry": { help: "fail the task permanently" },
    epoch: EPOCH,
  }),
  remote(
    "task checkpoint",
    "ID",
    "save the JSON on standard input as the checkpoint of a task that a node holds",
    { node: NODE, epoch: EPOCH },
    `In a command of luxhub worker, the defaults of --node and --epoch come from the environment.`,
  ),
  remote(
    "task ask",
    "ID QUESTION",
    "ask a question about a task that a node holds",
    {
      node: NODE,
      epoch: EPOCH,
      choice: { value: "TEXT", help: "an answer to choose from; repeatable", multiple: true },
      schema: { value: "FILE", help: "the JSON Schema of the answer", isPath: true },
      within: { value: "TIME", help: "how long the question stays open (1d)" },
      park: { help: "give the task back until there is an answer" },
      wait: { value: "TIME", help: "how long to wait for the answer, which the command then prints" },
    },
    `Prints the id of the question, or with --wait the answer: a string unchanged, anything else as JSON.
Exit code 124: there was no answer in time.
In a command of luxhub worker, the defaults of --node and --epoch come from the environment.`,
  ),
  remote(
    "task review",
    "ID VERDICT",
    "pass or reject the result of a task that was created with --review",
    {
      node: { value: "NODE", help: "the node that reviews" },
      note: { value: "TEXT", help: "the reason, which the next worker of the task gets" },
      epoch: { value: "N", help: "the epoch of the reviewed result: an error if there is a newer result" },
    },
    "VERDICT is pass, which pays the reward, or reject, which opens the task again.",
  ),
  remote("task answer", "ID ANSWER", "answer an open question of a task", {
    question: { value: "ID", help: "the question; needed if the task has several open questions" },
    parse: { help: "ANSWER is JSON; without --parse ANSWER is a string" },
    force: { help: "also give an answer that is none of the choices of the question" },
    node: { value: "NODE", help: "the node that answers" },
  }),
  remote(
    "task usage",
    "[ID]",
    "report the tokens and the cost of one step of an attempt",
    {
      model: { value: "NAME", help: "the model" },
      "input-tokens": { value: "N", help: "the number of input tokens" },
      "output-tokens": { value: "N", help: "the number of output tokens" },
      "cached-tokens": { value: "N", help: "how many of the input tokens came from a cache" },
      "cost-usd": { value: "USD", help: "the cost of the step; leave it out if unknown" },
      seq: { value: "N", help: "the number of the step in the attempt: a repeat counts once" },
      node: NODE,
      epoch: EPOCH,
    },
    `In a command of luxhub worker leave out ID, --seq, --node and --epoch: the worker numbers and sends the report,
and the command needs no secret.`,
  ),
  remote("task retry", "ID…", "open failed tasks again", {
    "with-dependents": { help: "also open the tasks that failed only because of these tasks" },
    "max-cost": { value: "USD", help: "a new --max-cost, for tasks that have cost too much" },
  }),
  remote("task cancel", "ID…", "cancel unfinished tasks, whose status is then failed", {
    node: { value: "NODE", help: "the node that cancels the tasks" },
    reason: { value: "TEXT", help: "the reason" },
  }),
  remote("task update", "ID…", "change tasks that nobody holds", {
    title: { value: "TEXT", help: "a new title" },
    description: { value: "TEXT", help: "what to do; - reads standard input", short: "d" },
    ...TASK_FIELDS.priority.flags,
    reward: { value: "N", help: "the new reward; a lower reward needs LUXHUB_ADMIN_KEY" },
    "not-before": {
      value: "TIME",
      help: "the earliest start: a time from now, ISO 8601, or none (at once)",
    },
    expires: { value: "TIME", help: "when the tasks fail unless they are completed; none: never" },
    "limit-key": { value: "KEY", help: "the key of the limit; none: the type" },
    tag: {
      value: "WORD",
      help: "a tag that replaces all current tags; repeatable; none: no tags",
      multiple: true,
    },
  }),
  remote("task delete", "ID…", "delete tasks permanently", {}, ADMIN_ABOUT),
  remote("node list", "", "list all nodes"),
  remote("node show", "ID", "show one node"),
  remote("node drain", "ID", "give a node no new tasks, and let it finish its tasks", {
    off: { help: "end the drain" },
  }),
  remote("node delete", "ID", "delete the registration of a node", {}, ADMIN_ABOUT),
  remote(
    "message send",
    "CONTENT",
    "send a message to a node, and print its id",
    {
      from: { value: "NODE", help: "the sender" },
      to: { value: "NODE", help: "the recipient" },
      all: { help: "send the message to all online nodes" },
      taking: { value: "TYPE", help: "send the message to all online nodes that take tasks of this type" },
      type: { value: "TYPE", help: "text (the default), task or status", choices: SEND_TYPES },
      ack: { help: "redeliver the message until it is acknowledged" },
      "reply-to": { value: "ID", help: "the message to which this message replies" },
      thread: { value: "NAME", help: "the conversation of the message" },
    },
    "If CONTENT is -, the command reads standard input. --type and --ack are only for a message to one node.",
  ),
  remote(
    "message receive",
    "NODE",
    "take messages out of a mailbox, oldest first",
    {
      wait: { value: "TIME", help: "how long to wait for the first message, such as 30s" },
      count: { value: "N", help: "the maximum number of messages (10)" },
      ack: { help: "acknowledge the messages after they are printed" },
    },
    "Exit code 124: no message came within --wait.",
  ),
  remote("message history", "NODE", "list the messages that a node sent or got, newest first", {
    thread: { value: "NAME", help: "only messages of this conversation" },
    limit: LIMIT,
  }),
  remote("message parked", "NODE", "list the dead letters: messages that a node never acknowledged", {
    limit: LIMIT,
  }),
  remote(
    "note put",
    "KEY TEXT",
    "write a note into the shared memory of the nodes",
    { node: { value: "NODE", help: "the node that writes" }, "if-version": IF_VERSION },
    "If TEXT is -, the command reads standard input. Exit code 5: the note has another version.",
  ),
  remote("note get", "KEY", "print the text of a note"),
  remote("note list", "", "list the notes by key", { prefix: PREFIX, limit: LIMIT }),
  remote("note search", "WORD…", "list the notes that have words beginning with these", {
    prefix: PREFIX,
    limit: LIMIT,
  }),
  remote("note delete", "KEY…", "delete notes", {
    node: { value: "NODE", help: "the node that deletes the notes" },
    "if-version": IF_VERSION,
  }),
  remote(
    "lease acquire",
    "NAME",
    "take an advisory lease on a name or on the paths of a glob",
    {
      node: NODE,
      ttl: { value: "TIME", help: "how long the lease lasts (5m)" },
      shared: { help: "a shared lease: other nodes may have shared leases on the same paths" },
      task: { value: "ID", help: "the lease ends with this task, which the node must hold" },
      epoch: EPOCH,
    },
    "Acquiring a lease again renews the lease. Exit code 5: the lease conflicts with another lease.",
  ),
  remote("lease renew", "NAME", "renew a lease", {
    node: NODE,
    ttl: { value: "TIME", help: "how long the lease lasts from now; default: as before" },
    task: LEASE_TASK,
    fencing: FENCING,
  }),
  remote("lease release", "NAME…", "release leases", { node: NODE, task: LEASE_TASK, fencing: FENCING }),
  remote("lease list", "", "list the current leases", {
    node: { value: "NODE", help: "only leases of this node" },
    task: LEASE_TASK,
    limit: LIMIT,
  }),
  remote("file put", "FILE", "upload a file, and print its id", {
    task: { value: "ID", help: "attach the file to this task" },
    node: { value: "NODE", help: "attach the file to this node" },
    name: { value: "NAME", help: "the name of the file; default: the name of FILE" },
    type: { value: "TYPE", help: "the content type; default: from the name" },
  }),
  remote(
    "file get",
    "ID",
    "download a file",
    { output: { value: "FILE", help: "the file to write; - is standard output", short: "o", isPath: true } },
    "Without -o the file keeps the name of its upload, and the command overwrites no existing file.",
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
  remote("file list", "", "list files, newest first", {
    task: { value: "ID", help: "only files of this task" },
    limit: LIMIT,
  }),
  remote("file rm", "ID…", "delete files permanently"),
  remote(
    "worker",
    "-- [COMMAND…]",
    "run a command or an AI agent for each task, and report the result",
    {
      agent: {
        value: "NAME",
        help: "run an AI agent in place of a command: claude, codex, gemini, opencode, or an agent of worker.toml",
      },
      node: {
        value: "ID",
        help: "the id of the node that the worker registers; default with --agent: NAME-HOST",
      },
      name: { value: "NAME", help: "the display name of the node; default: the id" },
      capabilities: {
        value: "LIST",
        help: "the types of the tasks that the node takes, comma-separated; default: all tasks; --agent needs it or --untyped",
      },
      untyped: { help: "with --capabilities or --agent: take tasks without a type too" },
      resources: {
        value: "LIST",
        help: "what the node has, such as gpu=2,vram_gib=24: tasks may require resources",
      },
      detect: { help: "add the resources cpu, memory_gib and, with nvidia-smi, gpu and vram_gib" },
      concurrency: { value: "N", help: "how many tasks the worker does at once (1)" },
      timeout: {
        value: "TIME",
        help: "the time limit of the command, after which the attempt fails; default: max_run_s of the task",
      },
      grace: { value: "TIME", help: "the time from SIGTERM to SIGKILL when a command must end (10s)" },
      once: { help: "wait for one task, do it and exit; exit code 1: the task is not completed" },
      workdir: {
        value: "DIR",
        help: "run each command in a directory of its own below DIR, with the input files; upload out/",
        isPath: true,
      },
      "no-output": { help: "do not send the output of the command to the hub while the command runs" },
      "pass-secret": { help: "give the secret to the command, as LUXHUB_SECRET" },
      log: { value: "pretty|json", help: "the format of the log (pretty)", choices: ["pretty", "json"] },
    },
    WORKER_ABOUT,
  ),
  remote(
    "mcp",
    "",
    "connect an MCP client that only speaks stdio to the hub",
    { node: { value: "NODE", help: "the node to act for, if the key is bound to no node" } },
    MCP_ABOUT,
  ),
  remote(
    "mcp-config",
    MCP_CLIENTS.join("|"),
    "print or write the configuration of an MCP client, with a key for its node",
    {
      node: {
        value: "NODE",
        help: "the node of the client, to which the key is bound; default: the node that has joined",
      },
      write: { help: "add the configuration to the file of the client, and keep a backup of the file" },
      file: {
        value: "FILE",
        help: "the file of the client; default: where the client looks for it",
        isPath: true,
      },
      stdio: { help: "the client starts luxhub mcp, and the secret is in a file of its own" },
      name: { value: "NAME", help: "the name of the server in the client (luxhub)" },
    },
    MCP_CONFIG_ABOUT,
  ),
  remote(
    "invite",
    "NODE",
    "print the line with which the machine of a node joins the hub",
    {
      expires: { value: "TIME", help: "how long the line is valid, such as 10m, 12h or 7d (1h)" },
      "join-url": {
        value: "URL",
        help: "the URL of the hub in the line; default: --url, or an address of the hub",
      },
    },
    INVITE_ABOUT,
  ),
  remote("invitation list", "", "list the invitations of the last days", { limit: LIMIT }, ADMIN_ABOUT),
  remote(
    "invitation delete",
    "ID…",
    "delete invitations, so that nobody can join with them",
    {},
    `A key that was created with an invitation stays valid: see luxhub keys revoke.
${ADMIN_ABOUT}`,
  ),
  {
    name: "join",
    words: "LINE",
    summary: "join a hub with the line of luxhub invite",
    flags: { replace: { help: "leave the hub that this machine has joined before" } },
    about: JOIN_ABOUT,
  },
  {
    name: "keys list",
    words: "",
    summary: "list the keys, without their secrets",
    flags: { ...PLACE, json: { help: "print JSON" } },
  },
  {
    name: "keys add",
    words: "NAME",
    summary: "create a key, and print its secret",
    flags: {
      ...PLACE,
      variant: {
        value: "A|B",
        help: "pin the key to this variant, on any listener",
        choices: ["A", "B"],
      },
      node: { value: "NODE_ID", help: "bind the key to this node" },
      mint: {
        value: "LUX/d",
        help: "how much LUX the key may promise as rewards per UTC day, such as 100/d (no limit)",
      },
      expires: {
        value: "TIME",
        help: "when the key expires: a date, an ISO 8601 time, or a time from now such as 12h or 30d",
      },
      role: { value: "ROLE", help: "full (the default), viewer or admin", choices: KEY_ROLES },
      admin: { help: "the same as --role admin" },
    },
    about: `Standard output has only the secret, which is shown only once. A viewer key only reads (GET, HEAD), but no message
contents. An administrator key is for the header X-Admin-Key.`,
  },
  { name: "keys pin", words: "NAME A|B|none", summary: "pin a key to a variant, or unpin it", flags: PLACE },
  { name: "keys expire", words: "NAME TIME|never", summary: "set when a key expires", flags: PLACE },
  { name: "keys revoke", words: "NAME", summary: "revoke a key at once, permanently", flags: PLACE },
  {
    name: "backup",
    words: "FILE",
    summary: "back up the whole hub into one file, even while it runs",
    flags: {
      keep: { value: "N", help: "keep the newest N backups in the directory FILE, and delete the others" },
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
    flags: { variant: { value: "A|B", help: "the variant of the API (A)", choices: ["A", "B"] } },
    about: `No hub needs to run. A hub serves the same document at GET /api/v1/openapi.json, and as a page at /docs/api-reference.`,
  },
  {
    name: "doctor",
    words: "",
    summary: "check the whole hub, even while it runs",
    flags: PLACE,
    about: `Checks the whole database, the ledger with its hashes and all totals against their rows, the bytes of
every file against its checksum, the clock, the free space, the version of SQLite, the secrets, and
the permissions of their files. The command changes nothing. For a hub on PostgreSQL, the data directory
needs free space for a copy of the rows.
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
    summary: "install the program, its user and the systemd unit, and start the service; needs root",
    flags: {},
  },
  { name: "service print", words: "", summary: "print the systemd unit", flags: {} },
  {
    name: "service remove",
    words: "",
    summary: "stop the service, and remove the unit but not the data; needs root",
    flags: {},
  },
  {
    name: "completions",
    words: "bash|zsh|fish",
    summary: "print the completions for a shell",
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
