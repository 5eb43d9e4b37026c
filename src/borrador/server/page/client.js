// The server's API: one streamed answer, and the small questions beside it.

/** What went wrong, as one sentence for the person who asked. */
export class Problem extends Error {
  /**
   * @param {string} sentence
   * @param {{status?: number, retryAfterS?: number}} facts the HTTP status, 0 where there was none, and for how long
   *   the server asks to be left alone.
   */
  constructor(sentence, { status = 0, retryAfterS = 0 } = {}) {
    super(sentence);
    this.status = status;
    this.retryAfterS = retryAfterS;
  }
}

/** The JSON that a GET of this path gives. */
export async function fetchJson(path, key) {
  const response = await reach(path, { headers: headersFor(key), cache: "no-store" });
  if (!response.ok) throw await refusal(response, key);
  return response.json();
}

/** The chunks of an answer in their order. Ends with the answer; whatever ends it sooner is thrown. */
export async function* streamChat(request, key, signal) {
  const response = await reach("v1/chat/completions", {
    method: "POST",
    headers: { ...headersFor(key), "Content-Type": "application/json" },
    body: JSON.stringify(request),
    signal,
  });
  if (!response.ok) throw await refusal(response, key);
  for await (const { event, data } of eventsOf(response.body)) {
    if (data === "[DONE]") return;
    const chunk = JSON.parse(data);
    if (event === "error" || chunk.error) throw new Problem(sentence(chunk.error?.message ?? "The server gave up."));
    yield chunk;
  }
  throw new Problem("The connection was lost before the answer was complete.");
}

async function reach(path, options) {
  try {
    return await fetch(path, { credentials: "same-origin", redirect: "error", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("The server cannot be reached.");
  }
}

function headersFor(key) {
  return key ? { Authorization: `Bearer ${key}` } : {};
}

/** Server-sent events of a body: what stands after `data:`, and the event's name. Comments keep the line open only. */
async function* eventsOf(body) {
  let rest = "";
  for await (const text of textOf(body)) {
    const blocks = (rest + text).split(/\r?\n\r?\n/);
    rest = blocks.pop();
    for (const block of blocks) {
      const data = fieldsOf(block, "data");
      if (data.length) yield { event: fieldsOf(block, "event").at(-1) ?? "message", data: data.join("\n") };
    }
  }
}

async function* textOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      yield value;
    }
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("The connection was lost before the answer was complete.");
  } finally {
    reader.cancel().catch(() => {});
  }
}

function fieldsOf(block, name) {
  const prefix = `${name}:`;
  const lines = block.split(/\r?\n/).filter((line) => line.startsWith(prefix));
  return lines.map((line) => line.slice(prefix.length).replace(/^ /, ""));
}

async function refusal(response, key) {
  const { status } = response;
  const retryAfterS = Number(response.headers.get("Retry-After")) || 0;
  return new Problem(explain(status, await messageOf(response), key), { status, retryAfterS });
}

function explain(status, message, key) {
  if (status === 401) return key ? "The server does not accept this API key." : "This server needs an API key.";
  if (status === 429) return "The server is full: as many as it takes are waiting already.";
  if (status === 503) return message ? sentence(message) : "The server cannot take questions at the moment.";
  return message ? sentence(message) : `The server refused with status ${status}.`;
}

async function messageOf(response) {
  try {
    return (await response.json()).error.message;
  } catch {
    return "";
  }
}

function sentence(message) {
  const text = String(message).trim();
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
