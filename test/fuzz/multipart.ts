/** Multipart bodies for an upload: valid ones, and ones with an extra, a missing or a truncated part. */
import fc from "fast-check";

export const MULTIPART_TYPE = "multipart/form-data; boundary=fuzz";

const fileName = fc.constantFrom(
  '"a.txt"',
  '"../../etc/passwd"',
  '"é漢.bin"',
  '""',
  '"a\\"b"',
  "plain",
  '"\u202egpj.exe"',
);
const contentType = fc.constantFrom("text/plain", "text/html", "é", "x", "a/b; c=d");
const metadata = fc.constantFrom(
  ...[
    '{"task_id":"_.task.0._"}',
    '{"node":"_.node.1._"}',
    '{"task_id":"_.task.1._","node":"_.node.0._","a":[1]}',
    "{}",
    "",
  ],
  ...['{"task_id":7}', '{"node":"no such node"}', '{"task_id":"no-such-task"}', "[]", "null", "{", '"x"'],
  ...['{"__proto__":{"a":1}}', '{"a":"\\ud800"}', "[".repeat(100), `{"a":"${"x".repeat(70_000)}"}`],
);

function part(name: string, content: string, ...more: readonly string[]): string {
  return `--fuzz\r\nContent-Disposition: form-data; name="${name}"${more.join("\r\n")}\r\n\r\n${content}\r\n`;
}

const filePart = fc
  .tuple(fc.constantFrom("", "hello", "\0\r\n--fuzzy\r\n", "x".repeat(4_000)), fileName, contentType)
  .map(([content, name, type]) => part("file", content, `; filename=${name}`, `Content-Type: ${type}`));

const otherPart = fc.oneof(
  { weight: 6, arbitrary: metadata.map((text) => part("metadata", text)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      part("other", "x"),
      part("__proto__", "x"),
      "--fuzz\r\n\r\nx\r\n",
      "--fuzz\r\nContent-Disposition: nonsense\r\n\r\n\r\n",
    ),
  },
);

const END = "--fuzz--\r\n";

export function multipart(maxFileBytes: number): fc.Arbitrary<string | Buffer> {
  const whole = fc
    .tuple(filePart, fc.array(otherPart, { maxLength: 2 }))
    .map(([file, others]) => [...others, file].join("") + END);
  const tooLarge = part("file", "x".repeat(maxFileBytes + 1), '; filename="a"') + END;
  const wrong = fc.oneof(
    fc.constantFrom("", END, part("metadata", "{}") + END, tooLarge, part("file", "x") + END),
    fc.tuple(filePart, filePart).map(([a, b]) => a + b + END),
    filePart.map((file) => file.repeat(20) + END),
    whole.chain((text) => fc.nat({ max: text.length }).map((length) => text.slice(0, length))),
  );
  return fc.oneof({ weight: 4, arbitrary: whole }, { weight: 1, arbitrary: wrong });
}
