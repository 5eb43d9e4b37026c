// The card beside a token or a round that says where it came from.

import { byId, make } from "./dom.js";
import { KINDS, count, milliseconds, percent, quote } from "./words.js";

const MARGIN = 8;
const card = byId("card");
let anchored = null;

export function hideCard() {
  card.hidden = true;
}

/** Keeps the card at what it belongs to when the page is scrolled, and hides it with that. */
export function followCard() {
  if (card.hidden) return;
  const { top, bottom } = anchored.getBoundingClientRect();
  if (bottom < 0 || top > innerHeight) hideCard();
  else place();
}

/** Shows a token's card at its span; gives the card's text, for those who hear it. */
export function showToken(token, round, span) {
  const rows = [
    ["Target", probability(token.logprob == null ? null : Math.exp(token.logprob), "target")],
    ...(token.kind === "draft" ? [["Drafter", probability(token.draft_probability ?? null, "draft")]] : []),
    ...(token.kind === "draft" && token.drafter ? [["Proposed by", token.drafter]] : []),
    ...(round ? [["Round", roundText(round)]] : []),
    ...(token.kind === "correction" ? refusedRows(round) : []),
  ];
  return show(span, quote(token.text), make("span", token.kind, {}, KINDS[token.kind]), rows);
}

/** Shows a round's card at its column. */
export function showRound(round, column) {
  const rows = [
    ["Proposed", proposedText(round)],
    ...refusedRows(round),
    ...(round.proposed && round.drafter ? [["Drafter", round.drafter]] : []),
    ["Drafting", milliseconds(round.draft_ms ?? 0)],
    ["Checking", milliseconds(round.verify_ms ?? 0)],
  ];
  return show(column, `Round ${round.number}`, count(round.tokens.length, "token"), rows);
}

function show(anchor, title, remark, rows) {
  const list = make("dl");
  for (const [term, value] of rows) list.append(make("dt", "", {}, term), make("dd", "", {}, value));
  card.replaceChildren(make("p", "card-title", {}, title), make("p", "card-remark", {}, remark), list);
  card.hidden = false;
  anchored = anchor;
  place();
  return `${title}, ${card.querySelector(".card-remark").textContent}. ${rows.map(spoken).join(", ")}`;
}

function spoken([term, value]) {
  return `${term} ${value.textContent ?? value}`;
}

/** Above the anchor where there is room, else below it, and never outside the window. */
function place() {
  const anchor = anchored.getClientRects()[0] ?? anchored.getBoundingClientRect();
  const { width, height } = card.getBoundingClientRect();
  const above = anchor.top - height - MARGIN;
  const left = Math.min(anchor.left, document.documentElement.clientWidth - width - MARGIN);
  card.style.left = `${Math.max(left, MARGIN)}px`;
  card.style.top = `${above > MARGIN ? above : anchor.bottom + MARGIN}px`;
}

function probability(value, kind) {
  if (value === null) return make("span", "unknown", {}, "not told");
  const fill = make("span", `fill ${kind}`);
  fill.style.inlineSize = `${value * 100}%`;
  return make("span", "gauge", {}, make("span", "track", {}, fill), make("span", "value", {}, percent(value)));
}

function proposedText(round) {
  return round.proposed ? `${round.proposed}, of which ${round.accepted} accepted` : "nothing";
}

function roundText(round) {
  return round.proposed
    ? `${round.number}, ${round.accepted} of ${round.proposed} accepted`
    : `${round.number}, no draft`;
}

function refusedRows(round) {
  return round.refused?.length ? [["Not accepted", round.refused.map(quote).join(" · ")]] : [];
}
