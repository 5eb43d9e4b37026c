// Small helpers for building the page. Text only ever enters it as text: nothing here parses markup.

const SVG = "http://www.w3.org/2000/svg";

/** The element with this id; the page's own markup has it. */
export function byId(id) {
  return document.getElementById(id);
}

/** A new element with a class, attributes, and children that are nodes or text. */
export function make(tag, className = "", attributes = {}, ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** A button with a text that says what it does. */
export function button(text, onClick, className = "quiet") {
  const node = make("button", className, { type: "button" }, text);
  node.addEventListener("click", onClick);
  return node;
}

/** A new SVG element with these attributes. */
export function draw(tag, attributes = {}) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

/** Puts text on the clipboard; throws where the browser forbids it. */
export async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Browsers lend the clipboard to this machine's pages and to those with TLS only; the old way is left to the others.
  const field = make("textarea", "unseen", { "aria-hidden": "true" });
  field.value = text;
  document.body.append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  if (!copied) throw new Error("the browser did not copy");
}

/** Calls `act` once before the next frame, however often it was asked. */
export function oncePerFrame(act) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      act();
    });
  };
}
