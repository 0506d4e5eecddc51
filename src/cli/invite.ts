/** `luxhub invite`: prints the line with which another machine joins; and `luxhub invitation`: the lines that were made. */
import type { Environment } from "../config.ts";
import type { AnswerOf } from "../client/luxhub.ts";
import { isLoopback } from "../hub/addresses.ts";
import { printableJson } from "../lib/printable.ts";
import { EXIT } from "./exit-codes.ts";
import { PAGE, type Remote, type Run, collect, forEach, limitOf, runGroup, runRemote } from "./remote.ts";
import { writeLine } from "./standard-output.ts";
import { printJsonLine, printJsonList, printTable, timeText } from "./table.ts";

export function inviteCommand(argv: readonly string[], env: Environment): Promise<number> {
  return runRemote("invite", invite, argv, env);
}

export function invitationCommand(argv: readonly string[], env: Environment): Promise<number> {
  return runGroup("invitation", RUNS, argv, env);
}

async function invite({ hub, url, isNamed, values, words, json }: Remote): Promise<number> {
  const made = await hub.invitations.create({
    node_id: words[0] ?? "",
    expires_in_s: values.seconds("expires"),
    url: values.text("join-url") ?? (isNamed && isReachable(url) ? url : undefined),
  });
  if (json) return writeLine(printableJson(made, 2));
  const isHttp = made.url.startsWith("http:");
  const others = made.other_urls.filter((other) => isHttp || other.startsWith("https:"));
  writeLine(`luxhub join ${made.line}`);
  const notes = [
    `Run this line on the machine of ${made.invitation.node_id}, once, before ${timeText(made.invitation.expires_at)}. Who has it can join.`,
    ...(isReachable(made.url)
      ? []
      : [
          "The hub listens only on this machine: for another one, start it with --tls auto, or give --join-url.",
        ]),
    ...(isHttp && isReachable(made.url)
      ? [
          "Its connection is not encrypted: anybody on the way can read the key. Start the hub with --tls auto.",
        ]
      : []),
    ...(others.length > 0
      ? [`If that machine cannot reach the URL, give another with --join-url: ${others.join(" ")}`]
      : []),
  ];
  for (const note of notes) console.error(note);
  return EXIT.OK;
}

/** Whether other machines can reach it, as far as the URL says. */
function isReachable(url: string): boolean {
  return !isLoopback(new URL(url).hostname.replaceAll(/[[\]]/g, ""));
}

const RUNS: Readonly<Record<string, Run>> = {
  "invitation list": list,
  "invitation delete": (remote) =>
    forEach(remote.words, async (invitation_id) => {
      await remote.hub.invitations.delete({ invitation_id });
      if (remote.json) printJsonLine({ invitation_id });
      else writeLine(`${invitation_id} deleted`);
    }),
};

type Invitation = AnswerOf<"invitation/list">["invitations"][number];

async function list(remote: Remote): Promise<number> {
  const invitations = invitationsOf(remote);
  if (remote.json) await printJsonList(invitations);
  else
    printTable(
      ["ID", "NODE", "STATE", "EXPIRES", "USED", "KEY"],
      (await collect(invitations)).map(({ invitation_id, node_id, state, expires_at, used_at, key }) => [
        invitation_id,
        node_id,
        state,
        timeText(expires_at),
        used_at === null ? null : timeText(used_at),
        key,
      ]),
    );
  return EXIT.OK;
}

async function* invitationsOf(remote: Remote): AsyncGenerator<Invitation, void, undefined> {
  let left = limitOf(remote);
  for (let cursor: string | null | undefined; cursor !== null && left > 0;) {
    const page = await remote.hub.invitations.list({ cursor, per_page: Math.min(left, PAGE) });
    yield* page.invitations;
    left -= page.invitations.length;
    cursor = page.next_cursor;
  }
}
