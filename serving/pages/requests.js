// Requests to the server: JSON, streams, the key, and what to say if one fails.

import { showNotice } from "./common.js";

export const pathOf = (model, verb) => `v1/models/${encodeURIComponent(model)}${verb}`;

/** The answer to a request, parsed. Once `signal` is aborted, it is an AbortError. */
export async function ask(path, body, signal) {
  const response = await send(path, body, signal);
  const answer = await connected(response.json());
  signal?.throwIfAborted();
  return answer;
}

export async function predict(model, instance, signal) {
  const { predictions } = await ask(pathOf(model, ":predict"), { instances: [instance] }, signal);
  return predictions[0];
}

export async function explain(model, instance, signal) {
  const { explanations } = await ask(pathOf(model, ":explain"), { instances: [instance] }, signal);
  return explanations[0];
}

/** Streams a reply: calls `write(text)` for each state of it; returns the answer. */
export async function stream(model, turns, decode, write, signal) {
  const messages = turns.map((content, i) => {
    const isOwn = (turns.length - i) % 2 === 1;
    return { role: isOwn ? "user" : "assistant", content };
  });
  const body = { model, messages, decode, stream: true, explain: true };
  const response = await send("v1/chat/completions", body, signal);
  let text = "";
  let explanation = null;
  for await (const chunk of readEvents(response, signal)) {
    if (chunk.error) throw new Error(chunk.error.message || chunk.error);
    text += chunk.choices[0].delta.content || "";
    explanation = chunk.explanation || explanation;
    write(text);
  }
  return { best: [], attention: [], ...explanation, response: text };
}

async function* readEvents(response, signal) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await connected(reader.read());
    signal.throwIfAborted();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const data = event.replace(/^data: /, "");
      if (data !== "[DONE]") yield JSON.parse(data);
    }
  }
}

async function send(path, body, signal) {
  const key = authorization();
  const headers = {};
  const options = { signal, headers, credentials: (await isOpen) ? "omit" : "same-origin" };
  if (key) headers.Authorization = key;
  if (body) {
    headers["Content-Type"] = "application/json";
    options.method = "POST";
    options.body = JSON.stringify(body);
  }
  const response = await connected(fetch(path, options));
  setOffline(false);
  if (response.status === 401 && (await askForKey(key))) return send(path, body, signal);
  if (response.ok) return response;
  const { error } = await response.json().catch(() => ({}));
  const message = error?.message || error || `The server answered with status ${response.status}.`;
  throw Object.assign(new Error(inPageWords(message)), { status: response.status });
}

// === What is wrong, in the words of the page ===

const PAGE_WORDS = [
  [/^(?:the )?body.*bytes/i, "That is too much text at once. Make it shorter."],
  [/rows/, "That is too much for one request. Make it shorter."],
  [/question: expected at most (\d+) words/, "The question is too long: $1 words at most."],
  [/question: expected words/, "The question has no words."],
  [/passage: expected words/, "The text has no words."],
  [/characters/, "A text is too long. Make it shorter."],
  [/turn with (?:text|words)/, "Say something first: the conversation has no words."],
];

/** A message of the server without the names that only programs know. */
export function inPageWords(message) {
  for (const [pattern, words] of PAGE_WORDS) {
    const match = message.match(pattern);
    if (match) return words.replace("$1", match[1]);
  }
  const sentence = message.replace(/^instance 0[:,] /, "").replace(/\.?$/, ".");
  return sentence[0].toUpperCase() + sentence.slice(1);
}

// === A server that does not answer ===

let knocking = null; // the timer while the server does not answer

function setOffline(isOffline) {
  if (isOffline === Boolean(knocking)) return;
  clearInterval(knocking);
  if (isOffline) {
    showNotice("The server does not answer. Trying again…");
    knocking = setInterval(knock, 2000);
    return;
  }
  knocking = null;
  showNotice("");
  dispatchEvent(new Event("back"));
}

function knock() {
  const check = ({ ok }) => {
    if (ok) setOffline(false);
  };
  fetch("healthz").then(check, () => {});
}

/** What a step of a request gives; an error says so if the connection breaks. */
async function connected(step) {
  try {
    return await step;
  } catch (failure) {
    if (failure.name === "AbortError") throw failure;
    setOffline(true);
    throw new Error("The server does not answer.");
  }
}

// === The key ===
// A browser that had to prove itself to get this page (HTTP Basic, a proxy's cookie) continues to.
// If a key is wanted only later, the page asks.

const KEY = "colloquy-key";
export let needsKey = false; // whether a program needs a key to ask this server
const isOpen = fetch("v1/models", { method: "HEAD", credentials: "omit" }).then(
  ({ ok, status }) => {
    needsKey = status === 401;
    return ok;
  },
  () => false,
);
let asking = null;

/** Asks for a key, as `refused` is wrong; whether there is another one. */
function askForKey(refused) {
  needsKey = true;
  if (refused === authorization()) sessionStorage.removeItem(KEY);
  if (authorization()) return true; // given meanwhile
  asking ??= new Promise(openKeyDialog);
  return asking;
}

function openKeyDialog(resolve) {
  const dialog = document.getElementById("key");
  const field = dialog.querySelector("input");
  dialog.querySelector("form").onsubmit = () => sessionStorage.setItem(KEY, field.value);
  dialog.querySelector("[type=button]").onclick = () => dialog.close();
  dialog.onclose = () => {
    asking = null;
    field.value = "";
    resolve(Boolean(authorization()));
  };
  dialog.showModal();
}

/** The header with the key, whose characters are the bytes of UTF-8. */
function authorization() {
  const key = sessionStorage.getItem(KEY);
  if (!key) return null;
  return `Bearer ${String.fromCharCode(...new TextEncoder().encode(key))}`;
}
