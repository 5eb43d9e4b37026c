// The rounds of an answer as a strip of columns. Above the line stands what was proposed: filled what was accepted,
// hollow the rest. Below the line stands the token that the target wrote itself.

import { draw, make } from "./dom.js";
import { count } from "./words.js";

const STEP = 9;
const WIDTH = 6;
const PER_TOKEN = 6;
const MOST_ABOVE = 48;
const BELOW = 9;
const LEAST_SCALE = 3;
const EXPLANATION = "Filled: accepted. Hollow: the rest of the draft. Below the line: written by the target itself.";
const STEPS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 };

export class Strip {
  #rounds = [];
  #most = 0;
  #above = 0;
  #selected = -1;
  #svg = draw("svg", { width: 0, "aria-hidden": "true", focusable: "false" });
  #line = draw("line", { class: "baseline", x1: 0 });
  #columns = [];
  #track;
  #key = make("p", "rounds-key");
  #listener;

  /** @param {(round: object | null, column: Element | null) => void} listener is told which round is looked at. */
  constructor(listener) {
    this.#listener = listener;
    this.#svg.append(this.#line);
    this.#track = make("div", "strip", { role: "slider", tabindex: "0", "aria-label": "Rounds" }, this.#svg);
    this.node = make("div", "rounds", { hidden: "" }, this.#track, this.#key);
    this.#track.addEventListener("pointermove", (event) => this.#point(event));
    this.#track.addEventListener("pointerdown", (event) => this.#point(event));
    this.#track.addEventListener("pointerleave", (event) => event.pointerType === "touch" || this.select(-1));
    this.#track.addEventListener("blur", () => this.select(-1));
    this.#track.addEventListener("focus", () => this.#focus());
    this.#track.addEventListener("keydown", (event) => this.#walk(event));
  }

  /** Draws the rounds that are new, and keeps the newest in view unless the strip was scrolled back. */
  show(rounds) {
    if (rounds.length === this.#rounds.length) return;
    this.node.hidden = false;
    const follows = this.#track.scrollLeft + this.#track.clientWidth >= this.#track.scrollWidth - 2 * STEP;
    const fresh = rounds.slice(this.#rounds.length);
    this.#rounds = [...rounds];
    const most = Math.max(this.#most, LEAST_SCALE, ...fresh.map((round) => round.proposed));
    if (most > this.#most) this.#rescale(most);
    else for (const round of fresh) this.#addColumn(round);
    this.#measure();
    if (follows) this.#track.scrollLeft = this.#track.scrollWidth;
  }

  /** Marks a round, by its place, as looked at; -1 marks none. */
  select(index) {
    if (index === this.#selected) return;
    this.mark(index);
    this.#tell();
  }

  /** Marks a column without telling anyone. */
  mark(index) {
    this.#columns[this.#selected]?.classList.remove("marked");
    this.#selected = index;
    this.#columns[index]?.classList.add("marked");
  }

  #tell() {
    const round = this.#rounds[this.#selected] ?? null;
    if (round) this.#describe();
    this.#listener(round, this.#columns[this.#selected] ?? null);
  }

  #describe() {
    const at = Math.max(this.#selected, 0);
    this.#track.setAttribute("aria-valuenow", String(at + 1));
    this.#track.setAttribute("aria-valuetext", summarise(this.#rounds[at]));
  }

  #measure() {
    const width = this.#rounds.length * STEP;
    this.#svg.setAttribute("width", String(width));
    this.#line.setAttribute("x2", String(width));
    this.#track.setAttribute("aria-valuemin", "1");
    this.#track.setAttribute("aria-valuemax", String(this.#rounds.length));
    this.#key.textContent = `${count(this.#rounds.length, "round")}. ${EXPLANATION}`;
    this.#describe();
  }

  #rescale(most) {
    this.#most = most;
    this.#above = Math.min(most * PER_TOKEN, MOST_ABOVE);
    this.#svg.setAttribute("height", String(this.#above + BELOW));
    for (const end of ["y1", "y2"]) this.#line.setAttribute(end, String(this.#above + 0.5));
    for (const column of this.#columns) column.remove();
    this.#columns = [];
    for (const round of this.#rounds) this.#addColumn(round);
  }

  #addColumn(round) {
    const x = this.#columns.length * STEP + 1;
    const [proposed, accepted] = [round.proposed, round.accepted].map((tokens) => (tokens * this.#above) / this.#most);
    const own = ownKind(round);
    const column = draw("g", { class: "column" });
    column.append(draw("rect", { class: "reach", x: x - 1, y: 0, width: STEP, height: this.#above + BELOW }));
    if (accepted) column.append(this.#bar("accepted", x, WIDTH, 0, accepted));
    if (proposed > accepted) column.append(this.#bar("rest", x + 0.5, WIDTH - 1, accepted + 0.5, proposed - 0.5));
    if (own) column.append(this.#bar(`own ${own}`, x, WIDTH, -BELOW, -3));
    this.#columns.push(column);
    this.#svg.append(column);
  }

  /** A bar between two heights over the line. */
  #bar(name, x, width, from, to) {
    return draw("rect", { class: name, x, width, y: this.#above - to, height: Math.max(to - from - 1, 1), rx: 1 });
  }

  #point(event) {
    const x = event.clientX - this.#svg.getBoundingClientRect().left;
    const index = Math.floor(x / STEP);
    this.select(index >= 0 && index < this.#rounds.length ? index : -1);
  }

  #focus() {
    if (this.#track.matches(":focus-visible")) this.select(this.#rounds.length - 1);
  }

  #walk(event) {
    const last = this.#rounds.length - 1;
    const goal = { Home: 0, End: last }[event.key] ?? this.#selected + (STEPS[event.key] ?? NaN);
    if (Number.isNaN(goal)) return;
    event.preventDefault();
    this.select(Math.min(Math.max(goal, 0), last));
    this.#columns[this.#selected]?.scrollIntoView({ block: "nearest", inline: "nearest" });
    this.#tell();
  }
}

/** A round in words. */
export function summarise(round) {
  const own = { correction: "one corrected", bonus: "a bonus token" }[ownKind(round)];
  const drafted = round.proposed
    ? `${count(round.proposed, "token")} proposed, ${round.accepted} accepted`
    : "no draft";
  return `Round ${round.number}: ${[drafted, own].filter(Boolean).join(", ")}`;
}

/** Of which kind the target's own token was; undefined where the answer ended before it. */
function ownKind(round) {
  const own = round.tokens.filter((token) => token.kind !== "draft");
  return (own.find((token) => token.kind !== "grammar") ?? own[0])?.kind;
}
