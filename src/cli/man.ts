/** `luxhub man`: prints the manual page in roff (man(7)), made from the declarations of commands. */
import { SOFTWARE } from "../version.ts";
import type { Command } from "./command.ts";
import { COMMANDS } from "./commands.ts";
import { EXIT_LINES } from "./exit-codes.ts";
import { tail } from "./help.ts";
import type { LocalRuns } from "./run.ts";
import { writeLineUnlessClosed } from "./standard-output.ts";

export const LOCAL_RUNS: LocalRuns = { man: () => writeLineUnlessClosed(page()) };

const ENVIRONMENT: readonly (readonly [name: string, meaning: string])[] = [
  ["LUXHUB_URL", "the hub that commands call, or the URLs of it and of its copies, separated by commas"],
  ["LUXHUB_SECRET", "the secret of the hub; for serve, the secret to use in place of the stored secret"],
  [
    "LUXHUB_ADMIN_KEY",
    "the administrator key of the hub; for serve, the administrator key to use in place of the stored one",
  ],
  ["LUXHUB_DATA", "the data directory"],
  ["NO_COLOR", "if set, no colours"],
];

const FILES: readonly (readonly [name: string, meaning: string])[] = [
  ["luxhub.toml", "settings, in the current directory"],
  ["luxhub-data/secret, luxhub-data/admin-key", "the secrets that the first start creates"],
  ["luxhub-data/address", "the addresses of the hub that runs on this data directory"],
];

function page(): string {
  return [
    `.TH LUXHUB 1 "" "${roff(SOFTWARE)}" "User Commands"`,
    ".SH NAME",
    "luxhub \\- a task queue and message hub for AI agents and other workers",
    ".SH SYNOPSIS",
    ".B luxhub",
    ".I COMMAND",
    "[\\fIargument\\fR ...] [\\fIflag\\fR ...]",
    ".SH DESCRIPTION",
    "luxhub serves tasks, messages, files and LUX to worker nodes over HTTP, and is a client of any such hub.",
    "Data goes to standard output, messages for people go to standard error.",
    ".SH COMMANDS",
    ...COMMANDS.flatMap(section),
    ".SH EXIT STATUS",
    ...EXIT_LINES.flatMap(([code, meaning]) => [".TP", `.B ${code}`, roff(meaning)]),
    ".SH ENVIRONMENT",
    ...ENVIRONMENT.flatMap(([name, meaning]) => [".TP", `.B ${name}`, roff(meaning)]),
    ".SH FILES",
    ...FILES.flatMap(([name, meaning]) => [".TP", `.I ${roff(name)}`, roff(meaning)]),
  ].join("\n");
}

function section(command: Command): readonly string[] {
  const flags = Object.entries(command.flags).flatMap(([name, { value, short, help }]) => [
    ".TP",
    `\\fB${short === undefined ? "" : `\\-${short}\\fR, \\fB`}${roff(`--${name}`)}\\fR${value === undefined ? "" : ` \\fI${roff(value)}\\fR`}`,
    roff(help),
  ]);
  const about =
    command.about === undefined ? [] : [".PP", ".nf", ...command.about.split("\n").map(roff), ".fi"];
  return [
    `.SS luxhub ${roff(command.name + tail(command))}`,
    `${roff(command.summary)}.`,
    ...flags,
    ...about,
  ];
}

function roff(text: string): string {
  return text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll("…", "\\[u2026]")
    .replaceAll("'", "\\(aq")
    .replace(/^\./, "\\&.");
}
