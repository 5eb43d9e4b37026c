// Reads the answer to those who hear the page: whole sentences, a few at a time, never token by token.

import { byId } from "./dom.js";

const PAUSE_MS = 2500;
const SENTENCES = /^[\s\S]*[.!?:\n](?=\s|$)/;

export class Announcer {
  #region = byId("announcer");
  #unsaid = "";
  #timer = 0;

  /** Says this now. */
  say(text) {
    this.#region.textContent = text;
  }

  begin() {
    this.#unsaid = "";
    this.say("The answer is being written.");
    clearInterval(this.#timer);
    this.#timer = setInterval(() => this.#sayWhatIsWhole(), PAUSE_MS);
  }

  add(text) {
    this.#unsaid += text;
  }

  end(remark) {
    clearInterval(this.#timer);
    this.say(`${this.#unsaid} ${remark}`.trim());
    this.#unsaid = "";
  }

  #sayWhatIsWhole() {
    const [whole] = SENTENCES.exec(this.#unsaid) ?? [""];
    if (!whole.trim()) return;
    this.#unsaid = this.#unsaid.slice(whole.length);
    this.say(whole);
  }
}
