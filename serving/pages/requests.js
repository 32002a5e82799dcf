// Requests to the server, and what to say if one fails.

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
  if (response.ok) return response;
  const { error } = await response.json().catch(() => ({}));
  const message = error?.message || error || `The server answered with status ${response.status}.`;
  throw new Error(inPageWords(message));
}

// === What is wrong, in the words of the page ===

const PAGE_WORDS = [
  [/rows|bytes at most/, "That is too much for one request. Make it shorter."],
  [/characters/, "A text is too long. Make it shorter."],
];

/** A message of the server without the names that only programs know. */
function inPageWords(message) {
  for (const [pattern, words] of PAGE_WORDS) {
    if (pattern.test(message)) return words;
  }
  const sentence = message.replace(/^instance 0[:,] /, "").replace(/\.?$/, ".");
  return sentence[0].toUpperCase() + sentence.slice(1);
}

/** What a step of a request gives; an error says so if the connection breaks. */
async function connected(step) {
  try {
    return await step;
  } catch (failure) {
    if (failure.name === "AbortError") throw failure;
    throw new Error("The server does not answer.");
  }
}

// === The key ===
// A browser that had to prove itself to get this page (HTTP Basic, a proxy's cookie) continues to.

export let needsKey = false; // whether a program needs a key to ask this server
fetch("v1/models", { credentials: "omit" }).then(({ status }) => {
  needsKey = status === 401;
}, () => {});
