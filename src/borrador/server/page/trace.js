// What an answer is made of: its tokens, each with where it came from, and the rounds that committed them.

const RECENT_ROUNDS = 8;
const MOST_PER_ROUND = 256;

export class Trace {
  tokens = [];
  rounds = [];
  #firstAt = 0;
  #lastAt = 0;
  #inFirstChunk = 0;
  #textOnly = 0;

  /** Takes what a chunk says; gives the tokens that are `fresh`, and those whose kind is `revised` by it. */
  take(chunk, now) {
    const known = this.tokens.length;
    for (const token of tokensOf(chunk)) this.#addToken(token);
    const revised = (chunk.speculative?.rounds ?? []).flatMap((round) => this.#addRound(round));
    const fresh = this.tokens.slice(known);
    if (fresh.length) this.#clock(fresh.length, now);
    return { fresh, revised: revised.filter((token) => token.index < known) };
  }

  /** How many tokens there are; the last text of an answer may come without one. */
  get count() {
    return this.tokens.length - this.#textOnly;
  }

  get text() {
    return this.tokens.map((token) => token.text).join("");
  }

  /** The round with this number; undefined where the trace has none. */
  round(number) {
    return this.rounds.find((round) => round.number === number);
  }

  /** Tokens per second since the first ones came; 0 until there are more. */
  get speed() {
    const seconds = (this.#lastAt - this.#firstAt) / 1000;
    return seconds > 0 ? (this.count - this.#inFirstChunk) / seconds : 0;
  }

  get tokensPerPass() {
    return this.rounds.length ? this.count / this.rounds.length : 0;
  }

  /** Accepted / tested; null where nothing was drafted. A chain is tested up to and including its first miss. */
  get acceptance() {
    const accepted = sum(this.rounds, (round) => round.accepted);
    const missed = sum(this.rounds, (round) => Number(round.accepted < round.proposed));
    return accepted + missed ? accepted / (accepted + missed) : null;
  }

  /** Whether the last rounds, several of them, verified no draft at all. */
  get isPaused() {
    const recent = this.rounds.slice(-RECENT_ROUNDS);
    return recent.length === RECENT_ROUNDS && recent.every((round) => round.proposed === 0);
  }

  #addToken(token) {
    const kind = token.origin === "target" ? "plain" : token.origin;
    this.tokens.push({ ...token, kind, index: this.tokens.length });
    this.#textOnly += Number(token.token_id === null);
  }

  /** A round comes with its last token; gives those of its tokens that turn out to be corrections. */
  #addRound(round) {
    const tokens = this.tokens.slice(-MOST_PER_ROUND).filter((token) => token.round === round.number);
    this.rounds.push({ ...round, tokens });
    const corrections = tokens.filter((token) => token.origin === "target" && round.proposed);
    for (const token of corrections) token.kind = "correction";
    return corrections;
  }

  #clock(count, now) {
    if (!this.#firstAt) {
      this.#firstAt = now;
      this.#inFirstChunk = count;
    }
    this.#lastAt = now;
  }
}

function tokensOf(chunk) {
  if (chunk.speculative?.tokens) return chunk.speculative.tokens;
  const text = chunk.choices?.[0]?.delta?.content;
  return text ? [{ text, origin: "target" }] : [];
}

function sum(items, valueOf) {
  return items.reduce((total, item) => total + valueOf(item), 0);
}
