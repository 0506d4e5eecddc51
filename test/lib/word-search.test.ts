/** Which titles a search finds. */
import { expect, test } from "bun:test";
import { matchesWords, wordsOf } from "../../src/lib/word-search.ts";

const ROWS: readonly (readonly [searched: string, text: string, found: boolean])[] = [
  ["fix", "Fix the login", true],
  ["lo FIX", "Fix the login", true],
  ["fix logins", "Fix the login", false],
  ["ogin", "Fix the login", false],
  ["in", "login in", true],
  ["bug", "fix-bug", true],
  ["bug", "fix_bug", true],
  ["bug", "fixbug", false],
  ["2", "v2", false],
  ["2", "v 2", true],
  ["node.js", "Upgrade Node.JS", true],
  ["c++", "Learn C", true],
  ["strasse", "Straße", true],
  ["straße", "STRASSE", true],
  ["ÜBER", "u\u0308berblick", true],
  ["ber", "über", false],
  ["ΟΔΟΣ", "οδοσημα", true],
  ["при", "Привет", true],
  ["при", "Неприятность", false],
  ["שלום", "אמר שלום", true],
  ["हिन", "यह हिन्दी है", true],
  ["文档", "总结文档", true],
  ["ドキ", "新しいドキュメント", true],
  ["文 档", "总结文件", false],
  ["𝐅ix", "fix", true],
  ["a", "𐐀a", false],
];

for (const [searched, text, found] of ROWS)
  test(`${searched} ${found ? "finds" : "does not find"} ${text}`, () => {
    expect(matchesWords(wordsOf(searched), text)).toBe(found);
  });

test("words are distinct, and signs are none", () => {
  expect(wordsOf(" a, A b ")).toEqual(["A", "B"]);
  expect(wordsOf("++ -- …")).toEqual([]);
});
