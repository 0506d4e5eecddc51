/** `luxhub completions`: prints the completions of three shells, made from the declarations of commands. */
import { UsageError } from "./arguments.ts";
import { type Command, choicesOf } from "./command.ts";
import { COMMANDS, FIRST_WORDS, commandsOf } from "./commands.ts";
import type { LocalRuns } from "./run.ts";
import { writeLineUnlessClosed } from "./standard-output.ts";

const SHELLS: Readonly<Record<string, () => string>> = { bash, zsh, fish };

export const LOCAL_RUNS: LocalRuns = {
  completions: ({ words: [shell = ""] }) => {
    const make = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined;
    if (make) return writeLineUnlessClosed(make());
    const names = Object.keys(SHELLS).join(", ");
    throw new UsageError(
      `${JSON.stringify(shell)} is not a shell that luxhub knows: ${names}`,
      "completions",
    );
  },
};

function flagsOf({ flags }: Command): readonly string[] {
  const short = Object.values(flags).flatMap((flag) => (flag.short === undefined ? [] : [`-${flag.short}`]));
  return [...Object.keys(flags).map((name) => `--${name}`), ...short, "--help"];
}

function argumentChoicesOf({ words }: Command): readonly string[] {
  return words
    .split(" ")
    .flatMap((word) => (/^[a-zA-Z]+(?:\|[a-zA-Z]+)+$/.test(word) ? word.split("|") : []));
}

function takesFile({ words }: Command): boolean {
  return words === "FILE";
}

function valuesOf(command: Command) {
  return Object.entries(command.flags).flatMap(([name, { value, short, isPath = false }]) =>
    value === undefined
      ? []
      : [
          {
            spellings: [`--${name}`, ...(short === undefined ? [] : [`-${short}`])],
            choices: choicesOf(command, name),
            isPath,
          },
        ],
  );
}

function bash(): string {
  const flagCases = COMMANDS.map((command) => {
    const words = [...flagsOf(command), ...argumentChoicesOf(command)].join(" ");
    return `    "${command.name}") offered="${words}"${takesFile(command) ? "; files=1" : ""} ;;`;
  });
  const valueCases = COMMANDS.flatMap((command) =>
    valuesOf(command).map(({ spellings, choices, isPath }) => {
      const patterns = spellings.map((spelling) => `"${command.name} ${spelling}"`).join("|");
      return `    ${patterns}) offered="${choices.join(" ")}"; value=1${isPath ? "; files=1" : ""} ;;`;
    }),
  );
  const groups = FIRST_WORDS.filter((word) => commandsOf(word).length > 0);
  const groupCases = groups.map(
    (word) =>
      `      ${word}) offered="${commandsOf(word)
        .map(({ name }) => name.slice(word.length + 1))
        .join(" ")} --help" ;;`,
  );
  return `# bash completion for luxhub
_luxhub() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}"
  local command="" offered="" files="" value="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "\${COMP_WORDS[i]}" in
      -*) continue ;;
    esac
    if [[ -z $command ]]; then
      command="\${COMP_WORDS[i]}"
    else
      case "$command" in
        ${groups.join("|")}) command="$command \${COMP_WORDS[i]}" ;;
      esac
      break
    fi
  done
  case "$command $previous" in
${valueCases.join("\n")}
  esac
  if [[ -z $value ]]; then
    case "$command" in
      "") offered="${FIRST_WORDS.join(" ")}" ;;
${groupCases.join("\n")}
${flagCases.join("\n")}
    esac
  fi
  COMPREPLY=($(compgen -W "$offered" -- "$current"))
  if [[ -n $files && $current != -* ]]; then
    local IFS=$'\\n'
    COMPREPLY+=($(compgen -f -- "$current"))
    compopt -o filenames 2>/dev/null
  fi
}
complete -F _luxhub luxhub`;
}

/** The completions of bash, which zsh can run. */
function zsh(): string {
  return `#compdef luxhub
# zsh completion for luxhub: that of bash, run by zsh's own bashcompinit
autoload -U +X bashcompinit && bashcompinit
${bash()}`;
}

function fish(): string {
  const quoted = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const lines: string[] = ["# fish completion for luxhub", "complete -c luxhub -f"];
  const first = COMMANDS.filter(({ name }) => !name.includes(" "));
  for (const { name, summary } of first)
    lines.push(`complete -c luxhub -n __fish_use_subcommand -a ${name} -d ${quoted(summary)}`);
  for (const word of FIRST_WORDS) {
    const group = commandsOf(word);
    if (group.length === 0) continue;
    lines.push(`complete -c luxhub -n __fish_use_subcommand -a ${word}`);
    const names = group.map(({ name }) => name.slice(word.length + 1));
    const isMissing = `"__fish_seen_subcommand_from ${word}; and not __fish_seen_subcommand_from ${names.join(" ")}"`;
    for (const { name, summary } of group)
      lines.push(
        `complete -c luxhub -n ${isMissing} -a ${name.slice(word.length + 1)} -d ${quoted(summary)}`,
      );
  }
  for (const command of COMMANDS) {
    const seen = command.name
      .split(" ")
      .map((word) => `__fish_seen_subcommand_from ${word}`)
      .join("; and ");
    for (const [name, { value, short, help, isPath = false }] of Object.entries(command.flags)) {
      const parts = [`complete -c luxhub -n "${seen}" -l ${name}`];
      if (short !== undefined) parts.push(`-s ${short}`);
      if (value !== undefined) parts.push(isPath ? "-r -F" : "-x");
      const choices = choicesOf(command, name);
      if (choices.length > 0) parts.push(`-a ${quoted(choices.join(" "))}`);
      lines.push([...parts, `-d ${quoted(help)}`].join(" "));
    }
    if (argumentChoicesOf(command).length > 0)
      lines.push(`complete -c luxhub -n "${seen}" -a ${quoted(argumentChoicesOf(command).join(" "))}`);
    if (takesFile(command)) lines.push(`complete -c luxhub -n "${seen}" -F`);
  }
  return lines.join("\n");
}
