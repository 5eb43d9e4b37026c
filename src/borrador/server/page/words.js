// Numbers and tokens as a person reads them.

export const KINDS = {
  draft: "drafted and accepted",
  correction: "corrected by the target",
  bonus: "bonus token",
  grammar: "the only one the grammar allows",
  plain: "written without a draft",
};

const VISIBLE = { " ": "␣", "\n": "↵", "\t": "⇥", "\r": "␍" };

/** A token's text with its spaces and line breaks visible. */
export function quote(text) {
  return text === "" ? "part of a character" : text.replace(/[ \n\t\r]/g, (character) => VISIBLE[character]);
}

/** A probability in per cent; three digits where it is small. */
export function percent(probability) {
  const value = probability * 100;
  if (value > 0 && value < 0.1) return "< 0.1 %";
  return `${value.toFixed(value < 10 ? 1 : 0)} %`;
}

/** Tokens per second, with a decimal where it says something. */
export function speed(tokensPerSecond) {
  return tokensPerSecond.toFixed(tokensPerSecond < 100 ? 1 : 0);
}

export function count(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

export function milliseconds(value) {
  return `${value.toFixed(value < 10 ? 1 : 0)} ms`;
}
