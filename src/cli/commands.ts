/**
 * Declares every command: its words, its flags and a one-line summary; and of a command that is one call of the API,
 * the call and what is printed. Grammar, help, manual page and completions come from here. Must not: import the code
 * that runs a command.
 */
import { SETTING_ROWS } from "../config.ts";
import { EVENT_KINDS } from "../domain/event.ts";
import { ADDED_KEY_ROLES, SEND_TYPES } from "../domain/model.ts";
import { TASK_FIELDS, type TaskField } from "../domain/task/fields.ts";
import type { Form } from "./arguments.ts";
import { ADMIN_ABOUT, type Command, DATA, local, remote, resource } from "./command.ts";
import {
  NODE_HEAD,
  TASK_HEAD,
  budgetName,
  budgetRow,
  lessonText,
  limitRow,
  messageText,
  nodeRow,
  pauseName,
  scheduleRow,
  taskLine,
  taskRow,
  webhookRow,
} from "./rows.ts";
import { CLIENTS } from "./mcp-clients.ts";
import { timeText } from "./table.ts";

/** In place of a client of `luxhub mcp-config`. */
export const AGENTS_FILE = "agents-md";
export const MCP_CLIENTS: readonly string[] = [...CLIENTS, AGENTS_FILE];

const PLACE = { ...DATA, "database URL": "the database of a hub that uses PostgreSQL (LUXHUB_DATABASE)" };

const LIMIT = { "limit N": "the maximum number of rows (50; all with --json)" };
const NODE = { "node NODE": "the node to act for" };
const PER = { "per PERIOD": "the period of the budget: day, month (both in UTC) or total" };
const PAUSED = {
  "type TYPE": "only tasks of this type",
  "limit-key KEY": "only tasks with this limit key",
  "creator NODE": "only tasks that this node created",
};
const IF_VERSION = { "if-version N": "only if the note has this version; 0: only if there is no such note" };
const PREFIX = { "prefix TEXT": "only keys that begin with TEXT" };
const LEASE_TASK = { "task ID": "only leases for this task" };
const FENCING = { "fencing N": "only the lease with this fencing token" };
const EPOCH = {
  "epoch N": "the epoch of the lease: an error if the task has been handed out again since (stale_lease)",
};

const LUX_ABOUT = `luxhub lux export, head and verify are about the ledger of all nodes; see luxhub lux verify --help.`;

const VERIFY_ABOUT = `FILE is an export of luxhub lux export. Without FILE, or if FILE is -, the command reads standard input.
The hash of each entry covers the entry and the hash before it. So the command finds a changed digit, and
a missing, moved or added entry. With --head it also finds that the ledger was rewritten, or that entries
are missing at its end.
Exit code 1: the export is not intact.

luxhub lux export | luxhub lux verify --head 5f2c…`;

const INVITE_ABOUT = `The line has the URL of the hub, a token for one use and, with serve --tls auto, the hash of the key of the hub.
The joining machine checks this hash before it sends anything.
${ADMIN_ABOUT}

luxhub invite worker-2 --expires 10m`;

const JOIN_ABOUT = `Creates a key that is bound to the node, and stores the key with the URL of the hub in ~/.config/luxhub/hub.json
(or the file of LUXHUB_JOINED), which only this user can read. Afterwards the commands that call a hub need neither a
URL nor a secret on this machine:

luxhub worker -- ./work.sh

The line of luxhub invite --standby makes the data directory that of a standby, which luxhub serve then starts. Without
a LINE, a hub that was superseded becomes the standby of the hub that was promoted.`;

const PROMOTE_ABOUT = `Run it on the machine of the standby, when the first hub is gone or is to be. The standby takes what the first still
hands out, and accepts writes from then on; the first refuses them from then on, also when it comes back. Prints the last
entry, and what may be missing. If the standby does not run, its next start makes it the first.
${ADMIN_ABOUT}`;

const RUN_ABOUT = `FILE is YAML or JSON (- is standard input), and is checked as a whole before anything is created:

tasks:
  fetch: {title: Fetch the pages, description: ..., task_type: fetch}
  read:
    needs: fetch
    matrix: {n: 1..150}
    title: Read page {{n}}
    task_type: read
  report: {needs: read, title: Write the report, task_type: write}

A task has the fields of task/create, and needs, matrix and files (paths from the directory of FILE).
Exit code 1: a task has failed.`;

const APPLY_ABOUT = `FILE is YAML or JSON (- is standard input), and is checked as a whole before anything is changed:

schedules:
  - {name: nightly, cron: "30 2 * * *", task: {title: Back up, description: Into the archive}}
limits:
  - {key: gpu, running: 2}
budgets:
  - {scope: hub, per: day, cost_usd: 20}

An entry has the fields of schedule/put, limit/set, budget/set, webhook/put or key/add, without secrets. What FILE does
not name stays. The command prints each change, with the secret of a new key or webhook, which is shown only once.
${ADMIN_ABOUT}`;

const EXPORT_ABOUT = `Writes nodes, tasks, notes, messages, events and the LUX ledger as JSON Lines, files under their names, and settings.json,
the FILE of luxhub apply. settings.json is written last: a directory without it is incomplete.
${ADMIN_ABOUT}`;

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

const MCP_HOOK_ABOUT = `Reads the hook's input from standard input. Before an edit of a file on which another node has a lease, and once
at the end of a turn while mail waits, the exit code is 2, and standard error says why. A hub that cannot
be reached stops nothing.

luxhub mcp-config claude --node agent-1 --hooks --write`;

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
         backups/               a directory: the name of the file has the time, luxhub-20270131T020000Z.tar
         -                      standard output
         s3://BUCKET/hub.tar    an object in a storage that speaks the S3 protocol
         s3://BUCKET/PREFIX/    an object whose name has the time

The backup is a tar archive with a consistent snapshot of the database, the files and the secrets in the
data directory. A secret that comes from the environment is not in the backup. Only the owner of the file
can read the file. The backup needs free space for a copy of the rows: next to FILE, or else in the data
directory. The address and the credentials of the storage come from S3_ENDPOINT, S3_REGION,
S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY (or AWS_…).

A backup of a hub on SQLite can be restored into PostgreSQL, and the other way round.`;

const RESTORE_ABOUT = `FILE is a file, s3://BUCKET/KEY, or - for standard input; or a place of many backups, which ends with /
(backups/, s3://BUCKET/PREFIX/). From a place the command restores the newest backup that is not later than
--at, and the changes that serve --backup-changes has written there, up to the first one later than --at.

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

function taskFlags(isScheduled: boolean) {
  const fields = Object.values<TaskField>(TASK_FIELDS);
  return Object.fromEntries(
    fields.flatMap(({ flags = {}, shown, scheduled }) =>
      isScheduled && shown?.schedule === undefined
        ? []
        : Object.entries(flags).map(([form, text]) => [form, isScheduled && scheduled ? scheduled : text]),
    ),
  );
}

function updateFlags() {
  const fields = Object.values<TaskField>(TASK_FIELDS).filter(({ patch }) => patch !== undefined);
  return Object.fromEntries(fields.flatMap(({ flags = {}, updated = flags }) => Object.entries(updated)));
}

const SELECTED_TASKS = {
  "status S": "only tasks of this status, in_review or cancelled",
  "held WORD": "only open tasks that are held back by this reason, any or none",
  "node NODE": "only tasks that this node holds or completed",
  "creator NODE": "only tasks that this node created",
  "type TYPE": "only tasks of this type",
  "group NAME": "only tasks of this group",
  "tag WORD": "only tasks with this tag",
} as const;

const deleted = (_: object, name: string): string => `${name}  deleted`;
const leaseLine = ({ fencing, until }: { readonly fencing: number; readonly until: string }): string =>
  `fencing ${fencing}, until ${until}`;

export const COMMANDS: readonly Command[] = [
  {
    ...local("serve: start the hub", {}, SERVE_ABOUT),
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
  },
  local(
    "demo: start a hub with six simulated nodes, to try luxhub; the data is removed at the end",
    { "port PORT": "the port on 127.0.0.1; default: the first free port from 19114 on" },
    `Open the URL that the command prints, and sign in with the secret below the URL. The hub runs until Ctrl-C.
The command reads no settings: neither LUXHUB_ variables nor luxhub.toml.`,
  ),
  remote("status: show the health of the hub, and counts", {}, "Exit code 1: the hub cannot write."),
  remote(
    "top: show the running tasks and the online nodes, live",
    { "interval TIME": "the refresh interval (2s)", once: "print the state once and exit" },
    "q or Ctrl-C quits. If standard output is not a terminal, the command prints the state once and exits.",
  ),
  resource(
    "lessons",
    "lessons [WORDS]: search what the workers of completed tasks have learned, newest first",
    { text: lessonText },
    { "type TYPE": "only lessons from tasks of this type", ...LIMIT },
    "Each of the WORDS must begin a word of the lesson or of the title of its task: luxhub lessons 'login cookie'",
  ),
  resource(
    "questions",
    "questions: list the open questions of all tasks, the most urgent first",
    {
      head: ["TASK", "QUESTION", "UNTIL", "ASKED BY", "TEXT"],
      cells: ({ choices, ...open }) => [
        ...[open.task_id, open.question_id, timeText(open.until), open.asked_by],
        choices.length === 0 ? open.question : `${open.question} (${choices.join(", ")})`,
      ],
    },
    LIMIT,
  ),
  resource(
    "reviews",
    "reviews: list the results that wait for a review, the most urgent first",
    {
      columns:
        "TASK task_id, UNTIL review.until, REVIEWER review.by, DONE BY assigned_node, LUX lux_held, TITLE title",
    },
    LIMIT,
  ),
  remote("usage: sum up what work has cost in tokens and dollars", {
    "by WHAT": [
      "one row for each day (the default), node, creator, type, model or group",
      ["day", "node", "creator", "type", "model", "group"],
    ],
    "since DAY": "the first day in UTC, such as 2030-01-31; default: 29 days before the last day",
    "until DAY": "the last day in UTC; default: today",
    ...LIMIT,
  }),
  resource(
    "budget/set",
    "budget set SCOPE [VALUE]: limit what work may cost",
    { part: "budget", say: (budget) => `${budgetName(budget)}  ${budget.state}` },
    {
      ...PER,
      "cost-usd USD": "how many dollars work may cost",
      "tokens N": "how many tokens work may use, input and output together",
      "on-limit WHAT": "pause (the default): stop the dispatch of the tasks; warn: only record an event",
    },
    `SCOPE is hub, or node, creator, type or group with a VALUE; creator or type without a VALUE means the
tasks without a creator or without a type.`,
  ),
  resource(
    "webhook/put",
    "webhook put NAME URL: create or replace a webhook, which sends events to a URL, and print its secret once",
    { say: ({ secret }, name) => secret ?? `${name}  saved` },
    {
      "kind KIND…": "only events of this kind; repeatable",
      "task ID": "only events of this task",
      "node NODE": "only events of this node",
      "creator NODE": "only events of the tasks that this node created",
      "group NAME": "only events of the tasks of this group",
      "format FORMAT":
        "luxhub (the default): signed JSON; ntfy: notifications for people; a2a: A2A push notifications",
      "secret-env NAME":
        "the environment variable with the secret to use: whsec_…, or the access token of ntfy",
    },
    `The hub calls its own machine or a private network only if serve --webhook-allow names this address or network.`,
  ),
  resource(
    "webhook/list",
    "webhook list: list all webhooks, and the state of their deliveries",
    { head: ["WEBHOOK", "STATE", "CURSOR", "DELIVERED", "FAULT", "URL"], cells: webhookRow },
    LIMIT,
  ),
  resource("webhook/test", "webhook test NAME: send a test message now, and print the outcome", {
    say: ({ delivered, error, status, ms }, name) =>
      `${name}  ${delivered ? "delivered" : "failed"}  ${error ?? `HTTP ${status}`}  ${ms} ms`,
    isFailure: ({ delivered }) => !delivered,
  }),
  resource(
    "webhook/resume",
    "webhook resume NAME: resume the deliveries, from the first event that was not delivered",
    {
      say: ({ webhook }, name) => `${name}  resumed after the event ${webhook.cursor}`,
    },
    { "after N": "resume after the event with this id instead: skips events, or sends events again" },
  ),
  resource("webhook/delete", "webhook delete NAME: delete a webhook", { say: deleted }),
  resource(
    "budget/list",
    "budget list: list all budgets, and how much of each is used",
    {
      none: "There are no budgets.",
      head: ["BUDGET", "STATE", "USD", "OF", "WITHOUT COST", "TOKENS", "OF", "AT THE LIMIT"],
      cells: budgetRow,
    },
    LIMIT,
  ),
  resource(
    "budget/delete",
    "budget delete SCOPE [VALUE]: delete a budget",
    { part: "budget", say: (budget) => `${budgetName(budget)}  deleted` },
    PER,
  ),
  resource(
    "usage/void",
    "budget void NODE: take what a node has reported on a day off all sums and budgets",
    {
      say: ({ node_id, day, voided: { reports, cost_usd } }) =>
        `${node_id} on ${day}  ${reports} ${reports === 1 ? "report" : "reports"}, ${cost_usd ?? 0} USD voided`,
    },
    { "day DAY": "the day in UTC, such as 2030-01-31; default: today", "reason TEXT": "the reason" },
  ),
  resource(
    "limit/set",
    "limit set KEY: limit how many tasks of a key run at once, or start in a minute",
    { part: "limit", say: ({ key }) => `${key || "(none)"}  set` },
    {
      "running N": "how many tasks may be assigned at once",
      "per-minute N": "how many tasks may be handed out in any 60 s",
    },
    `The KEY of a task is its limit_key, or its type if the task has no limit_key.`,
  ),
  resource(
    "limit/list",
    "limit list: list all limits and holds, and how much of each is used",
    {
      none: "There are no limits.",
      head: ["KEY", "RUNNING", "OF", "LAST MINUTE", "OF", "HELD UNTIL", "HELD BY"],
      cells: limitRow,
    },
    LIMIT,
  ),
  resource("limit/delete", "limit delete KEY: delete a limit, and end its hold", {
    part: "limit",
    say: ({ key }) => `${key || "(none)"}  deleted`,
  }),
  resource(
    "limit/hold",
    "limit hold KEY: hand out no task of a key for a time",
    { part: "limit", say: ({ key, held_until }) => `${key || "(none)"}  held until ${held_until}` },
    { "for TIME": "how long the hold lasts, at most 1h", ...NODE },
  ),
  resource(
    "hub/pause",
    "pause: stop the dispatch of a type, of a limit key, of a creator, or of all tasks",
    { part: "pause", say: (pause) => `${pauseName(pause)}  paused` },
    { ...PAUSED, "reason TEXT": "the reason" },
  ),
  resource(
    "hub/resume",
    "resume: end a pause",
    { part: "pause", say: (pause) => `${pauseName(pause)}  resumed` },
    PAUSED,
  ),
  resource(
    "hub/pauses",
    "pauses: list the pauses",
    {
      none: "Nothing is paused.",
      head: ["PAUSED", "SINCE", "REASON"],
      cells: (pause) => [pauseName(pause), pause.at, pause.reason],
    },
    LIMIT,
  ),
  remote("lux NODE: show the balance and the ledger of a node", LIMIT, LUX_ABOUT),
  remote(
    "lux export: print the ledger of all nodes as JSON Lines, oldest entry first",
    {},
    "luxhub lux export > ledger.jsonl",
  ),
  resource(
    "lux/head",
    "lux head: print the number and the hash of the newest entry of the ledger, for lux verify",
    { part: "head", say: ({ seq, hash }) => `${seq}  ${hash ?? "no hash"}` },
  ),
  local(
    "lux verify [FILE]: verify that nothing in an exported ledger was changed, removed or added; needs no hub",
    { "head HASH": "a hash from lux head or a receipt: the ledger must have the entry with this hash" },
    VERIFY_ABOUT,
  ),
  remote(
    "events: print the event log",
    {
      "-f follow": "keep printing new events; with --json as JSON Lines",
      "kind KIND…": ["only events of this kind; repeatable", EVENT_KINDS],
      "since N": "only events after this id; without --since the newest events",
      "task ID": "only events of this task",
      "node NODE": "only events of this node",
      "group NAME": "only events of the tasks of this group, and the end of the group",
      "tag WORD": "only events of tasks with this tag",
      "limit N": "the maximum number of events (50; all with --since or --json)",
    },
    "--follow survives a restart of the hub: no event is missed or printed twice.",
  ),
  remote(
    "schedule put NAME [TITLE]: create or replace a schedule, which creates tasks at certain times, and print the next time",
    {
      "run FILE": "create the tasks of a pipeline (see luxhub run) in place of the task TITLE",
      "cron CRON": "minute, hour, day of month, month, day of week; or a word such as @daily",
      "tz ZONE": "the time zone of --cron, for example Europe/Berlin (UTC)",
      "every TIME": "a fixed interval instead of --cron, for example 15m",
      "overlap HOW": [
        "while an earlier task is unfinished: skip the time (the default), or create a task at each time",
        ["skip", "queue"],
      ],
      "catch-up HOW": [
        "after times at which no hub ran: one task for the last of these times (the default), or none",
        ["one", "none"],
      ],
      "jitter TIME": "start each task later, by a random time of at most TIME",
      "until TIME": "the end of the schedule: a time from now, or ISO 8601",
      paused: "create no tasks until the schedule is saved without --paused",
      ...taskFlags(true),
    },
    "luxhub schedule put nightly 'Back up the wiki' -d 'Into the archive.' --cron '30 2 * * *' --tz Europe/Berlin",
  ),
  resource(
    "group/list",
    "group list [PREFIX]: list the groups by name; with PREFIX those whose name begins with PREFIX",
    {
      columns:
        "GROUP group, TASKS total, UNFINISHED unfinished, FAILED by_status.failed, CHANGED last_updated_at",
    },
    LIMIT,
  ),
  remote(
    "group watch NAME: show the progress of a group until all its tasks have ended",
    { "timeout TIME": "how long to wait, such as 10m; default: no limit" },
    "Shows a progress bar on a terminal, and elsewhere prints a line for each change. Exit code 1: a task has failed.",
  ),
  remote("group show NAME: show counts, times, the cost and the last failures of a group"),
  remote("group cancel NAME: cancel the unfinished tasks of a group, whose status is then failed", {
    "node NODE": "the node that cancels the tasks",
    "reason TEXT": "the reason",
  }),
  remote("group retry NAME: open the failed tasks of a group again"),
  resource(
    "schedule/list",
    "schedule list: list all schedules, by name",
    { head: ["SCHEDULE", "TIMES", "NEXT", "LAST", "TITLE"], cells: scheduleRow },
    LIMIT,
  ),
  resource("schedule/run", "schedule run NAME: create a task of a schedule now, and print its id", {
    say: ({ task_id }) => task_id,
  }),
  resource("schedule/delete", "schedule delete NAME: delete a schedule, but not its tasks", { say: deleted }),
  remote(
    "task add TITLE: create a task, and print its id",
    taskFlags(false),
    "luxhub task wait $(luxhub task add 'Say hello')",
  ),
  resource(
    "task/list",
    "task list: list tasks, newest first",
    { head: TASK_HEAD, cells: taskRow, order: "newest" },
    { ...SELECTED_TASKS, ...LIMIT },
  ),
  resource(
    "task/list",
    "task export: print tasks with their results as JSON Lines, newest first",
    { isExport: true },
    SELECTED_TASKS,
    "luxhub task export --group nightly > results.jsonl",
  ),
  resource("task/{task_id}", "task show ID: show one task with its result", { part: "task" }),
  remote("task why ID: list all reasons why a task does not run"),
  remote(
    "task wait ID…: wait until tasks are completed or have failed; of one task print the output",
    {
      full: "print all fields of the task",
      any: "wait only until one of the tasks has ended",
      "timeout TIME": "how long to wait, such as 10s; default: no limit",
    },
    "Exit code 0: the tasks that ended are completed. 1: a task has failed. 124: the time of --timeout was over first.",
  ),
  remote("task diff ID: print the changes that a task has left in a repository, as a patch"),
  remote(
    "task apply ID: apply the changes of a task to the checkout of the repository here",
    { force: "also to a checkout with changes that are not committed" },
    "The patch is applied with git apply --3way, and nothing is committed.",
  ),
  remote(
    "task logs ID: print the output of a task, also while the task runs",
    {
      "-f follow": "keep printing until the task has ended",
      "attempt N": "the attempt, by its epoch; default: the newest attempt that has output",
      raw: "print the output unchanged, with its control characters",
    },
    "--follow survives a restart of the hub: nothing is missed or printed twice. With --json the command prints\neach part as a line of JSON.",
  ),
  resource(
    "task/claim",
    "task claim ID…: claim open tasks for a node",
    { part: "task", say: taskLine },
    NODE,
  ),
  resource(
    "task/release",
    "task release ID…: give back tasks that a node holds",
    { part: "task", say: taskLine },
    { ...NODE, "reason TEXT": "the reason", ...EPOCH },
  ),
  remote("task complete ID: complete a task with its result", {
    ...NODE,
    "result FILE": "a JSON object with problem, improvement and lesson; - reads standard input",
    ...EPOCH,
  }),
  resource(
    "task/fail",
    "task fail ID: report that the attempt of a node failed",
    { part: "task", say: taskLine, switches: { "no-retry": { retry: false } } },
    { ...NODE, "error TEXT": "what went wrong", "no-retry": "fail the task permanently", ...EPOCH },
  ),
  remote(
    "task checkpoint ID: save the JSON on standard input as the checkpoint of a task that a node holds",
    { ...NODE, ...EPOCH },
    `In a command of luxhub worker, the defaults of --node and --epoch come from the environment.`,
  ),
  remote(
    "task ask ID QUESTION: ask a question about a task that a node holds",
    {
      ...NODE,
      ...EPOCH,
      "choice TEXT…": "an answer to choose from; repeatable",
      "schema FILE": "the JSON Schema of the answer",
      "within TIME": "how long the question stays open (1d)",
      park: "give the task back until there is an answer",
      "wait TIME": "how long to wait for the answer, which the command then prints",
    },
    `Prints the id of the question, or with --wait the answer: a string unchanged, anything else as JSON.
Exit code 124: there was no answer in time.
In a command of luxhub worker, the defaults of --node and --epoch come from the environment.`,
  ),
  resource(
    "task/review",
    "task review ID VERDICT: pass or reject the result of a task that was created with --review",
    { say: ({ task }, id) => `${id}  ${task.review?.state}` },
    {
      "node NODE": "the node that reviews",
      "note TEXT": "the reason, which the next worker of the task gets",
      "epoch N": "the epoch of the reviewed result: an error if there is a newer result",
    },
    "VERDICT is pass, which pays the reward, or reject, which opens the task again.",
  ),
  remote("task answer ID ANSWER: answer an open question of a task", {
    "question ID": "the question; needed if the task has several open questions",
    parse: "ANSWER is JSON; without --parse ANSWER is a string",
    force: "also give an answer that is none of the choices of the question",
    "node NODE": "the node that answers",
  }),
  remote(
    "task usage [ID]: report the tokens and the cost of one step of an attempt",
    {
      "model NAME": "the model",
      "input-tokens N": "the number of input tokens",
      "output-tokens N": "the number of output tokens",
      "cached-tokens N": "how many of the input tokens came from a cache",
      "cost-usd USD": "the cost of the step; leave it out if unknown",
      "seq N": "the number of the step in the attempt: a repeat counts once",
      ...NODE,
      ...EPOCH,
    },
    `In a command of luxhub worker leave out ID, --seq, --node and --epoch: the worker numbers and sends the report,
and the command needs no secret.`,
  ),
  remote("task retry ID…: open failed tasks again", {
    "with-dependents": "also open the tasks that failed only because of these tasks",
    "max-cost USD": "a new --max-cost, for tasks that have cost too much",
  }),
  resource(
    "task/cancel",
    "task cancel ID…: cancel unfinished tasks, whose status is then failed",
    { part: "task", say: taskLine },
    { "node NODE": "the node that cancels the tasks", "reason TEXT": "the reason" },
  ),
  remote("task update ID…: change tasks that nobody holds", updateFlags()),
  resource("task/delete", "task delete ID…: delete tasks permanently", { say: deleted }),
  resource("node/list", "node list: list all nodes", { head: NODE_HEAD, cells: nodeRow }),
  resource("node/{node_id}", "node show ID: show one node", { part: "node" }),
  resource(
    "node/drain",
    "node drain ID: give a node no new tasks, and let it finish its tasks",
    {
      fixed: { drain: true },
      switches: { off: { drain: false } },
      say: ({ drain, tasks_assigned }, id) =>
        drain
          ? `${id} gets nothing new; it has ${tasks_assigned} unfinished ${tasks_assigned === 1 ? "task" : "tasks"}`
          : `${id} gets tasks again`,
    },
    { off: "end the drain" },
  ),
  resource("node/delete", "node delete ID: delete the registration of a node", {
    say: (_, id) => `${id} is deleted`,
  }),
  remote(
    "message send CONTENT: send a message to a node, and print its id",
    {
      "from NODE": "the sender",
      "to NODE": "the recipient",
      all: "send the message to all online nodes",
      "taking TYPE": "send the message to all online nodes that take tasks of this type",
      "type TYPE": ["text (the default), task or status", SEND_TYPES],
      ack: "redeliver the message until it is acknowledged",
      "reply-to ID": "the message to which this message replies",
      "thread NAME": "the conversation of the message",
    },
    "If CONTENT is -, the command reads standard input. --type and --ack are only for a message to one node.",
  ),
  remote(
    "message receive NODE: take messages out of a mailbox, oldest first",
    {
      "wait TIME": "how long to wait for the first message, such as 30s",
      "count N": "the maximum number of messages (10)",
      ack: "acknowledge the messages after they are printed",
    },
    "Exit code 124: no message came within --wait.",
  ),
  resource(
    "message/history",
    "message history NODE: list the messages that a node sent or got, newest first",
    { text: messageText, between: "\n\n" },
    { "thread NAME": "only messages of this conversation", ...LIMIT },
  ),
  resource(
    "message/parked",
    "message parked NODE: list the dead letters: messages that a node never acknowledged",
    { text: messageText, between: "\n\n" },
    { ...LIMIT },
  ),
  resource(
    "note/put",
    "note put KEY TEXT: write a note into the shared memory of the nodes",
    { part: "note", say: ({ version }) => `version ${version}`, input: "text" },
    { "node NODE": "the node that writes", ...IF_VERSION },
    "If TEXT is -, the command reads standard input. Exit code 5: the note has another version.",
  ),
  resource("note/get", "note get KEY: print the text of a note", { part: "note", say: ({ text }) => text }),
  resource(
    "note/list",
    "note list: list the notes by key",
    { columns: "KEY key, VERSION version, BYTES bytes, NODE node_id, CHANGED updated_at" },
    { ...PREFIX, ...LIMIT },
  ),
  resource(
    "note/search",
    "note search WORD…: list the notes that have words beginning with these",
    { columns: "KEY key, NODE node_id, TEXT excerpt" },
    { ...PREFIX, ...LIMIT },
  ),
  resource(
    "note/delete",
    "note delete KEY…: delete notes",
    { say: deleted },
    { "node NODE": "the node that deletes the notes", ...IF_VERSION },
  ),
  resource(
    "lease/acquire",
    "lease acquire NAME: take an advisory lease on a name or on the paths of a glob",
    { part: "lease", say: leaseLine },
    {
      ...NODE,
      "ttl TIME": "how long the lease lasts (5m; with --task as long as the task)",
      shared: "a shared lease: other nodes may have shared leases on the same paths",
      "task ID": "the lease ends with this task, which the node must hold",
      ...EPOCH,
    },
    "Acquiring a lease again renews the lease. Exit code 5: the lease conflicts with another lease.",
  ),
  resource(
    "lease/renew",
    "lease renew NAME: renew a lease",
    { part: "lease", say: leaseLine },
    {
      ...NODE,
      "ttl TIME": "how long the lease lasts from now; default: as before",
      ...LEASE_TASK,
      ...FENCING,
    },
  ),
  resource(
    "lease/release",
    "lease release NAME…: release leases",
    {
      say: ({ released }, name) => `${name}  ${released > 0 ? "released" : "was not held"}`,
    },
    { ...NODE, ...LEASE_TASK, ...FENCING },
  ),
  resource(
    "lease/list",
    "lease list: list the current leases",
    { columns: "NAME name, NODE node_id, TASK task_id, SHARED shared, FENCING fencing, UNTIL until" },
    { "node NODE": "only leases of this node", ...LEASE_TASK, ...LIMIT },
  ),
  remote("file put FILE: upload a file, and print its id", {
    "task ID": "attach the file to this task",
    "node NODE": "attach the file to this node",
    "name NAME": "the name of the file; default: the name of FILE",
    "type TYPE": "the content type; default: from the name",
  }),
  remote(
    "file get ID: download a file",
    { "-o output FILE": "the file to write; - is standard output" },
    "Without -o the file keeps the name of its upload, and the command overwrites no existing file.",
  ),
  resource(
    "file/download-url",
    "file url ID: print a URL that downloads a file without a secret, for 10 minutes",
    { say: ({ url }) => url },
  ),
  resource(
    "file/upload-url",
    "file upload-url: print a URL that uploads one file without a secret, for 10 minutes",
    { say: ({ url }) => url },
    { "task ID": "attach the file to this task", "node NODE": "attach the file to this node" },
    'curl -F file=@report.pdf "$(luxhub file upload-url)"',
  ),
  resource(
    "file/list",
    "file list: list files, newest first",
    { columns: "FILE file_id, SIZE size, UPLOADED uploaded_at, NODE node_id, TASK task_id, NAME name" },
    { "task ID": "only files of this task", ...LIMIT },
  ),
  resource("file/delete", "file rm ID…: delete files permanently", { say: deleted }),
  remote(
    "run FILE: create the tasks of a pipeline, and follow them to their end",
    {
      "group NAME": "the group of the tasks; default: the group of the file, or its name, with the time",
      detach: "only create the tasks",
    },
    RUN_ABOUT,
  ),
  remote(
    "apply FILE: add and change schedules, limits, budgets, webhooks and keys as FILE says",
    { "dry-run": "only print what would change" },
    APPLY_ABOUT,
  ),
  remote("export DIR: write all data that the API returns into a new directory", {}, EXPORT_ABOUT),
  remote(
    "worker -- [COMMAND…]: run a command or an AI agent for each task, and report the result",
    {
      "agent NAME":
        "run an AI agent in place of a command: claude, codex, gemini, opencode, or an agent of worker.toml",
      "node ID": "the id of the node that the worker registers; default with --agent: NAME-HOST",
      "name NAME": "the display name of the node; default: the id",
      "capabilities LIST":
        "the types of the tasks that the node takes, comma-separated; default: all tasks; --agent needs it or --untyped",
      untyped: "with --capabilities or --agent: take tasks without a type too",
      "resources LIST": "what the node has, such as gpu=2,vram_gib=24: tasks may require resources",
      detect: "add the resources cpu, memory_gib and, with nvidia-smi, gpu and vram_gib",
      mcp: "with --agent: the agent gets the MCP tools of the hub, as the node of the worker",
      "concurrency N": "how many tasks the worker does at once (1)",
      "timeout TIME":
        "the time limit of the command, after which the attempt fails; default: max_run_s of the task",
      "grace TIME": "the time from SIGTERM to SIGKILL when a command must end (10s)",
      once: "wait for one task, do it and exit; exit code 1: the task is not completed",
      "workdir DIR":
        "run each command in a directory of its own below DIR, with the input files; upload out/",
      "repo DIR":
        "the git repository of the tasks: each attempt runs in a worktree on a branch of its own, and leaves a patch",
      "base REF": "with --repo: the branch, tag or commit from which the branches begin (the current one)",
      "fetch REMOTE": "with --repo: fetch this remote before each attempt",
      "push REMOTE": "with --repo: push the branch of the task to this remote after each attempt",
      "idle-timeout TIME":
        "the time without output, note, usage or question after which an attempt has stalled; default with --agent: 15m",
      "mask NAME…": "mask the value of this variable too, as of those named *KEY, *TOKEN, *SECRET, *PASSWORD",
      "no-output": "do not send the output of the command to the hub while the command runs",
      "pass-secret": "give the secret to the command, as LUXHUB_SECRET",
      "log pretty|json": "the format of the log (pretty)",
    },
    WORKER_ABOUT,
  ),
  remote(
    "mcp: connect an MCP client that only speaks stdio to the hub",
    {
      "node NODE":
        "the node to act for; NODE.*: each process that runs is a node of its own: NODE, NODE.2, NODE.3, …",
      "task ID": "the client does this task for a worker: without the tools that take and end tasks",
    },
    MCP_ABOUT,
  ),
  remote(
    `mcp-config ${MCP_CLIENTS.join("|")}: print or write the configuration of an MCP client, with a key for its node`,
    {
      "node NODE": "the node of the client, to which the key is bound; default: the node that has joined",
      write: "add the configuration to the file of the client, and keep a backup of the file",
      "file FILE": "the file of the client; default: where the client looks for it",
      http: "the client calls the hub with the secret in its file, in place of starting luxhub mcp",
      trust: "the tools need no confirmation (gemini, qwen)",
      hooks:
        "claude: in place of the server, hooks that check leases before an edit, and mail at the start and the end",
      "name NAME": "the name of the server in the client (luxhub)",
    },
    MCP_CONFIG_ABOUT,
  ),
  remote(
    "mcp-hook: check leases and mail for a hook of Claude Code",
    { "node NODE": "the node of the session; NODE.*: the session that this client's luxhub mcp is" },
    MCP_HOOK_ABOUT,
  ),
  remote(
    "invite NODE: print the line with which the machine of a node joins the hub",
    {
      "expires TIME": "how long the line is valid, such as 10m, 12h or 7d (1h)",
      "join-url URL": "the URL of the hub in the line; default: --url, or an address of the hub",
      standby: "NODE is a machine that will hold a second copy of the hub (docs/second-copy.md)",
    },
    INVITE_ABOUT,
  ),
  resource(
    "invitation/list",
    "invitation list: list the invitations of the last days",
    { columns: "ID invitation_id, NODE node_id, STATE state, EXPIRES expires_at, USED used_at, KEY key" },
    LIMIT,
  ),
  resource(
    "invitation/delete",
    "invitation delete ID…: delete invitations, so that nobody can join with them",
    { say: (_, id) => `${id} deleted` },
    {},
    `A key that was created with an invitation stays valid: see luxhub keys revoke.`,
  ),
  local(
    "join [LINE]: join a hub with the line of luxhub invite",
    { replace: "leave the hub that this machine has joined before", ...DATA },
    JOIN_ABOUT,
  ),
  remote("promote: make this machine's standby the hub that accepts writes", {}, PROMOTE_ABOUT),
  local("keys list: list the keys, without their secrets", { ...PLACE, json: "print JSON" }),
  local(
    "keys add NAME: create a key, and print its secret",
    {
      ...PLACE,
      "variant A|B": "pin the key to this variant, on any listener",
      "node NODE_ID": "bind the key to this node",
      "mint LUX/d": "how much LUX the key may promise as rewards per UTC day, such as 100/d (no limit)",
      "expires TIME": "when the key expires: a date, an ISO 8601 time, or a time from now such as 12h or 30d",
      "role ROLE": ["full (the default), viewer or admin", ADDED_KEY_ROLES],
      admin: "the same as --role admin",
      json: "print the key and its secret as JSON",
    },
    `Standard output has only the secret, which is shown only once. A viewer key only reads (GET, HEAD), but no message
contents. An administrator key is for the header X-Admin-Key.`,
  ),
  local("keys pin NAME A|B|none: pin a key to a variant, or unpin it", PLACE),
  local("keys expire NAME TIME|never: set when a key expires", PLACE),
  local("keys revoke NAME: revoke a key at once, permanently", PLACE),
  local(
    "backup FILE: back up the whole hub into one file, even while it runs",
    { "keep N": "keep the newest N backups in the directory FILE, and delete the others", ...PLACE },
    BACKUP_ABOUT,
  ),
  local(
    "restore FILE: restore a backup into an empty directory or an empty PostgreSQL database",
    {
      "at TIME": "the moment to restore: an ISO 8601 time, or how long ago, such as 10m (the newest)",
      ...PLACE,
    },
    RESTORE_ABOUT,
  ),
  local(
    "openapi: print the API as an OpenAPI document",
    { "variant A|B": "the variant of the API (A)" },
    `No hub needs to run. A hub serves the same document at GET /api/v1/openapi.json, and as a page at /docs/api-reference.`,
  ),
  local(
    "doctor: check the whole hub, even while it runs",
    PLACE,
    `Checks the whole database, the ledger with its hashes and all totals against their rows, the bytes of
every file against its checksum, the clock, the free space, the version of SQLite, the secrets, and
the permissions of their files. The command changes nothing. For a hub on PostgreSQL, the data directory
needs free space for a copy of the rows.
Exit code 0: no error found. 1: an error was found.`,
  ),
  local(
    "move: move a stopped hub from SQLite into PostgreSQL, or back",
    {
      "to postgres|URL": "from the data directory into the database",
      "from postgres|URL": "from the database into the data directory",
      ...DATA,
    },
    MOVE_ABOUT,
  ),
  local(
    "service install: install the program, its user and the systemd unit, and start the service; needs root",
  ),
  local("service print: print the systemd unit"),
  local("service remove: stop the service, and remove the unit but not the data; needs root"),
  local(
    "completions bash|zsh|fish: print the completions for a shell",
    {},
    `  bash   source <(luxhub completions bash)                       in ~/.bashrc
  zsh    source <(luxhub completions zsh)                        in ~/.zshrc, after compinit
  fish   luxhub completions fish > ~/.config/fish/completions/luxhub.fish`,
  ),
  local(
    "man: print the manual page",
    {},
    "luxhub man | man -l -   reads it; luxhub man > /usr/local/share/man/man1/luxhub.1 installs it.",
  ),
  local("version: print the version"),
  local("help [COMMAND…]: print the help"),
];

/** The distinct first words of all commands: "serve", "task", … */
export const FIRST_WORDS: readonly string[] = [
  ...new Set(COMMANDS.map(({ name }) => name.replace(/ .*/, ""))),
];

export function commandsOf(group: string): readonly Command[] {
  return COMMANDS.filter(({ name }) => name.startsWith(`${group} `));
}

export function commandNamed(name: string): Command {
  const command = COMMANDS.find((command) => command.name === name);
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
