/** Makes the help texts from the declarations of commands. */
import { type Command, type Flag, REMOTE_FLAGS } from "./command.ts";
import { COMMANDS, FIRST_WORDS, commandNamed, commandsOf } from "./commands.ts";
import { EXIT_LINES } from "./exit-codes.ts";

export function programHelp(): string {
  const heads = FIRST_WORDS.map((word) => {
    const group = commandsOf(word);
    const alone = COMMANDS.find(({ name }) => name === word);
    const names = group.map(({ name }) => name.slice(word.length + 1)).join("|");
    return [
      `luxhub ${word}${alone ? tail(alone) : " …"}`,
      alone?.summary ?? `${GROUPS[word] ?? ""}: ${names}`,
    ] as const;
  });
  return `luxhub: a task queue and message hub for AI agents and other workers

${columns(heads)}

luxhub COMMAND --help describes a command. Commands that call a hub take --url and --secret-file (or LUXHUB_URL,
LUXHUB_SECRET, LUXHUB_ADMIN_KEY). Without these, a command calls the hub that runs on --data, or else the hub that this
machine has joined. With --json a command prints records as JSON.

Exit codes:
${columns(EXIT_LINES.map(([code, meaning]) => [String(code), meaning]))}`;
}

const GROUPS: Readonly<Record<string, string>> = {
  task: "tasks",
  schedule: "schedules, which create tasks at certain times",
  group: "groups of tasks",
  webhook: "webhooks, which send events to a URL",
  lux: "the ledger of LUX",
  budget: "budgets, which limit what work may cost",
  limit: "limits of how many tasks of a key may run",
  node: "nodes",
  message: "messages",
  file: "files",
  note: "notes, the shared memory of the nodes",
  lease: "advisory leases on names and paths",
  invitation: "invitations of nodes",
  keys: "the keys of the hub",
  service: "the systemd service of the hub",
};

const GROUP_ABOUT: Readonly<Record<string, string>> = {
  keys: `A new key is valid at once. Other changes take effect within a second.

The secrets of the first start are the keys primary and primary-admin. To change a secret without
downtime, add a key, give the new secret to the nodes, and then revoke primary.`,
  service: `The program goes to /usr/local/bin/luxhub, the data to /var/lib/luxhub. /etc/luxhub/environment, which
only root can read, has settings and secrets (LUXHUB_PORT=8080 …); install never overwrites this file.
A second install updates the program and restarts the service.

With the environment variable DESTDIR the command writes the files below this directory, and changes
nothing else: it adds no user and starts no service.`,
};

function groupHelp(group: string): string {
  const rows = commandsOf(group).map(
    (command) => [`luxhub ${command.name}${tail(command)}`, command.summary] as const,
  );
  const about = GROUP_ABOUT[group];
  return `luxhub ${group}: ${GROUPS[group] ?? group}

${columns(rows)}
${about === undefined ? "" : `\n${about}\n`}
luxhub ${group} COMMAND --help describes a command.`;
}

export function helpIn(group: string, argv: readonly string[]): string {
  const command = commandsOf(group).find(({ name }) => argv.includes(name.slice(group.length + 1)));
  return command ? commandHelp(command) : groupHelp(group);
}

export function helpOf(name: string): string {
  return commandHelp(commandNamed(name));
}

export function commandHelp(command: Command): string {
  const isCommon = (name: string): boolean => command.isRemote === true && Object.hasOwn(REMOTE_FLAGS, name);
  const lines = (flags: readonly (readonly [name: string, flag: Flag])[]): string =>
    columns(
      flags.map(([name, { value, short, help }]) => {
        const head = `${short === undefined ? "" : `-${short}, `}--${name}${value === undefined ? "" : ` ${value}`}`;
        return [head, help] as const;
      }),
    );
  const flags = Object.entries(command.flags);
  const commandLines = lines(flags.filter(([name]) => !isCommon(name)));
  const commonLines = lines(flags.filter(([name]) => isCommon(name)));
  return [
    `luxhub ${command.name}${tail(command)}: ${command.summary}`,
    commandLines,
    commonLines,
    command.about ?? "",
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

export function tail({ words, flags }: Command): string {
  const parts = [words, Object.keys(flags).length === 0 ? "" : "[flags]"];
  if (words.startsWith("-- ")) parts.reverse();
  return parts.map((part) => (part === "" ? "" : ` ${part}`)).join("");
}

function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(0, ...rows.map(([head]) => head.length)) + 2;
  return rows.map(([head, text]) => `  ${head.padEnd(width)}${text}`).join("\n");
}
