// Light or dark: what the system prefers, until the other one is chosen.

import { byId } from "./dom.js";
import { keep, recall } from "./storage.js";

const KEPT = "borrador-theme";
let chosen = recall("localStorage", KEPT);
const system = matchMedia("(prefers-color-scheme: dark)");

function isDark() {
  return chosen ? chosen === "dark" : system.matches;
}

function show() {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
  byId("theme").setAttribute("aria-pressed", String(isDark()));
}

/** Choosing what the system prefers anyway means to follow it again. */
function change() {
  const dark = !isDark();
  chosen = dark === system.matches ? null : dark ? "dark" : "light";
  keep("localStorage", KEPT, chosen);
  show();
}

export function startTheme() {
  byId("theme").addEventListener("click", change);
  system.addEventListener("change", show);
  show();
}
