/** `luxhub questions`: lists the open questions of all tasks, the most urgent first. */
import type { Environment } from "../config.ts";
import type { LuxHub, OpenQuestion } from "../client/luxhub.ts";
import { EXIT } from "./exit-codes.ts";
import { PAGE, collect, limitOf, runRemote } from "./remote.ts";
import { printJsonList, printTable, timeText } from "./table.ts";

export function questionsCommand(argv: readonly string[], env: Environment): Promise<number> {
  return runRemote(
    "questions",
    async (remote) => {
      const questions = openQuestions(remote.hub, limitOf(remote));
      if (remote.json) {
        await printJsonList(questions);
        return EXIT.OK;
      }
      printTable(
        ["TASK", "QUESTION", "UNTIL", "ASKED BY", "TEXT"],
        (await collect(questions)).map(({ task_id, question_id, until, asked_by, question, choices }) => [
          task_id,
          question_id,
          timeText(until),
          asked_by,
          choices.length === 0 ? question : `${question} (${choices.join(", ")})`,
        ]),
      );
      return EXIT.OK;
    },
    argv,
    env,
  );
}

async function* openQuestions(hub: LuxHub, limit: number): AsyncGenerator<OpenQuestion, void, undefined> {
  let count = 0;
  for (let cursor: string | undefined; ;) {
    const page = await hub.tasks.openQuestions({ limit: PAGE, cursor });
    for (const question of page.questions) {
      yield question;
      if (++count >= limit) return;
    }
    if (page.next_cursor === null) return;
    cursor = page.next_cursor;
  }
}
