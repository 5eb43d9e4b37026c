// The conversation: questions go to the server, answers are written as they come.

import { Announcer } from "./announcer.js";
import { Answer } from "./answer.js";
import { followCard, hideCard } from "./card.js";
import { Problem, fetchJson, streamChat } from "./client.js";
import { button, byId, make, oncePerFrame } from "./dom.js";
import { Settings } from "./settings.js";
import { Speeds } from "./speeds.js";
import { startTheme } from "./theme.js";
import { count } from "./words.js";

// A question that keeps the focus would keep the keyboard on the screen, over the answer.
const HAS_KEYBOARD = matchMedia("(pointer: fine)");
const MEET_AGAIN_MS = 2000;
const EXAMPLES = [
  "Correct the spelling and return the whole text: The museeum is opend from Tuesday to Sunday. " +
    "Visiters can leave their bags at the entrance. Children do not pay.",
  "Write a Python function that says whether a number is prime, then the same function with type annotations.",
  "Why is the sky blue?",
];

class Conversation {
  #settings = new Settings();
  #speeds = new Speeds(
    () => this.#settings.key,
    () => this.#turns.at(-1)?.answer.refresh(),
  );
  #announcer = new Announcer();
  #turns = [];
  #model = "default";
  #running = null;
  #follow = oncePerFrame(() => this.#scrollDown());

  start() {
    this.#listen();
    const examples = EXAMPLES.map((example) => button(example, () => this.#ask(example), "example"));
    byId("examples").append(...examples.map((example) => make("li", "", {}, example)));
    this.#colour();
    byId("drafting").checked = this.#settings.values.drafting;
    this.#meet();
    this.#speeds.start();
  }

  #listen() {
    const question = byId("question");
    byId("composer").addEventListener("submit", (event) => this.#submit(event));
    // By the second click of a double one the button says Stop already.
    byId("send").addEventListener("click", (event) => event.detail > 1 && event.preventDefault());
    question.addEventListener("input", () => (question.rows = Math.min(question.value.split("\n").length, 8)));
    question.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      if (!this.#running) this.#submit(event);
    });
    document.addEventListener("keydown", (event) => this.#escape(event));
    byId("scroller").addEventListener("scroll", followCard, { passive: true });
    byId("fresh").addEventListener("click", () => this.#clear());
    byId("drafting").addEventListener("change", (event) => this.#settings.set("drafting", event.target.checked));
    byId("colours").addEventListener("change", (event) => {
      this.#settings.set("colours", event.target.checked);
      this.#colour();
    });
  }

  #colour() {
    byId("colours").checked = this.#settings.values.colours;
    document.body.classList.toggle("uncoloured", !this.#settings.values.colours);
  }

  /** Learns what is served here, and asks for a key where one is needed. */
  async #meet() {
    try {
      const { data } = await fetchJson("v1/models", this.#settings.key);
      this.#model = data[0].id;
      byId("model").textContent = this.#model;
      document.title = `${this.#model} · borrador`;
    } catch (error) {
      if (error.status === 401) return this.#askForKey(error.message);
      byId("model").textContent = error.status === 503 ? "loading the model" : "no connection";
      setTimeout(() => this.#meet(), MEET_AGAIN_MS);
    }
  }

  #askForKey(reason, then = () => {}) {
    const onSave = () => {
      this.#meet();
      this.#speeds.start();
      then();
    };
    this.#settings.open({ field: "key", reason, onSave });
  }

  #submit(event) {
    event.preventDefault();
    if (this.#running) return this.#running.abort();
    const question = byId("question");
    const text = question.value.trim();
    if (!text) return;
    question.value = "";
    question.rows = 1;
    this.#ask(text);
  }

  #escape(event) {
    if (event.key !== "Escape") return;
    if (!byId("card").hidden) hideCard();
    else if (!byId("settings").open) this.#running?.abort();
  }

  #ask(question) {
    if (this.#running) return;
    byId("welcome").hidden = true;
    this.#turns.at(-1)?.answer.settle();
    const place = make("div");
    const node = make(
      "li",
      "turn",
      {},
      make("p", "question", {}, make("span", "unseen", {}, "You: "), question),
      place,
    );
    byId("turns").append(node);
    this.#turns.push({ question, answer: null, place });
    this.#answer(this.#turns.at(-1));
  }

  /** Writes the answer to a turn, in the place of the one it had. */
  async #answer(turn) {
    turn.answer = new Answer({
      drafting: this.#settings.values.drafting,
      plainSpeed: () => this.#speeds.plain,
      say: (text) => this.#announcer.say(text),
    });
    turn.place.replaceChildren(turn.answer.node);
    this.#begin();
    const problem = await this.#stream(turn.answer, this.#request(turn));
    this.#finish(turn, problem);
  }

  async #stream(answer, request) {
    try {
      for await (const chunk of streamChat(request, this.#settings.key, this.#running.signal)) {
        this.#announcer.add(answer.take(chunk));
        byId("paused").hidden = !(answer.trace.isPaused && this.#mayDraft);
        this.#follow();
      }
      return null;
    } catch (error) {
      return error;
    }
  }

  /** Rounds without a draft are a choice only where there could be one. */
  get #mayDraft() {
    return this.#settings.values.drafting && this.#speeds.everDrafted;
  }

  #request(turn) {
    const { system } = this.#settings.values;
    const before = this.#turns.slice(0, this.#turns.indexOf(turn)).filter((past) => past.answer.trace.text);
    return {
      model: this.#model,
      messages: [
        ...(system ? [{ role: "system", content: system }] : []),
        ...before.flatMap((past) => [
          { role: "user", content: past.question },
          { role: "assistant", content: past.answer.trace.text },
        ]),
        { role: "user", content: turn.question },
      ],
      stream: true,
      ...this.#settings.parameters,
    };
  }

  #begin() {
    this.#running = new AbortController();
    this.#showRunning();
    if (HAS_KEYBOARD.matches) byId("question").focus();
    else byId("question").blur();
    this.#announcer.begin();
    this.#scrollDown(true);
  }

  #finish(turn, problem) {
    const stopped = problem?.name === "AbortError";
    this.#running = null;
    this.#showRunning();
    byId("paused").hidden = true;
    const failed = problem && !stopped;
    turn.answer.end(failed ? [] : [button("Regenerate", () => this.#again(turn), "quiet latest")], { stopped });
    if (failed) this.#explain(turn, problem);
    this.#announcer.end(stopped ? "Stopped." : failed ? "" : `Done, ${count(turn.answer.trace.count, "token")}.`);
    this.#speeds.start();
    this.#follow();
  }

  #showRunning() {
    const runs = this.#running !== null;
    byId("send").textContent = runs ? "Stop" : "Send";
    byId("send").classList.toggle("stop", runs);
    byId("fresh").disabled = runs;
  }

  #again(turn) {
    if (!this.#running) this.#answer(turn);
  }

  #explain(turn, problem) {
    if (!(problem instanceof Problem)) console.error(problem);
    const said = problem instanceof Problem ? problem.message : "This page failed to show the answer.";
    const remedy = button("Try again", () => this.#again(turn), "quiet");
    turn.answer.fail(said, remedy);
    if (problem.retryAfterS) holdBack(remedy, problem.retryAfterS);
    if (problem.status === 401) this.#askForKey(said, () => this.#again(turn));
  }

  #clear() {
    this.#turns = [];
    byId("turns").replaceChildren();
    byId("welcome").hidden = false;
    byId("fresh").disabled = true;
    hideCard();
    byId("question").focus();
  }

  /** Keeps the newest text in view, unless someone has scrolled back to read. */
  #scrollDown(always = false) {
    const scroller = byId("scroller");
    const below = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
    if (always || below < 160) scroller.scrollTop = scroller.scrollHeight;
  }
}

/** Counts the seconds down that the server asked for, then lets the button be pressed. */
function holdBack(remedy, seconds) {
  remedy.disabled = seconds > 0;
  remedy.textContent = seconds > 0 ? `Try again in ${Math.ceil(seconds)} s` : "Try again";
  if (seconds > 0) setTimeout(() => holdBack(remedy, seconds - 1), 1000);
}

startTheme();
new Conversation().start();
