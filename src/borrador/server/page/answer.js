// One answer on the page: its text, its rounds, what it cost, and what can be done with it.

import { hideCard, showRound, showToken } from "./card.js";
import { button, copyText, make, oncePerFrame } from "./dom.js";
import { Strip } from "./strip.js";
import { AnswerText } from "./text.js";
import { Trace } from "./trace.js";
import { count, percent, speed } from "./words.js";

const STEPS = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };
const ENDS = {
  length: "cut at the most tokens allowed",
  timeout: "cut by the server's time limit",
  cancelled: "stopped",
};

export class Answer {
  trace = new Trace();
  #body = make("div", "answer-text", {
    role: "group",
    tabindex: "0",
    "aria-label": "Answer; arrow keys walk its tokens",
  });
  #text = new AnswerText(this.#body);
  #strip = new Strip((round, column) => this.#lookAtRound(round, column));
  #facts = make("p", "facts");
  #actions = make("div", "actions");
  #marked = [];
  #current = 0;
  #drafting;
  #plainSpeed;
  #say;
  #final = {};

  /** Shows what has come of the answer, and how its speed compares. */
  refresh = oncePerFrame(() => this.#show());

  /**
   * @param {{drafting: boolean, plainSpeed: () => number | null, say: (text: string) => void}} context whether drafts
   *   are allowed, the server's speed without them, and who reads aloud.
   */
  constructor({ drafting, plainSpeed, say }) {
    this.#drafting = drafting;
    this.#plainSpeed = plainSpeed;
    this.#say = say;
    this.node = make("div", "answer writing", {}, this.#body, this.#strip.node, this.#facts, this.#actions);
    this.#body.addEventListener("pointerover", (event) => this.#lookAtSpan(event.target));
    this.#body.addEventListener("pointerleave", (event) => event.pointerType === "touch" || this.#lookAway());
    this.#body.addEventListener("focus", () => this.#focus());
    this.#body.addEventListener("blur", () => this.#lookAway());
    this.#body.addEventListener("keydown", (event) => this.#key(event));
  }

  /** Takes a chunk of the stream; gives the text that it added. */
  take(chunk) {
    const { fresh, revised } = this.trace.take(chunk, performance.now());
    for (const token of fresh) this.#text.add(token);
    for (const token of revised) this.#text.revise(token);
    const { timings, metrics } = chunk;
    this.#final = { ...this.#final, ...withoutEmpty({ reason: chunk.choices?.[0]?.finish_reason, timings, metrics }) };
    this.refresh();
    return fresh.map((token) => token.text).join("");
  }

  /** The answer is over. `actions` are buttons for it. */
  end(actions, { stopped = false } = {}) {
    this.#text.end();
    if (stopped) this.#final = { ...this.#final, reason: "cancelled" };
    this.node.classList.remove("writing");
    const copy = button("Copy", (event) => this.#copy(event.currentTarget));
    this.#actions.append(...(this.trace.text ? [copy] : []), ...actions);
    this.node.classList.toggle("empty", !this.trace.text);
    this.#show();
  }

  /** Says in one sentence what went wrong, and offers `remedy`, a button. */
  fail(sentence, remedy) {
    this.node.classList.add("failed");
    this.node.append(make("div", "problem", { role: "alert" }, make("p", "", {}, sentence), remedy));
  }

  /** Takes the buttons away: the conversation has gone on. */
  settle() {
    for (const node of this.node.querySelectorAll(".latest, .problem button")) node.remove();
  }

  #show() {
    this.#strip.show(this.trace.rounds);
    this.#facts.replaceChildren(...this.#describe());
  }

  #describe() {
    const { timings, reason } = this.#final;
    const tokensPerSecond = timings?.predicted_per_second ?? this.trace.speed;
    const plain = this.#plainSpeed();
    const facts = [
      tokensPerSecond ? make("span", "pace", {}, make("strong", "", {}, speed(tokensPerSecond)), " tok/s") : null,
      tokensPerSecond && plain && this.#drafting ? `${(tokensPerSecond / plain).toFixed(2)}× plain` : null,
      this.trace.count ? count(timings?.predicted_n ?? this.trace.count, "token") : null,
      this.trace.rounds.length ? `${this.trace.tokensPerPass.toFixed(1)} per pass` : null,
      this.#acceptance(),
      this.#drafting ? null : "drafting off",
      ENDS[reason] ?? null,
    ];
    return facts.filter(Boolean).map((fact) => make("span", "fact", {}, fact));
  }

  #acceptance() {
    const rate = this.#final.metrics?.speculative_decoding?.draft_acceptance_rate ?? this.trace.acceptance;
    return rate === null || this.trace.acceptance === null ? null : `${percent(rate)} of tested drafts accepted`;
  }

  async #copy(pressed) {
    try {
      await copyText(this.trace.text);
      pressed.textContent = "Copied";
    } catch {
      pressed.textContent = "Not allowed";
    }
    this.#say(pressed.textContent);
    setTimeout(() => (pressed.textContent = "Copy"), 1500);
  }

  #lookAtSpan(target) {
    const index = target.dataset?.index;
    if (index !== undefined) this.#lookAtToken(Number(index));
  }

  #lookAtToken(index) {
    const token = this.trace.tokens[index];
    const round = this.trace.round(token?.round);
    this.#lookAway();
    if (!token) return "";
    this.#current = index;
    this.#mark(round ? round.tokens : [token], "near");
    this.#mark([token], "marked");
    this.#strip.mark(this.trace.rounds.indexOf(round));
    const [span] = this.#text.spansOf(token);
    return span ? showToken(token, round, span) : "";
  }

  #lookAtRound(round, column) {
    this.#lookAway({ keepStrip: true });
    if (!round) return;
    this.#mark(round.tokens, "near");
    showRound(round, column);
  }

  #mark(tokens, name) {
    for (const span of tokens.flatMap((token) => this.#text.spansOf(token))) {
      span.classList.add(name);
      this.#marked.push(span);
    }
  }

  #lookAway({ keepStrip = false } = {}) {
    for (const span of this.#marked) span.classList.remove("near", "marked");
    this.#marked = [];
    if (!keepStrip) this.#strip.mark(-1);
    hideCard();
  }

  #focus() {
    if (this.#body.matches(":focus-visible")) this.#lookAtToken(Math.min(this.#current, this.trace.tokens.length - 1));
  }

  #key(event) {
    const last = this.trace.tokens.length - 1;
    const goal = { Home: 0, End: last }[event.key] ?? this.#current + (STEPS[event.key] ?? NaN);
    if (Number.isNaN(goal) || last < 0) return;
    event.preventDefault();
    const index = Math.min(Math.max(goal, 0), last);
    this.#text.spansOf(this.trace.tokens[index])[0]?.scrollIntoView({ block: "nearest" });
    this.#say(this.#lookAtToken(index));
    this.#current = index;
  }
}

function withoutEmpty(record) {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value != null));
}
