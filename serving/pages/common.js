// What all tabs share: elements, requests, the words of a text. Text from people and models only becomes `textContent`.

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) made.style.setProperty(name, value);
    else if (value !== false && value != null) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

export function percent(fraction) {
  if (fraction < 0.005 && fraction > 0) return "< 1 %";
  return fraction > 0.995 && fraction < 1 ? "> 99 %" : `${Math.round(100 * fraction)} %`;
}

export const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);

export function softmax(logits) {
  const most = Math.max(...logits);
  const powers = logits.map((logit) => Math.exp(logit - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

export const bar = (fraction, text, title) => element("span", { class: "bar", title, "--p": `${Math.round(100 * fraction)}%` }, text);

/** Whether an input method composes with a key; 229 is Safari's. */
export const composes = ({ isComposing, keyCode }) => isComposing || keyCode === 229;

/** Shows a sentence above the tabs. */
export const notice = (text) => { document.getElementById("notice").textContent = text; };

// === Requests ===

let knocking = null; // the timer while the server does not answer

function setOffline(offline) {
  if (offline === Boolean(knocking)) return;
  notice(offline ? "The server does not answer. Trying again…" : "");
  clearInterval(knocking);
  knocking = offline ? setInterval(() => fetch("healthz").then(({ ok }) => { if (ok) setOffline(false); }, () => {}), 2000) : null;
  if (!offline) dispatchEvent(new Event("back"));
}

/** What a step of a request gives; if the connection breaks, or something between here and the server answers, an error says so. */
async function connected(step) {
  try {
    return await step;
  } catch (failure) {
    if (failure.name === "AbortError") throw failure;
    setOffline(true);
    throw new Error("The server does not answer.");
  }
}

async function send(path, body, signal) {
  const [key, credentials] = [authorization(), await isOpen ? "omit" : "same-origin"];
  const headers = { ...(body && { "Content-Type": "application/json" }), ...(key && { Authorization: key }) };
  const response = await connected(fetch(path, { signal, headers, credentials, ...(body && { method: "POST", body: JSON.stringify(body) }) }));
  setOffline(false);
  if (response.status === 401 && await giveKey(key)) return send(path, body, signal);
  if (response.ok) return response;
  const { error } = await response.json().catch(() => ({}));
  throw Object.assign(new Error(error?.message || error || `The server answered with status ${response.status}.`), { status: response.status });
}

// A browser that had to prove itself to get this page (HTTP Basic, a proxy's cookie) continues to. If a key is wanted only later, the page asks.

const KEY = "colloquy-key";
export let needsKey = false; // whether a program needs a key to ask this server
const isOpen = fetch("v1/models", { method: "HEAD", credentials: "omit" }).then(({ ok, status }) => { needsKey = status === 401; return ok; }, () => false);

let giving = null;
/** Asks for a key, as the one in the header `refused` is wrong; whether there is another one. */
function giveKey(refused) {
  needsKey = true;
  if (refused === authorization()) sessionStorage.removeItem(KEY);
  if (authorization()) return true; // given meanwhile
  giving ??= new Promise((resolve) => {
    const asked = document.getElementById("key");
    const field = asked.querySelector("input");
    asked.querySelector("form").onsubmit = () => sessionStorage.setItem(KEY, field.value);
    asked.querySelector("[type=button]").onclick = () => asked.close();
    asked.onclose = () => { giving = null; field.value = ""; resolve(Boolean(authorization())); };
    asked.showModal();
  });
  return giving;
}

/** The header with the key, whose characters are the bytes of UTF-8. */
function authorization() {
  const key = sessionStorage.getItem(KEY);
  return key && `Bearer ${String.fromCharCode(...new TextEncoder().encode(key))}`;
}

/** The answer to a request, parsed; once `signal` is aborted it is an AbortError, even if the answer has arrived. */
export async function ask(path, body, signal) {
  const answer = await connected((await send(path, body, signal)).json());
  signal?.throwIfAborted();
  return answer;
}

export const pathOf = (model, verb) => `v1/models/${encodeURIComponent(model)}${verb}`;
export const predict = async (model, instance, signal) => (await ask(pathOf(model, ":predict"), { instances: [instance] }, signal)).predictions[0];
export const explain = async (model, instance, signal) => (await ask(pathOf(model, ":explain"), { instances: [instance] }, signal)).explanations[0];

/** Streams a reply to some turns: calls `write(text)` for each state of it; returns the answer with its attention. */
export async function stream(model, turns, decode, write, signal) {
  const messages = turns.map((content, i) => ({ role: (turns.length - i) % 2 ? "user" : "assistant", content }));
  const response = await send("v1/chat/completions", { model, messages, decode, stream: true, explain: true }, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let [text, rest, found] = ["", "", null];
  for (;;) {
    const { done, value } = await connected(reader.read());
    signal.throwIfAborted();
    if (done) break;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const data = event.replace(/^data: /, "");
      if (data === "[DONE]") continue;
      const chunk = JSON.parse(data);
      if (chunk.error) throw new Error(chunk.error.message || chunk.error);
      text += chunk.choices[0].delta.content || "";
      found = chunk.explanation || found;
      write(text);
    }
  }
  return { best: [], attention: [], ...found, response: text };
}

// === Long texts and files ===

const LONGEST = 100_000; // characters of a text, the server's default; megabytes in a field would freeze the page

/** What there is to say of a text with `length` characters, if that is too many. */
export const tooLong = (length) => (length > LONGEST ? `A text may have ${LONGEST.toLocaleString("en")} characters at most. Received: ${length.toLocaleString("en")}.` : "");

/** Lets a text file be dropped onto `target` or chosen by the panel's button; `use(text)` may return what there is to say. */
export function acceptFile(state, target, use) {
  const button = state.panel.querySelector("[data-file]");
  const input = element("input", { type: "file", accept: ".txt,.md,text/*", hidden: true, "aria-label": "Text file" });
  const take = async (file) => {
    if (!file) return;
    state.stop();
    state.clear(await file.text().then(use, () => "This file cannot be read."));
    state.changed();
  };
  input.addEventListener("change", () => { take(input.files[0]); input.value = ""; });
  button.after(input);
  button.addEventListener("click", () => input.click());
  for (const kind of ["dragover", "dragleave", "drop"]) {
    target.addEventListener(kind, (event) => {
      if (![...event.dataTransfer.types].includes("Files")) return; // text that is dragged
      event.preventDefault();
      target.classList.toggle("drop", kind === "dragover");
      if (kind === "drop") take(event.dataTransfer.files[0]);
    });
  }
}
