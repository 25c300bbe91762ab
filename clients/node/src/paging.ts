/** Listings: all items, page by page. */
import type { ChangeToken } from "./values/namespace.js";

/** One page. */
export interface Page<T> {
  readonly items: readonly T[];
  /** Empty on the last page. */
  readonly nextPageToken: string;
  /** What the listing answers for, if it says. */
  readonly changeToken: ChangeToken | undefined;
}

/** How many items to read at once; 0 or nothing leaves it to the server. */
export interface PageOptions {
  readonly pageSize?: number | undefined;
}

/**
 * A listing. Iterate it for all items, `pages()` for the pages, or read one page with `page(token)`.
 *
 *     for await (const node of memory.listNodes()) { ... }
 *
 * Nothing is read before the first item is asked for, and no page before it is needed.
 */
export class Pages<T> implements AsyncIterable<T> {
  readonly #fetch: (pageToken: string) => Promise<Page<T>>;

  /** `fetch` reads the page with a token; the empty one is the first page's. */
  constructor(fetch: (pageToken: string) => Promise<Page<T>>) {
    this.#fetch = fetch;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const page of this.pages()) {
      yield* page.items;
    }
  }

  /** All pages, in order. */
  async *pages(): AsyncGenerator<Page<T>, void, undefined> {
    let token = "";
    do {
      const page = await this.page(token);
      yield page;
      token = page.nextPageToken;
    } while (token !== "");
  }

  /** One page: the first, or the one after the page that had this `nextPageToken`. */
  async page(token = ""): Promise<Page<T>> {
    return this.#fetch(token);
  }

  /** All items at once. */
  async all(): Promise<T[]> {
    const items: T[] = [];
    for await (const page of this.pages()) {
      items.push(...page.items);
    }
    return items;
  }
}
