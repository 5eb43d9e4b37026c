// Light or dark: what the system prefers, until the other one is chosen.

import { byId } from "./dom.js";

const KEPT = "borrador-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

function isDark() {
  const chosen = localStorage.getItem(KEPT);
  return chosen ? chosen === "dark" : system.matches;
}

function show() {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
  byId("theme").setAttribute("aria-pressed", String(isDark()));
}

/** Choosing what the system prefers anyway means to follow it again. */
function change() {
  const dark = !isDark();
  if (dark === system.matches) localStorage.removeItem(KEPT);
  else localStorage.setItem(KEPT, dark ? "dark" : "light");
  show();
}

export function startTheme() {
  byId("theme").addEventListener("click", change);
  system.addEventListener("change", show);
  show();
}
