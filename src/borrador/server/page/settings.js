// What a person may set, where it is kept, and the sheet to edit it on.
// The API key lives in this tab's session only; everything else is kept for the next visit.

import { byId } from "./dom.js";
import { keep, recall } from "./storage.js";

const KEPT = "borrador";
const SECRET = "borrador-key";
const DEFAULTS = {
  system: "",
  temperature: 0.3,
  max_tokens: 512,
  seed: "",
  probabilities: true,
  drafting: true,
  colours: true,
};

export class Settings {
  #values = { ...DEFAULTS, ...readKept() };
  #key = recall("sessionStorage", SECRET) ?? "";
  #form = byId("settings-form");
  #sheet = byId("settings");
  #onSave = () => {};

  constructor() {
    byId("open-settings").addEventListener("click", () => this.open());
    byId("leave-settings").addEventListener("click", () => this.#sheet.close("cancel"));
    // `close` comes some time after the sheet is gone, when a question may have been sent already.
    this.#form.addEventListener("submit", () => this.#save());
    this.#sheet.addEventListener("close", () => this.#sheet.returnValue === "save" && this.#onSave());
  }

  get values() {
    return this.#values;
  }

  get key() {
    return this.#key;
  }

  /** Changes a value, here and for the next visit; what other tabs have changed meanwhile stays changed. */
  set(name, value) {
    if (value === this.#values[name]) return;
    this.#values = { ...this.#values, [name]: value };
    keep("localStorage", KEPT, JSON.stringify({ ...this.#values, ...readKept(), [name]: value }));
  }

  /** Shows the sheet, with the field to begin at and why; `onSave` is called if it is left with Save. */
  open({ field = "system", reason = "", onSave = () => {} } = {}) {
    this.#onSave = onSave;
    byId("settings-reason").textContent = reason;
    byId("settings-reason").hidden = !reason;
    this.#fill();
    this.#sheet.returnValue = "cancel";
    if (!this.#sheet.open) this.#sheet.showModal();
    this.#form.elements[field].focus();
  }

  /** The parameters of a request that these settings ask for. */
  get parameters() {
    const { temperature, max_tokens, seed, probabilities, drafting } = this.#values;
    return {
      temperature,
      max_tokens,
      ...(seed === "" ? {} : { seed }),
      ...(probabilities ? { logprobs: true } : {}),
      speculative: { enabled: drafting, trace: true },
    };
  }

  #fill() {
    const { elements } = this.#form;
    for (const name of ["system", "temperature", "max_tokens", "seed"]) elements[name].value = this.#values[name];
    elements.probabilities.checked = this.#values.probabilities;
    elements.key.value = this.key;
  }

  #save() {
    const { elements } = this.#form;
    this.set("system", elements.system.value.trim());
    for (const name of ["temperature", "max_tokens"]) this.set(name, Number(elements[name].value));
    this.set("seed", elements.seed.value === "" ? "" : Number(elements.seed.value));
    this.set("probabilities", elements.probabilities.checked);
    this.#key = elements.key.value.trim();
    keep("sessionStorage", SECRET, this.#key || null);
    elements.key.value = "";
  }
}

function readKept() {
  try {
    const kept = Object.entries(JSON.parse(recall("localStorage", KEPT) ?? "{}"));
    return Object.fromEntries(kept.filter(([name, value]) => fits(name, value)));
  } catch {
    return {};
  }
}

function fits(name, value) {
  return name in DEFAULTS && (typeof value === typeof DEFAULTS[name] || (name === "seed" && Number.isInteger(value)));
}
