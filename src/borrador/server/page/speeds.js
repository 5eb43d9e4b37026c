// The server's own speeds, with and without drafts, as it measured them; asked for while the page is seen.

import { fetchJson } from "./client.js";
import { byId } from "./dom.js";
import { speed } from "./words.js";

const EVERY_MS = 2000;
const EVERY_MS_AFTER_FAILURE = 10000;

export class Speeds {
  #keyOf;
  #onChange;
  #timer = 0;
  #plain = null;
  #everDrafted = false;

  /**
   * @param {() => string} keyOf gives the API key of the moment.
   * @param {() => void} onChange is told of every measurement.
   */
  constructor(keyOf, onChange) {
    this.#keyOf = keyOf;
    this.#onChange = onChange;
    document.addEventListener("visibilitychange", () => this.start());
  }

  /** Tokens per second without drafts; null until the server has measured it. */
  get plain() {
    return this.#plain;
  }

  /** Whether the server has verified drafts at all; one without drafters never does. */
  get everDrafted() {
    return this.#everDrafted;
  }

  /** Asks now, and again from time to time while the page is visible. */
  start() {
    clearTimeout(this.#timer);
    if (!document.hidden) this.#ask();
  }

  async #ask() {
    const pause = await this.#refresh();
    clearTimeout(this.#timer);
    if (!document.hidden) this.#timer = setTimeout(() => this.#ask(), pause);
  }

  async #refresh() {
    try {
      this.#show(await fetchJson("v1/borrador/stats", this.#keyOf()));
      return EVERY_MS;
    } catch {
      return EVERY_MS_AFTER_FAILURE;
    }
  }

  #show(stats) {
    const pair = [stats.tokens_per_second_speculative ?? null, stats.tokens_per_second_plain ?? null];
    this.#plain = pair[1];
    this.#everDrafted = stats.draft_tokens_proposed > 0;
    const ratio = pair[0] && pair[1] ? `, ${(pair[0] / pair[1]).toFixed(2)}×` : "";
    const fastest = Math.max(...pair.map(Number), 1e-9);
    showSpeed("with", pair[0], fastest, ratio);
    showSpeed("without", pair[1], fastest);
    this.#onChange();
  }
}

function showSpeed(name, tokensPerSecond, fastest, remark = "") {
  const measured = tokensPerSecond !== null;
  byId(`${name}-value`).textContent = measured ? `${speed(tokensPerSecond)} tok/s${remark}` : "not yet measured";
  byId(`${name}-fill`).style.inlineSize = measured ? `${(100 * tokensPerSecond) / fastest}%` : "0";
}
