/** Lessons of completed tasks: in the context of the next tasks of their type, and in the search over all. */
import { CONTEXT_LESSONS_MAX_BYTES } from "../../src/domain/limits.ts";
import { transcripts } from "../support/transcript.ts";

/** A task that n1 has completed with this lesson. */
const learned = (lesson: string, fields = "task_type: review"): string => `
  t = task/create {${fields}}
  task/claim $t n1
  task/complete $t n1 {result: {lesson: ${lesson}}}
  tick 1s`;

/** What task/next says of lessons when it hands out a new task of the type. */
const told = (lessons: string, fields = "task_type: review"): string => `
  task/create {${fields}}
  t = task/next n1 -> ${lessons === "" ? "context absent" : `context.lessons.lesson ${lessons}`}
  task/cancel $t`;

transcripts(`
== a task that is handed out: has the last lessons of its type, newest first (<A|B>)
  nodes n1
  ${["one", "two", "three", "four", "five"].map((lesson) => learned(lesson)).join("")}
  ${learned('" lesson 6\\n"')}
  newest = task $t
  ${learned("of-another-type", "task_type: build")}
  ${learned("of-no-type", "")}
  t = task/create {task_type: review}
  c = <|B >task/claim $t n1 -> context.lessons [
    {task_id: $newest, title: t, task_type: review, node_id: n1, verified: false, lesson: "lesson 6", at: *},
    {lesson: five}, {lesson: four}, {lesson: three}, {lesson: two}]
  <|B >GET task/$t?context=1 -> context.lessons $c.context.lessons

-- a task that is handed out: has none without a type, and none that says nothing, repeats another, or is its own
  nodes n1
  ${told("")}
  ${learned("of-no-type", "")}
  ${told("", "")}
  ${["none", "None.", "n/a", '" - "'].map((nothing) => learned(nothing)).join("")}
  ${told("")}
  ${learned("once")}
  ${learned("another")}
  ${learned("once")}
  GET task/$t?context=1 -> context.lessons.lesson [another]
  ${told("[once, another]")}

-- a task that is handed out: has the lessons up to their limit in bytes, and the last of them is cut at a character
  nodes n1
  ${learned("there-is-no-room-for-this")}
  ${learned("ü*2001")}
  ${learned("newest")}
  task/create {task_type: review}
  task/next n1 -> context.lessons [{lesson: newest, truncated: absent}, {lesson: ü*${(CONTEXT_LESSONS_MAX_BYTES - 6) / 2}, truncated: true}]

== a task that is handed out: has no lesson of a task that was deleted, before and after a restart
  nodes n1
  ${learned("first")}
  ${learned("second")}
  second = task $t
  ${learned("third")}
  ${told("[third, second, first]")}
  admin task/delete $second
  ${told("[third, first]")}
  restart
  ${told("[third, first]")}
  nodes n1
  ${learned("fourth")}
  ${told("[fourth, third, first]")}

== the search: finds lessons by type and by words of the lesson or the title, newest task first
  nodes n1
  ${learned("The-cookie-needs-SameSite", 'task_type: review, title: "Fix the login"')}
  ${learned("Rate-limits-are-per-key", 'title: "Load the login page", task_type: build')}
  ${learned("none", 'task_type: review, title: "Nothing of the login"')}
  ${learned("x*2001", "")}
  GET lessons -> {looked: 4, next_cursor: null, lessons: [{truncated: true},
    {title: "Load the login page", task_type: build, truncated: absent}, {truncated: absent}]}
  GET lessons?q=login -> lessons.lesson [Rate-limits-are-per-key, The-cookie-needs-SameSite]
  GET lessons?<q=LOG+cook|type=review&q=login> -> lessons.lesson [The-cookie-needs-SameSite]
  GET lessons?type=build -> lessons.lesson [Rate-limits-are-per-key]
  GET lessons?q=nowhere -> lessons []
  GET lessons?limit=0&cursor=1&q=%00 -> 400 limit cursor q

== the search: shows each lesson once on pages of any size, and says how many tasks it looked at
  nodes n1
  ${["a1", "a2", "b3", "a4", "b5"].map((lesson) => learned(lesson, `title: ${lesson[0]}x`)).join("")}
  one = GET lessons?limit=2 -> lessons.lesson [b5, a4]
  two = GET lessons?limit=2&cursor=$one.next_cursor -> lessons.lesson [b3, a2]
  GET lessons?limit=2&cursor=$two.next_cursor -> {lessons: [{lesson: a1}], next_cursor: null}
  one = GET lessons?limit=1&q=bx -> lessons.lesson [b5]
  two = GET lessons?limit=1&q=bx&cursor=$one.next_cursor -> lessons.lesson [b3]
  GET lessons?limit=1&q=bx&cursor=$two.next_cursor -> {lessons: [], next_cursor: null, looked: 2}
`);
