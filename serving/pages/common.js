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

// === Requests ===

const whenBack = [];
let knocking = null;
export const onceBack = (call) => whenBack.push(call);

function setOffline(offline) {
  document.getElementById("offline").hidden = !offline;
  if (offline && !knocking) {
    knocking = setInterval(() => fetch("healthz").then((r) => { if (r.ok) { setOffline(false); whenBack.forEach((call) => call()); } }).catch(() => {}), 2000);
  } else if (!offline && knocking) {
    clearInterval(knocking);
    knocking = null;
  }
}

async function send(path, body, signal) {
  const request = { signal, ...(body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }) };
  let response;
  try {
    response = await fetch(path, request);
  } catch (failure) {
    if (failure.name === "AbortError") throw failure;
    setOffline(true);
    throw new Error("The server does not answer.");
  }
  setOffline(false);
  if (response.ok) return response;
  const { error } = await response.json().catch(() => ({}));
  throw Object.assign(new Error(error?.message || error || `status ${response.status}`), { status: response.status });
}

/** The answer to a request, parsed; once `signal` is aborted it is an AbortError, even if the answer has arrived. */
export async function ask(path, body, signal) {
  const answer = await (await send(path, body, signal)).json();
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
    const { done, value } = await reader.read();
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

// === Files ===

/** Lets a text file be dropped onto `target` or chosen by `button`; calls `use(text)`. */
export function acceptFile(target, button, use) {
  const input = element("input", { type: "file", accept: ".txt,.md,text/*", hidden: true, "aria-label": "Text file" });
  const take = async (file) => file && use(await file.text());
  input.addEventListener("change", () => take(input.files[0]).then(() => { input.value = ""; }));
  button.after(input);
  button.addEventListener("click", () => input.click());
  target.addEventListener("dragover", (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    target.classList.add("drop");
  });
  target.addEventListener("dragleave", () => target.classList.remove("drop"));
  target.addEventListener("drop", (event) => {
    target.classList.remove("drop");
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    take(event.dataTransfer.files[0]);
  });
}
