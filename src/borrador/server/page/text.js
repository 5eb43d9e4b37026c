// Writes tokens as spans. The text of all spans joined is the answer, character for character: a fenced block gets a
// frame around it, and its fences stay.

import { make } from "./dom.js";

const FENCE = /^ {0,3}```+[^`]*$/;

export class AnswerText {
  #root;
  #block;
  #inCode = false;
  #line = [];
  #spans = new Map();

  /** @param {HTMLElement} root the element that the answer fills. */
  constructor(root) {
    this.#root = root;
    this.#openBlock(false);
  }

  /** Adds a token; it may end lines, and even hold several. */
  add(token) {
    for (const piece of token.text.split(/(?<=\n)/)) this.#write(piece, token);
  }

  /** Marks a token anew whose round has become known. */
  revise(token) {
    for (const span of this.spansOf(token)) span.classList.replace("plain", token.kind);
  }

  /** The answer is complete: its last line may be a fence too. */
  end() {
    this.#endLine();
  }

  /** The spans of a token; none where it is but a part of a character. */
  spansOf(token) {
    return this.#spans.get(token.index) ?? [];
  }

  #write(piece, token) {
    if (!piece) return;
    const span = make("span", `token ${token.kind}`, { "data-index": token.index }, piece);
    this.#spans.set(token.index, [...this.spansOf(token), span]);
    this.#block.append(span);
    this.#line.push(span);
    if (piece.endsWith("\n")) this.#endLine();
  }

  #endLine() {
    const line = this.#line;
    this.#line = [];
    if (
      !FENCE.test(
        line
          .map((span) => span.textContent)
          .join("")
          .trimEnd(),
      )
    )
      return;
    for (const span of line) span.classList.add("fence");
    if (!this.#inCode) this.#openBlock(true).append(...line);
    else this.#openBlock(false);
  }

  #openBlock(isCode) {
    this.#inCode = isCode;
    this.#block = isCode ? make("code") : make("div", "prose");
    this.#root.append(isCode ? make("pre", "code", {}, this.#block) : this.#block);
    return this.#block;
  }
}
