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
