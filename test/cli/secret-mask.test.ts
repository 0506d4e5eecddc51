/** Secrets in what a task sends: whole, in pieces, as JSON writes them, and what is none. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { SecretMask, secretsIn } from "../../src/cli/secret-mask.ts";

const SECRET = 's3cr"et\\value';
const mask = new SecretMask([SECRET, 's3cr"et\\value-longer', "short", "prefix-prefix-x"]);

test.each([
  [`a ${SECRET} b`, "a *** b"],
  [`a ${SECRET}-longer b`, "a *** b"],
  [JSON.stringify({ key: SECRET }), '{"key":"***"}'],
  [`${SECRET}${SECRET}`, "******"],
  ["a short word", "a short word"],
  ["prefix-prefix-prefix-x", "prefix-***"],
  ["", ""],
])("%s", (text, masked) => expect(mask.text(text)).toBe(masked));

test("a secret of several lines is masked also in a patch, where each line has a sign before it", () => {
  const key = "-----BEGIN KEY-----\nfirst-half-of-it\nsecond-half-of\n-----END KEY-----\n";
  const pem = new SecretMask([key]);
  expect(pem.text(key)).toBe("***");
  expect(pem.text(key.replaceAll(/^/gm, "+"))).not.toMatch(/half/);
  expect(pem.text("-----BEGIN KEY-----")).toBe("-----BEGIN KEY-----");
});

test("in whatever pieces a text arrives, the same is masked", () => {
  const part = fc.constantFrom(
    "a",
    "é",
    SECRET,
    SECRET.slice(0, 5),
    SECRET.slice(5),
    "-longer",
    "prefix-",
    "x",
    "\n",
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 12 }), fc.array(fc.nat(40), { maxLength: 8 }), (parts, cuts) => {
      const bytes = Buffer.from(parts.join(""));
      const stream = mask.stream();
      const passed: Uint8Array[] = [];
      let from = 0;
      for (const to of [
        ...cuts.map((cut) => Math.min(cut, bytes.length)).toSorted((a, b) => a - b),
        bytes.length,
      ]) {
        passed.push(stream.add(bytes.subarray(from, to)));
        from = to;
      }
      passed.push(stream.end());
      const text = Buffer.concat(passed).toString();
      expect(text).toBe(mask.text(parts.join("")));
      expect(text).not.toContain(SECRET);
    }),
  );
});

test("what cannot be a secret does not wait", () => {
  const stream = mask.stream();
  expect(Buffer.from(stream.add(Buffer.from("Progress: 10 %"))).toString()).toBe("Progress: 10 %");
});

test("the secrets of an environment are those that are named like one, or that somebody names", () => {
  const env = {
    API_KEY: "a",
    github_token: "b",
    DB_PASSWORD: "c",
    MY_SECRET: "d",
    KEYBOARD: "e",
    OTHER: "f",
    PATH: "g",
  };
  expect(secretsIn(env, ["OTHER", "MISSING"]).toSorted()).toEqual(["a", "b", "c", "d", "f"]);
});
