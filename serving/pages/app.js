"use strict";
// One page, no library. Text from people and models only ever becomes `textContent`.

const TASKS = ["selection", "reading_comprehension", "generation", "dialog"];
const models = {}; // task: the metadata of its models

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

async function ask(path, body) {
  let response;
  try {
    response = await fetch(path, body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  } catch {
    setOffline(true);
    throw new Error("The server does not answer.");
  }
  setOffline(false);
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.error || `status ${response.status}`);
  return answer;
}

const predict = async (model, instance) => (await ask(`v1/models/${encodeURIComponent(model)}:predict`, { instances: [instance] })).predictions[0];
const explain = async (model, instance) => (await ask(`v1/models/${encodeURIComponent(model)}:explain`, { instances: [instance] })).explanations[0];

let knocking = null;
function setOffline(offline) {
  document.getElementById("offline").hidden = !offline;
  if (offline && !knocking) {
    knocking = setInterval(() => fetch("healthz").then((r) => r.ok && start()).catch(() => {}), 2000);
  } else if (!offline && knocking) {
    clearInterval(knocking);
    knocking = null;
  }
}

// === Tabs ===

function show(task, focus = false) {
  for (const each of TASKS) {
    const tab = document.getElementById(`tab-${each}`);
    tab.setAttribute("aria-selected", each === task);
    tab.tabIndex = each === task ? 0 : -1;
    document.getElementById(`panel-${each}`).hidden = each !== task;
  }
  if (focus) document.getElementById(`tab-${task}`).focus();
  history.replaceState(null, "", `#${task}`);
}

function onTabKey(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const usable = TASKS.filter((task) => !document.getElementById(`tab-${task}`).disabled);
  const at = usable.indexOf(event.target.id.slice(4));
  const next = Number.isFinite(step) ? (at + step + usable.length) % usable.length : step < 0 ? 0 : usable.length - 1;
  show(usable[next], true);
}

// === Heat maps ===

function heatMap(map) {
  const most = Math.max(...map.weights.flat().map(Math.abs), 1e-9);
  const least = Math.min(...map.weights.flat().map(Math.abs));
  const table = element("table", {}, element("caption", {}, element("span", {}, least > 0.8 * most ? `${map.title}: nothing stands out` : map.title)));
  table.append(element("thead", {}, element("tr", {}, element("td"), ...map.columns.map((word) => element("th", { scope: "col", dir: "auto", title: word }, word)))));
  const body = element("tbody");
  map.weights.forEach((row, i) => {
    const line = element("tr", {}, element("th", { scope: "row", dir: "auto", title: map.rows[i] }, map.rows[i]));
    row.forEach((value, j) => {
      const cell = element("td", { title: `${map.rows[i]} / ${map.columns[j]}: ${value.toFixed(3)}` });
      cell.style.setProperty("--w", Math.abs(value) / most);
      line.append(cell);
    });
    body.append(line);
  });
  table.append(body);
  const shown = element("div", { class: "map", tabindex: 0, role: "region", "aria-label": map.title }, table);
  const columns = map.weights.reduce((best, row) => row.map((value, j) => Math.max(value, best[j])), map.weights[0]);
  const strongest = body.rows[0].cells[1 + columns.indexOf(Math.max(...columns))];
  requestAnimationFrame(() => { shown.scrollLeft = strongest.offsetLeft - shown.clientWidth / 2; });
  return shown;
}

function showMaps(place, maps) {
  place.replaceChildren();
  if (!maps.length) return;
  const drawn = element("div");
  const choice = element("select", { onchange: () => drawn.replaceChildren(heatMap(maps[choice.value])) });
  maps.forEach((map, i) => choice.append(element("option", { value: i }, map.title)));
  place.append(element("label", {}, "What it attended to", choice), drawn);
  drawn.append(heatMap(maps[0]));
}

// === Panels ===

function wire(task, submit) {
  const panel = document.getElementById(`panel-${task}`);
  const form = panel.querySelector("form");
  const state = { panel, form, fields: form.elements, talk: [], metadata: () => models[task].find((m) => m.name === form.elements.model.value) };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("[type=submit]");
    const error = form.querySelector(".error");
    error.textContent = "";
    button.disabled = true;
    try {
      await submit(state);
    } catch (failure) {
      error.textContent = failure.message;
    } finally {
      button.disabled = false;
    }
  });
  form.elements.model.addEventListener("change", () => introduce(state));
  form.elements.example?.addEventListener("change", () => fill(state));
  panel.querySelector("[data-reset]")?.addEventListener("click", () => restart(state));
  panel.querySelector("[data-empty]")?.addEventListener("click", () => {
    form.elements.candidates.value = "";
    form.requestSubmit();
  });
  return state;
}

function introduce(state) {
  const m = state.metadata();
  const split = ["dev", "test", ...Object.keys(m.scores)].find((name) => m.scores[name]);
  const scores = split ? Object.entries(m.scores[split]).slice(0, 4).map(([name, value]) => `${name} ${value.toFixed(3)}`).join(", ") : "not measured";
  state.panel.querySelector(".about").textContent = `${m.model}, trained on ${m.corpus}; ${split || "scores"}: ${scores}.${m.note ? ` ${m.note}` : ""}`;
  const choice = state.fields.example;
  const places = state.panel.querySelector("[data-retrieval]");
  if (places) {
    places.hidden = !m.responses;
    places.textContent = `(none: the best of an index of ${(m.responses || 0).toLocaleString("en")} responses)`;
    state.panel.querySelector("[data-empty]").hidden = !m.responses;
  }
  clear(state);
  const own = state.fields.text ? [element("option", { value: "" }, "none")] : [];
  choice.replaceChildren(...own, ...m.examples.map((example, i) => element("option", { value: i }, example.title || `Example ${i + 1}`)));
  choice.disabled = !m.examples.length;
  fill(state);
}

function fill(state) {
  clear(state);
  const instance = state.metadata().examples[state.fields.example.value]?.instance || {};
  if (state.fields.text) return begin(state, instance.turns || instance.history || []);
  for (const [field, value] of Object.entries(instance)) {
    if (state.fields[field]) state.fields[field].value = Array.isArray(value) ? value.join("\n") : value;
  }
}

function restart(state) {
  state.talk = [];
  state.panel.querySelector(".talk").replaceChildren();
  clear(state);
}

function begin(state, turns) { // what was said before is shown, the last turn stands ready to be said
  restart(state);
  turns.slice(0, -1).forEach((turn, i) => {
    const you = turn.speaker ? turn.speaker === "user" : (turns.length - i) % 2 === 1;
    say(state, you ? "you" : "bot", turn.text ?? turn);
    state.talk.push(turn);
  });
  const last = turns[turns.length - 1];
  state.fields.text.value = last?.text ?? last ?? "";
}

const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);
const percent = (score) => `${Math.max(0, Math.min(100, 100 * score))}%`;
const clear = (state) => ["result", "explanation"].forEach((name) => state.panel.querySelector(`.${name}`)?.replaceChildren());

async function rank(state) {
  const { turns, candidates, model } = state.fields;
  const instance = { turns: lines(turns.value) };
  if (lines(candidates.value).length || !state.metadata().responses) instance.candidates = lines(candidates.value);
  const found = await predict(model.value, instance);
  const shown = found.candidates || instance.candidates;
  const ordered = found.totals || found.logits; // scores tie at 1.000
  const list = element("ol", { class: "ranked" });
  if (!shown.length) throw new Error(found.candidates ? "Nothing in the index has a word of that." : "Give candidate responses, one per line.");
  for (const i of found.order) {
    const score = element("span", { class: "score", title: found.totals ? "logit + 16 x similarity of the questions" : "logit" }, ordered[i].toFixed(2));
    score.style.setProperty("--p", percent(Math.exp(ordered[i] - Math.max(...ordered))));
    const button = element("button", { type: "button", "aria-pressed": "false", onclick: () => explainCandidate(state, instance, shown[i], list, button) }, score, element("span", { dir: "auto" }, shown[i]));
    if (found.said_to) button.append(element("span", { class: "hint", dir: "auto" }, `once said to: ${found.said_to[i].join(" / ")}`));
    list.append(element("li", {}, button));
  }
  state.panel.querySelector(".result").replaceChildren(list);
  await explainCandidate(state, instance, shown[found.order[0]], list, list.querySelector("button"));
}

async function explainCandidate(state, instance, candidate, list, button) {
  for (const each of list.querySelectorAll("button")) each.setAttribute("aria-pressed", each === button);
  const found = await explain(state.fields.model.value, { turns: instance.turns, candidates: [candidate] });
  showMaps(state.panel.querySelector(".explanation"), found.attention);
}

async function read(state) {
  const instance = { passage: state.fields.passage.value, question: state.fields.question.value };
  const found = await explain(state.fields.model.value, instance); // an answer, and what was attended to
  const text = [...instance.passage]; // offsets count characters, not UTF-16 units
  const answer = element("mark", {}, text.slice(found.start, found.end).join(""));
  const passage = element("p", { class: "passage", dir: "auto", tabindex: 0 }, text.slice(0, Math.max(found.start, 0)).join(""), answer, text.slice(Math.max(found.end, 0)).join(""));
  const best = element("ol", { class: "ranked" });
  for (const each of found.n_best || []) {
    const score = element("span", { class: "score" }, each.confidence == null ? each.score.toFixed(2) : `${Math.round(100 * each.confidence)} %`);
    score.style.setProperty("--p", percent(each.confidence == null ? each.probability : each.confidence));
    best.append(element("li", {}, score, element("span", { dir: "auto" }, each.answer)));
  }
  const verdict = found.good === false ? "The text may not answer this. Its best words: " : "Answer: ";
  state.panel.querySelector(".result").replaceChildren(
    element("p", { class: found.good === false ? "doubtful" : "" }, verdict, element("strong", { dir: "auto" }, found.answer || "none found")),
    element("p", { class: "hint" }, remarks(found)), passage, best);
  answer.scrollIntoView({ block: "nearest" });
  showMaps(state.panel.querySelector(".explanation"), found.attention);
}

function remarks(found) {
  const said = found.confidence == null ? ["No scale of confidence: evaluate.py makes one on dev."] : [`Confidence ${Math.round(100 * found.confidence)} %: how many such answers are correct, if the passage answers every second question.`];
  if (found.unknown_percent) said.push(`The model does not know ${found.unknown_percent} % of the words.`);
  return said.join(" ");
}

function say(state, who, text, note) {
  const line = element("li", { "data-who": who, dir: "auto" }, text || "(silence)");
  if (note) line.append(element("span", { class: "note" }, note));
  state.panel.querySelector(".talk").append(line);
  line.scrollIntoView({ block: "nearest" });
}

async function converse(state) {
  const { text, model, search, temperature } = state.fields;
  const said = text.value.trim();
  const instance = { turns: [...state.talk, said] };
  instance.decode = search.value === "sample" ? `sample=true,temperature=${temperature.value || 0.8},top_p=0.9` : search.value;
  const found = await explain(model.value, instance); // one search: a sample drawn twice would be two replies
  say(state, "you", said);
  say(state, "bot", found.response, found.best.length > 1 ? `also: ${found.best.slice(1, 4).map((each) => each.text).join(" · ")}` : "");
  state.talk.push(said, found.response);
  text.value = "";
  text.focus();
  showMaps(state.panel.querySelector(".explanation"), found.attention);
}

async function book(state) {
  const { text, model } = state.fields;
  const user = { speaker: "user", text: text.value.trim() };
  const found = await explain(model.value, { history: [...state.talk, user] });
  say(state, "you", user.text);
  const facts = found.said.filter((each) => each.speaker === "fact").length;
  for (const each of found.said) if (each.speaker === "bot") say(state, "bot", each.text, each.text.startsWith("api_call ") ? `${facts} facts found` : "");
  state.talk.push(user, ...found.said);
  text.value = "";
  text.focus();
  showMaps(state.panel.querySelector(".explanation"), found.attention);
}

function browse(state) {
  const { knowledge } = models.dialog.length ? state.metadata() : {};
  const wanted = state.panel.querySelector("[name=find]").value.toLowerCase();
  const shown = (knowledge || []).filter((fact) => fact.toLowerCase().includes(wanted)).slice(0, 300);
  state.panel.querySelector(".facts").replaceChildren(...shown.map((fact) => element("div", { dir: "auto" }, fact)));
}

// === Start ===

const panels = {
  selection: wire("selection", rank),
  reading_comprehension: wire("reading_comprehension", read),
  generation: wire("generation", converse),
  dialog: wire("dialog", book),
};

let begun = false;
async function start() {
  const found = await ask("v1/models").catch(() => null);
  if (!found || begun) return;
  begun = true;
  for (const task of TASKS) {
    models[task] = found.models.filter((model) => model.task === task);
    const tab = document.getElementById(`tab-${task}`);
    tab.disabled = !models[task].length;
    tab.title = tab.disabled ? "No model of this kind is served" : "";
    if (tab.disabled) continue;
    panels[task].fields.model.replaceChildren(...models[task].map((model) => element("option", { value: model.name }, model.name)));
    introduce(panels[task]);
  }
  if (!tabs().some((tab) => !tab.disabled)) document.querySelector(".about").textContent = "No run is served: only exported models, by REST.";
  browse(panels.dialog);
  const asked = location.hash.slice(1);
  const first = TASKS.find((task) => models[task].length);
  if (first) show(models[asked]?.length ? asked : first);
}

const tabs = () => [...document.querySelectorAll("[role=tab]")];
for (const tab of tabs()) {
  tab.addEventListener("click", () => show(tab.id.slice(4)));
  tab.addEventListener("keydown", onTabKey);
}
document.querySelector("[name=find]").addEventListener("input", () => browse(panels.dialog));
start();
