/**
 * JSON as text, for values that must be passed on unchanged: JSON.parse changes numbers beyond 2^53, and moves keys
 * that look like numbers to the front. compactJson() needs valid JSON, nested no deeper than the call stack allows.
 */
import { must } from "./assert.ts";

/** Without braces: an encoder puts the text into an answer unchanged. */
export class JsonFields {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Of two fields with one name it keeps the last, in the place of the first, as JSON.parse does. */
export function compactJson(json: string): string {
  return new Compactor(json).value();
}

/** Recursive descent: each method returns a value without white space. */
class Compactor {
  readonly #json: string;
  #at = 0;

  constructor(json: string) {
    this.#json = json;
  }

  value(): string {
    switch (this.#peek()) {
      case "{":
        return this.#object();
      case "[":
        return `[${this.#list("]", () => this.value()).join(",")}]`;
      case '"':
        return this.#string();
      default:
        return this.#scalar();
    }
  }

  #object(): string {
    const fields = new Map<string, string>();
    this.#list("}", () => {
      const token = this.#string();
      const name: string = JSON.parse(token);
      this.#peek();
      this.#at++; // the colon
      fields.set(name, `${token}:${this.value()}`);
    });
    return `{${[...fields.values()].join(",")}}`;
  }

  #list<T>(end: string, item: () => T): T[] {
    const items: T[] = [];
    this.#at++; // the opening bracket
    while (this.#peek() !== end) {
      items.push(item());
      if (this.#peek() === ",") this.#at++;
    }
    this.#at++;
    return items;
  }

  #string(): string {
    this.#peek();
    const start = this.#at;
    do this.#at = this.#json.indexOf('"', this.#at + 1);
    while (isEscaped(this.#json, this.#at));
    return this.#json.slice(start, ++this.#at);
  }

  #scalar(): string {
    SCALAR.lastIndex = this.#at;
    const [token] = must(SCALAR.exec(this.#json), "the text is valid JSON");
    this.#at += token.length;
    return token;
  }

  #peek(): string | undefined {
    SPACE.lastIndex = this.#at;
    this.#at += must(SPACE.exec(this.#json), "it matches no space, too")[0].length;
    if (this.#at >= this.#json.length) throw new SyntaxError("not JSON");
    return this.#json[this.#at];
  }
}

const SCALAR = /[^\s,\]}]+/y;
const SPACE = /\s*/y;

/** It follows an odd number of backslashes. */
function isEscaped(json: string, index: number): boolean {
  if (index === -1) throw new SyntaxError("not JSON");
  let start = index;
  while (json[start - 1] === "\\") start--;
  return (index - start) % 2 === 1;
}
