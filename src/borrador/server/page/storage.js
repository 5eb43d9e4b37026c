// What the browser keeps. One that is told to keep nothing throws; the page does without then.

/** What is kept under a name in `localStorage` or `sessionStorage`; null where there is nothing. */
export function recall(store, name) {
  try {
    return window[store].getItem(name);
  } catch {
    return null;
  }
}

/** Keeps a text under a name, or with null nothing any more. */
export function keep(store, name, text) {
  try {
    if (text === null) window[store].removeItem(name);
    else window[store].setItem(name, text);
  } catch {
    // It is forgotten with the page.
  }
}
