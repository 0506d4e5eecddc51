/** Starts each worker that does the steps of scenarios.ts: `luxhub worker`, the TypeScript library, the Python library. */
import { join } from "node:path";
import { PROGRAM } from "../support/executable.ts";

const python = Bun.which("python3");
if (python === null) console.log("The Python library is not run: there is no python3 on the path.");
const here = (name: string): string => join(import.meta.dir, name);

/** The command line of a worker for a node, which takes the tasks whose type is its name. */
export type Start = (node: string, concurrency: number, timeoutS?: number) => readonly string[];

const textsOf = (words: readonly unknown[]): readonly string[] =>
  words.filter((word) => word !== undefined).map(String);

export const WORKERS: Readonly<Record<string, Start>> = {
  "luxhub worker": (node, concurrency, timeoutS) => [
    ...PROGRAM,
    ...["worker", "--node", node, "--capabilities", node, "--concurrency", `${concurrency}`],
    ...(timeoutS === undefined ? [] : ["--timeout", `${timeoutS}s`, "--grace", "200ms"]),
    ...["--", process.execPath, here("scenario-command.ts")],
  ],
  "the TypeScript library": (...words) => [process.execPath, here("scenario-worker.ts"), ...textsOf(words)],
  ...(python !== null && {
    "the Python library": (...words) => [python, here("scenario_worker.py"), ...textsOf(words)],
  }),
};
