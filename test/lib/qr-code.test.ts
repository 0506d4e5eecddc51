/** QR codes: each version as a decoder that is not ours (jsQR 1.4.0) has read it when this was recorded. */
import { expect, test } from "bun:test";
import { qrCode } from "../../src/lib/qr-code.ts";

/** The longest text of each version, and of some the shortest. */
const LENGTHS = [1, 14, 15, 26, 42, 62, 84, 106, 122, 152, 180, 181, 213, 251, 287, 331, 362, 412];

function textOf(length: number): string {
  return Array.from({ length }, (_, i) => "LUXHUB_url=https://x.y/ 0"[(i * 7) % 25]).join("");
}

test("a short text is the code that decoders read", () => {
  const drawn = (qrCode("lux") ?? []).map((row) => row.map((isDark) => (isDark ? "#" : ".")).join(""));
  expect(drawn).toMatchInlineSnapshot(`
    [
      "#######.###...#######",
      "#.....#.#..#..#.....#",
      "#.###.#...#.#.#.###.#",
      "#.###.#.#..##.#.###.#",
      "#.###.#....#..#.###.#",
      "#.....#..#.##.#.....#",
      "#######.#.#.#.#######",
      "........#####........",
      "#.##.###..###.#..#.##",
      "...#.#...######..####",
      "#.##.###..##.......##",
      "..####..#.##..####.#.",
      "##.#.####.#.#..#.#.##",
      "........#.##..#..##..",
      "#######.#..##..#.....",
      "#.....#.#......##.###",
      "#.###.#..##.######..#",
      "#.###.#.#..#..######.",
      "#.###.#.#.#.#.##.....",
      "#.....#...#..#.#..#.#",
      "#######.#.#..#..#....",
    ]
  `);
});

test("every version is the code that decoders read", () => {
  const codes = LENGTHS.map((length) => {
    const code = qrCode(textOf(length)) ?? [];
    const text = code.map((row) => row.map(Number).join("")).join("\n");
    const version = (code.length - 17) / 4;
    return `${version} ${new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 16)}`;
  });
  expect(codes).toMatchInlineSnapshot(`
    [
      "1 3dde5b327fa0ce8b",
      "1 1500385a4493c4f4",
      "2 77cd3a6b87de2352",
      "2 4a12b026f7953e59",
      "3 314c34649ca9cf06",
      "4 33a26f9778cae999",
      "5 6f62e783e59e6fba",
      "6 218abf970a3d9c6f",
      "7 dc9bb1a9ecf99d8e",
      "8 414174dd267b5892",
      "9 d9fb558e1a45ceb7",
      "10 1369a612077986a6",
      "10 2bef86141f63a2e8",
      "11 17556b1db590545b",
      "12 d0014584b0b993bb",
      "13 81c839a2ca92817c",
      "14 bc7ab72bc31ba2e0",
      "15 7274a3f42c747c74",
    ]
  `);
});

test("a text of more than 412 bytes has no code", () => {
  expect([qrCode("é".repeat(206)), qrCode("é".repeat(207))].map((code) => code === null)).toEqual([
    false,
    true,
  ]);
});
