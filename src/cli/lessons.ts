/** `luxhub lessons [WORDS]`: prints what the workers of completed tasks have learned. */
import type { AnswerOf, LuxHub } from "../client/luxhub.ts";
import type { Environment } from "../config.ts";
import { EXIT } from "./exit-codes.ts";
import { PAGE, collect, limitOf, runRemote } from "./remote.ts";
import { bold, plain, print, printJsonList, timeText } from "./table.ts";

type Lesson = AnswerOf<"lessons">["lessons"][number];
type Asked = { readonly q: string | undefined; readonly type: string | undefined };

export function lessonsCommand(argv: readonly string[], env: Environment): Promise<number> {
  return runRemote(
    "lessons",
    async (remote) => {
      const { hub, json, values, words } = remote;
      const asked = { q: words[0], type: values.text("type") };
      const lessons = lessonsOf(hub, asked, limitOf(remote));
      if (json) {
        await printJsonList(lessons);
        return EXIT.OK;
      }
      for (const { lesson, at, task_id, task_type, node_id, title } of await collect(lessons)) {
        const type = task_type === null ? "" : ` (${task_type})`;
        print(`${bold(plain(title))}${plain(type)}`);
        print(`  ${timeText(at)}  task ${plain(task_id)} by ${plain(node_id)}`);
        for (const line of lesson.split("\n")) print(`  ${plain(line)}`);
      }
      return EXIT.OK;
    },
    argv,
    env,
  );
}

/** Looks on, page by page, until there are `limit` lessons or all tasks were examined. */
async function* lessonsOf(hub: LuxHub, asked: Asked, limit: number): AsyncGenerator<Lesson, void, undefined> {
  let left = limit;
  for (let cursor: string | undefined; left > 0;) {
    const page = await hub.tasks.lessons({ ...asked, limit: Math.min(left, PAGE), cursor });
    yield* page.lessons;
    left -= page.lessons.length;
    if (page.next_cursor === null) return;
    cursor = page.next_cursor;
  }
}
