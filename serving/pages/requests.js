// Requests to the server, and what to say if one fails.

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

async function send(path, body, signal) {
  const options = { signal };
  if (body) {
    options.headers = { "Content-Type": "application/json" };
    options.method = "POST";
    options.body = JSON.stringify(body);
  }
  const response = await connected(fetch(path, options));
  setOffline(false);
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
function inPageWords(message) {
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

export let needsKey = false; // whether a program needs a key to ask this server
fetch("v1/models", { credentials: "omit" }).then(({ status }) => {
  needsKey = status === 401;
}, () => {});
