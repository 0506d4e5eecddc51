/** The endpoint of lessons: what workers have learned, searched. */
import * as z from "zod/mini";
import { LESSONS_PER_PAGE_DEFAULT, LESSONS_PER_PAGE_MAX } from "../domain/limits.ts";
import { type Endpoint, readEndpoint } from "./endpoint.ts";
import * as field from "./request-fields.ts";
import { encodeLesson, lessonSchema } from "./task-context.ts";

const search = readEndpoint({
  path: "/api/v1/lessons",
  readsMany: true,
  auth: "public",
  summary: "Lessons of completed tasks, newest first; filters by type and words",
  rejections: [],
  input: () =>
    z.object({
      q: z.optional(field.search()),
      type: z.optional(field.taskType()),
      cursor: z.optional(field.cursor()),
      limit: z.optional(field.queryCount(LESSONS_PER_PAGE_MAX)),
    }),
  answer: () =>
    z.strictObject({
      lessons: z.array(lessonSchema()),
      looked: z.int(),
      next_cursor: z.nullable(z.string()),
    }),
  handle: ({ services }, { q, type, cursor, limit }) => {
    const query = { taskType: type || null, words: q ?? [] };
    return services.lessons.page(query, cursor ?? null, limit ?? LESSONS_PER_PAGE_DEFAULT);
  },
  encode: ({ lessons, looked, next }) => ({
    lessons: lessons.map(encodeLesson),
    looked,
    next_cursor: next && field.encodeCursor(next),
  }),
});

export const LESSON_ENDPOINTS: readonly Endpoint[] = [search];
