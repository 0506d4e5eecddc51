/** The file of `luxhub run`: what its tasks become, and that every fault is named before anything is created. */
import { describe, expect, test } from "bun:test";
import { FileError, readPipeline } from "../../src/cli/pipeline-file.ts";

const stepsOf = (text: string) => readPipeline(text, "/dir/p.yaml").steps;
const namesOf = (text: string) => stepsOf(text).map(({ name, needs }) => [name, needs.length]);

test("a task has the fields of task/create; its name is its title, if it has none", () => {
  const [step] = stepsOf("tasks: {fetch: {task_type: f, priority: high, files: [a.txt, /b.txt]}}");
  expect(step).toEqual({
    name: "fetch",
    task: { title: "fetch", description: "fetch", task_type: "f", priority: "high" },
    needs: [],
    files: ["/dir/a.txt", "/b.txt"],
  });
  expect(readPipeline('{"group": "g", "tasks": {"a": {}}}', "p.json")).toMatchObject({ group: "g" });
  expect(readPipeline("tasks: {a: {}}", "nightly.yaml")).toMatchObject({ group: "nightly" });
});

test("each task comes after those that it needs", () => {
  const text = "tasks: {last: {needs: [b, a]}, b: {needs: a}, a: {}}";
  expect(stepsOf(text).map(({ name }) => name)).toEqual(["a", "b", "last"]);
});

describe("a matrix", () => {
  test("is a product, a list or a range; who needs its name needs all of it", () => {
    const text = `tasks:
      one: {matrix: {n: 1..3, lang: [de, en]}, title: "{{n}} in {{lang}}", timeout_s: "{{n}}", tags: ["{{lang}}"]}
      two: {matrix: [{doc: a}, {doc: b}], title: "{{doc}}"}
      all: {needs: [one, two]}`;
    const steps = stepsOf(text);
    expect(steps.map(({ task }) => task["title"])).toEqual([
      ...["1 in de", "1 in en", "2 in de", "2 in en", "3 in de", "3 in en", "a", "b", "all"],
    ]);
    expect(steps[3]).toMatchObject({ name: "one-4", task: { timeout_s: 2, tags: ["en"] } });
    expect(steps.at(-1)?.needs).toHaveLength(8);
  });

  test("one task of it can be needed by its number", () => {
    const text = `tasks: {fetch: {matrix: {n: 1..3}}, read: {matrix: {n: 1..3}, needs: ["fetch-{{n}}"]}}`;
    const step = stepsOf(text).find(({ name }) => name === "read-2");
    expect(step).toMatchObject({ needs: ["fetch-2"], task: { title: "read-2" } });
  });
});

test.each([
  ["/x/docs.yaml", "docs"],
  ["my docs (1).yaml", "my-docs-1"],
  ["日本.yaml", "pipeline"],
])("the group of %s is %s", (path, group) => {
  expect(readPipeline("tasks: {a: {}}", path).group).toBe(group);
});

test("ten thousand tasks in a chain are in order", () => {
  const tasks = Array.from({ length: 10_000 }, (_, i) => [`t${i}`, i === 0 ? {} : { needs: `t${i - 1}` }]);
  expect(namesOf(JSON.stringify({ tasks: Object.fromEntries(tasks.toReversed()) }))[9_999]).toEqual([
    "t9999",
    1,
  ]);
});

test.each([
  ["[", /YAML/],
  ["7", /tasks by name/],
  ["tasks: {}", /tasks must have/],
  ["job: 1\ntasks: {a: {}}", /job is unknown/],
  ["tasks: {a: 7}", /tasks.a must have/],
  ["tasks: {a b: {}}", /tasks.a b: a name/],
  ["tasks: {a: {titel: x}}", /tasks.a.titel is unknown.*title/],
  ["tasks: {a: {depends_on: [x]}}", /tasks.a.depends_on: a pipeline sets this/],
  ["tasks: {a: {needs: [bb]}, b: {}}", /tasks.a.needs: there is no task bb.*b/],
  ["tasks: {a: {needs: 7}}", /tasks.a.needs must/],
  ["tasks: {a: {needs: a}}", /a -> a/],
  ["tasks: {a: {needs: b}, b: {needs: c}, c: {needs: a}}", /a -> b -> c -> a/],
  ["tasks: {a: {matrix: {n: 7}}}", /tasks.a.matrix/],
  ["tasks: {a: {matrix: []}}", /tasks.a.matrix/],
  ["tasks: {a: {matrix: {n: 1..200, m: 1..200}}}", /10000 combinations/],
  ["tasks: {a: {title: '{{m}}'}}", /tasks.a: there is no m/],
  ["tasks: {a: {matrix: {n: [1]}, title: '{{constructor}}'}}", /tasks.a: there is no constructor/],
  ["tasks: {a: {matrix: {n: [{m: 1}]}, title: 'is {{n}}'}}", /tasks.a: n is not a text/],
  ["tasks: &t {a: {title: *t}}", /YAML/],
  ["tasks: {a: {timeout_s: long}}", /tasks.a.timeout_s/],
  [
    "tasks: {a: {review: nobody, priority: 9}}",
    /tasks.a.priority(.|\n)*tasks.a.review|tasks.a.review(.|\n)*tasks.a.priority/,
  ],
])("%s is refused", (text, reason) => {
  expect(() => stepsOf(text)).toThrow(FileError);
  expect(() => stepsOf(text)).toThrow(reason);
});
