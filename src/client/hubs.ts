/**
 * The URLs of a hub and of its copies, of which one accepts writes. All calls go to one of them, the current one: the
 * last that did not turn a call away.
 *
 * Invariant: a URL that only a response names is never plain HTTP when the response came by TLS.
 */
export class Hubs {
  /** What the user has given. */
  readonly #given: readonly string[];
  /** What the last registration or heartbeat has named. */
  #named: readonly string[] = [];
  /** Where a hub that accepts no writes has sent a call. */
  #pointed: readonly string[] = [];
  #current: string;

  readonly #follows: boolean;

  /**
   * @param list URLs, separated by commas
   * @param follows whether the URLs that responses name are called, too
   * @throws {TypeError} when one of the list is no URL
   */
  constructor(list: string, follows = true) {
    this.#follows = follows;
    this.#given = list.split(",").map((url) => new URL(url.trim()).href.replace(/\/+$/, ""));
    this.#current = this.#given[0] ?? "";
  }

  get current(): string {
    return this.#current;
  }

  /** All, first the current one. */
  get urls(): readonly string[] {
    return [...new Set([this.#current, ...this.#pointed, ...this.#named, ...this.#given])];
  }

  stay(url: string): void {
    this.#current = url;
  }

  /** Learns the hubs that a response names. */
  learn(urls: readonly unknown[]): void {
    this.#named = this.#trusted(urls);
  }

  /**
   * After a hub turned a call away: makes another the current one that the call has not tried. Null: it has tried all.
   * @param left the hub, which is one of those tried
   * @param pointed the URL that the hub has named instead
   */
  leave(left: string, tried: ReadonlySet<string>, pointed?: unknown): string | null {
    const instead = this.#trusted([pointed]);
    if (instead.length > 0) this.#pointed = instead;
    const next = [...instead, ...this.urls].find((url) => url !== left && !tried.has(url));
    if (next === undefined) return null;
    this.#current = next;
    return next;
  }

  #trusted(urls: readonly unknown[]): readonly string[] {
    if (!this.#follows) return [];
    const isSecure = this.#current.startsWith("https:");
    return urls.flatMap((url) => {
      if (typeof url !== "string" || !URL.canParse(url)) return [];
      const { protocol, href } = new URL(url);
      const isUsable = protocol === "https:" || (protocol === "http:" && !isSecure);
      return isUsable ? [href.replace(/\/+$/, "")] : [];
    });
  }
}
