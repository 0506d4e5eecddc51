/** `luxhub top`: shows what runs and who is online. */
import { writeSync } from "node:fs";
import { HubUnreachable } from "../client/luxhub.ts";
import { SECOND_MS, systemClock } from "../lib/clock.ts";
import { EXIT } from "./exit-codes.ts";
import { type Remote, type ClientRuns, recordOf } from "./remote.ts";
import { NODE_HEAD, TASK_HEAD, copyLines, nodeRow, taskRow } from "./rows.ts";
import { endingSignals } from "./signals.ts";
import { bold, truncateToTerminal, plain, print, printJson, durationText, tableOf } from "./table.ts";

export const RUNS: ClientRuns = {
  top: async (remote) => {
    const { values, json } = remote;
    const intervalMs = (values.seconds("interval") ?? 2) * SECOND_MS;
    if (json) printJson(await look(remote));
    else if (values.has("once") || !process.stdout.isTTY)
      print((await picture(remote, null, SHOWN_TASKS)).lines.join("\n"));
    else await live(remote, Math.max(intervalMs, SHORTEST_MS));
    return EXIT.OK;
  },
};

const SHORTEST_MS = 200;
const SHOWN_TASKS = 20;
const SHOWN_NODES = 50;
const HEAD_ROWS = 5;

async function look({ hub }: Remote) {
  const [status, stats, fleet, { nodes }, { tasks }] = await Promise.all([
    hub.status(),
    hub.tasks.stats(),
    hub.nodes.stats(),
    hub.nodes.list({ status: "online", order: "busy", per_page: SHOWN_NODES }),
    hub.tasks.list({ status: "assigned", per_page: SHOWN_TASKS }),
  ]);
  return { status: recordOf(status), stats: recordOf(stats), fleet: recordOf(fleet), nodes, tasks };
}

type Count = { readonly at: number; readonly completed: number };

/**
 * `before`: the count of the previous screen, for the rate.
 * `mostTasks` leaves room for the nodes.
 */
async function picture(
  remote: Remote,
  before: Count | null,
  mostTasks: number,
): Promise<{ readonly lines: readonly string[]; readonly count: Count }> {
  const { status, stats, fleet, nodes, tasks } = await look(remote);
  const count = { at: systemClock().steady(), completed: stats.by_status.completed };
  const perMinute =
    before === null
      ? null
      : ((count.completed - before.completed) * 60_000) / Math.max(1, count.at - before.at);
  const words = Object.entries(stats.by_status).map(([word, number]) => `${word} ${number}`);
  const { online, offline } = fleet.by_status;
  const hint = online > nodes.length ? [`… the busiest ${nodes.length} of ${online} online nodes`] : [];
  const running = tasks.filter(({ assigned_node }) => assigned_node !== null).slice(0, mostTasks);
  return {
    count,
    lines: [
      `${bold(plain(status.software))}  ${remote.hub.url}  ${status.status}  up ${durationText(status.uptime * SECOND_MS)}  ${status.transport}`,
      `tasks ${stats.total}: ${words.join(", ")}${perMinute === null ? "" : `, ${perMinute.toFixed(1)} completed a minute`}`,
      `nodes ${fleet.total}: online ${online}, offline ${offline}`,
      ...copyLines(status.copy),
      "",
      ...tableOf(TASK_HEAD, running.map(taskRow)),
      "",
      ...tableOf(NODE_HEAD, nodes.map(nodeRow)),
      ...hint,
    ],
  };
}

const ENTER = "\x1b[?1049h\x1b[?25l";
const LEAVE = "\x1b[?25h\x1b[?1049l";
const HOME = "\x1b[H";
const TO_LINE_END = "\x1b[K";
const TO_SCREEN_END = "\x1b[J";
const CTRL_C = "\x03";

async function live(remote: Remote, everyMs: number): Promise<void> {
  const rows = (): number => (process.stdout.rows || 24) - 1;
  const mostTasks = (): number => Math.min(SHOWN_TASKS, Math.max(1, Math.floor(rows() / 2) - HEAD_ROWS));
  let last = await picture(remote, null, mostTasks()); // a fault now is a line, not a screen
  const ended = Promise.withResolvers<"ended">();
  const end = (): void => ended.resolve("ended");
  const onKey = (key: Buffer): void => {
    if (["q", "Q", CTRL_C].includes(key.toString())) end();
  };
  const signals = endingSignals();
  for (const signal of signals) process.on(signal, end);
  if (process.stdin.isTTY) process.stdin.setRawMode(true).on("data", onKey).resume();
  try {
    put(ENTER);
    for (let isOver = false; !isOver;) {
      const lines = last.lines.slice(0, rows()).map(truncateToTerminal);
      put(`${HOME}${lines.map((line) => `${line}${TO_LINE_END}`).join("\r\n")}${TO_SCREEN_END}`);
      isOver = (await Promise.race([Bun.sleep(everyMs), ended.promise])) === "ended";
      if (isOver) break;
      try {
        last = await picture(remote, last.count, mostTasks());
      } catch (error) {
        if (!(error instanceof HubUnreachable)) throw error;
        last = { ...last, lines: [plain(error.message), ...last.lines.slice(1)] };
      }
    }
  } finally {
    put(LEAVE);
    for (const signal of signals) process.off(signal, end);
    if (process.stdin.isTTY) process.stdin.off("data", onKey).setRawMode(false).pause();
  }
}

function put(text: string): void {
  writeSync(1, text);
}
