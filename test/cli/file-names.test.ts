/** The names that the commands give downloaded files. */
import { expect, test } from "bun:test";
import { fileNameFrom } from "../../src/cli/file.ts";

const named = (name: string, platform: NodeJS.Platform): string =>
  fileNameFrom(`attachment; filename*=UTF-8''${encodeURIComponent(name)}`, "id", platform);

test("a name that cannot be that of a file here is replaced by the file's id", () => {
  for (const name of ["", ".", "..", ".profile", "a\u0007b", "a\nb"]) expect(named(name, "linux")).toBe("id");
  for (const name of ["report.pdf", "a b", "con", "nul.txt", "a:b", "what?", "end."])
    expect(named(name, "linux")).toBe(name);
  for (const name of ["con", "NUL.txt", "com1", "a:b", "what?", "<a>", 'a"b', "a|b", "*", "end.", "end "])
    expect(named(name, "win32")).toBe("id");
  for (const name of ["report.pdf", "a b", "console", "null.txt", "com10x", "ünï.txt"])
    expect(named(name, "win32")).toBe(name);
});

test("no name leads into another directory", () => {
  expect(named("../../etc/passwd", "linux")).toBe("passwd");
  expect(fileNameFrom(`attachment; filename="a/b"`, "id", "linux")).toBe("b");
  expect(fileNameFrom(null, "id", "linux")).toBe("id");
});
