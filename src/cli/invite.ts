/** `luxhub invite`: prints the line with which another machine joins. */
import { isLoopback } from "../hub/addresses.ts";
import { printableJson } from "../lib/printable.ts";
import { UsageError, wordAt } from "./arguments.ts";
import { EXIT } from "./exit-codes.ts";
import type { ClientRuns, Remote } from "./remote.ts";
import { writeLine } from "./standard-output.ts";
import { timeText } from "./table.ts";

export const RUNS: ClientRuns = { invite };

async function invite(remote: Remote): Promise<number> {
  const { hub, url, urls, isNamed, values, json } = remote;
  const name = wordAt(remote, 0);
  const at = {
    url: values.text("join-url") ?? (isNamed && urls === url && isReachable(url) ? url : undefined),
  };
  const isStandby = values.has("standby");
  if (isStandby && values.has("expires"))
    throw new UsageError(
      "the line of a standby has a key that does not expire: leave --expires out",
      "invite",
    );
  const made = isStandby
    ? await hub.inviteStandby({ name, ...at })
    : await hub.invitations.create({ node_id: name, expires_in_s: values.seconds("expires"), ...at });
  if (json) return writeLine(printableJson(made, 2));
  const isHttp = made.url.startsWith("http:");
  const others = made.other_urls.filter((other) => isHttp || other.startsWith("https:"));
  writeLine(`luxhub join ${made.line}`);
  const notes = [
    "invitation" in made
      ? `Run this line on the machine of ${name}, once, before ${timeText(made.invitation.expires_at)}. Who has it can join.`
      : `Run this line on the machine of ${name}, then luxhub serve with the settings of this hub. Who has it can copy the whole hub, with its secrets: luxhub keys revoke ${name} ends that.`,
    ...(isReachable(made.url)
      ? []
      : [
          "The hub listens only on this machine: for another one, start it with --host 0.0.0.0 --tls auto, or give --join-url.",
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
