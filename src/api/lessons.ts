/** The endpoint of lessons: what workers have learned, searched. */
import * as z from "zod/mini";
import { LESSONS_PER_PAGE_DEFAULT, LESSONS_PER_PAGE_MAX } from "../domain/limits.ts";
import { type Endpoint, readEndpoint } from "./endpoint.ts";
import * as field from "./request-fields.ts";
import { encodeLesson, lessonSchema } from "./task-context.ts";
import { about, maybeString, optional, whole } from "./about.ts";

const search = readEndpoint({
  path: "/api/v1/lessons",
  readsMany: true,
  auth: "public",
  summary: "Lessons of completed tasks, newest first; filters by type and words",
  input: () =>
    z.object({
      q: optional(
        field.search(),
        "Words, each of which must begin a word of the lesson or of the title of its task.",
      ),
      type: optional(field.taskType(), "Only lessons of tasks of this `task_type`."),
      cursor: optional(field.cursor(), "The `next_cursor` of the page before."),
      limit: z.optional(field.queryCount(LESSONS_PER_PAGE_MAX)),
    }),
  answer: () =>
    z.strictObject({
      lessons: about(
        z.array(lessonSchema()),
        "The newest task first. Lessons that say nothing (none, n/a, -) are left out.",
      ),
      looked: whole("How many completed tasks this call has examined: at most 10,000."),
      next_cursor: maybeString(
        "Send this value as `cursor` to examine older tasks; null when all tasks have been examined.",
      ),
    }),
  handle: ({ services }, { q: words = [], type, cursor = null, limit = LESSONS_PER_PAGE_DEFAULT }) =>
    services.lessons.page({ taskType: type || null, words }, cursor, limit),
  encode: ({ lessons, looked, next }) => ({
    lessons: lessons.map(encodeLesson),
    looked,
    next_cursor: next && field.encodeCursor(next),
  }),
});

export const LESSON_ENDPOINTS: readonly Endpoint[] = [search];
