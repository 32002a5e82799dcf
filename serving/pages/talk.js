// Talk, and Book a table: a conversation that the page keeps, so that any replica can answer the next turn.

import { ask, bar, composes, element, explain, pathOf, percent, stream } from "./common.js";
import { memories, sources } from "./attention.js";

/** Shows a bubble; `at` is the place in the talk of what one said oneself, which can be edited. */
function show(state, who, text, note, at) {
  const line = element("li", { "data-who": who, dir: "auto" });
  write(line, text, note);
  if (at != null) line.append(element("button", { type: "button", class: "edit", "aria-label": `Edit “${text.slice(0, 40)}”`, title: "Edit, and continue from here", onclick: () => edit(state, line, text, at) }));
  state.list.append(line);
  line.scrollIntoView({ block: "nearest" });
  return line;
}

function write(line, text, note) {
  line.replaceChildren(text || "(silence)");
  if (note) line.append(element("span", { class: "note" }, note));
}

/** A field in the place of a bubble; once sent, the talk ends before it and continues with its text. */
function edit(state, line, text, at) {
  const bubble = [...line.childNodes];
  const field = element("textarea", { rows: 1, dir: "auto", "aria-label": "What you said", enterkeyhint: "send" });
  const cancel = () => { line.replaceChildren(...bubble); line.querySelector("button").focus(); };
  const button = (name, onclick, isSent) => element("button", { type: "button", class: "quiet", "data-send": isSent, onclick }, name);
  field.value = text;
  field.addEventListener("keydown", (event) => { if (event.key === "Escape" && !composes(event)) cancel(); });
  line.replaceChildren(field, button("Say this instead", () => state.submit({ line, at, said: field.value.trim() }), true), button("Cancel", cancel));
  field.focus();
}

/** Shows what somebody says and a bubble that waits; `answer(bubble)` fills it. If it fails, all is as before. */
async function exchange(state, { line, at, said }, answer) {
  const { talk, list, fields: { text: field } } = state;
  const lines = [...list.children];
  const cut = line ? lines.slice(lines.indexOf(line)) : [];
  cut.forEach((each) => each.remove());
  const own = show(state, "you", said, "", at);
  const bubble = show(state, "bot", "…");
  bubble.setAttribute("aria-busy", true);
  if (line) field.focus();
  else field.value = "";
  try {
    await answer(bubble);
  } catch (failure) {
    if (state.talk === talk) { // neither answered nor started again
      own.remove();
      bubble.remove();
      list.append(...cut);
      if (!line && !field.value) field.value = said;
    }
    throw failure;
  } finally {
    bubble.removeAttribute("aria-busy");
  }
}

function options({ title, drawn, scale }, best, heading = "h2") {
  if (best.length < 2) return [];
  const rows = best.slice(0, 5).map(({ text, score }) => element("li", {}, drawn(score), element("span", { dir: "auto" }, text)));
  return [element("section", { class: "view" }, element(heading, {}, title), element("ol", { class: "ranked" }, ...rows), element("p", { class: "hint" }, scale))];
}

const draft = (state) => ({ at: state.talk.length, said: state.fields.text.value.trim() });
const SILENCE = "<SILENCE>"; // the user's; of a silence in which the bot continues the text is empty
const textOf = (turn) => { const text = turn.text ?? turn; return text === SILENCE ? "" : text; };
const factsFound = (count) => `${count} ${count === 1 ? "fact" : "facts"} found`;

const base = {
  input(state) { return { [this.key]: state.talk, draft: state.fields.text.value }; },
  fill(state, input) {
    const turns = [...(input[this.key] || [])];
    const text = input.draft ?? (turns.length ? textOf(turns.pop()) : ""); // an example's last turn is ready to be said
    state.stop();
    state.talk = turns;
    state.list.replaceChildren();
    turns.forEach((turn, i) => {
      const isOwn = turn.speaker ? turn.speaker === "user" : (turns.length + 1 - i) % 2 === 1;
      const isAfterFacts = turns[i - 1]?.speaker === "fact";
      if (turn.speaker === "fact" || turn.text === "" || (isAfterFacts && !textOf(turn))) return;
      const facts = turns.slice(i + 1).findIndex(({ speaker }) => speaker !== "fact");
      show(state, isOwn ? "you" : "bot", textOf(turn), facts > 0 && factsFound(facts), isOwn ? i : null);
    });
    state.fields.text.value = text;
  },
  begin(state) {
    state.list = state.panel.querySelector(".talk");
    state.panel.querySelector("[data-reset]").addEventListener("click", () => {
      this.fill(state, {});
      state.clear();
      state.changed();
    });
  },
  async submit(state, signal, next = draft(state)) {
    if (!next.said && !this.isSilenceSaid) throw new Error("Say something first.");
    const instance = this.instance(state, next);
    const [model, second] = state.asked();
    await exchange(state, next, async (bubble) => {
      const beside = second && explain(second, instance, signal);
      beside?.catch(() => {}); // it is awaited below
      const found = await this.reply(state, model, instance, bubble, signal);
      state.result.replaceChildren(...options(this, found.best));
      state.answered(state.result);
      state.explanation.replaceChildren(...(found.attention.length ? [this.map(found.attention)] : []));
      if (!beside) return;
      const theirs = await beside;
      const text = theirs.said ? spoken(theirs).join(" · ") : theirs.response;
      state.panel.querySelector(".other").replaceChildren(element("section", { class: "view", "aria-label": `Reply of ${second}` },
        element("h2", {}, second), element("p", { class: "bubble", dir: "auto" }, text || "(silence)"), ...options(this, theirs.best, "h3")));
    });
  },
};

export const generation = {
  ...base,
  key: "turns",
  title: "Best replies",
  drawn: (score) => element("span", { class: "bar plain" }, score.toFixed(2)),
  scale: "Log probability, as the search ranks: higher is better.",
  map: sources,
  begin(state) {
    base.begin.call(this, state);
    const adapt = () => { state.fields.temperature.disabled = state.fields.search.value !== "sample"; };
    state.fields.search.addEventListener("change", adapt);
    adapt();
  },
  instance(state, { at, said } = draft(state)) {
    const { search, temperature } = state.fields;
    const decode = search.value === "sample" ? `sample=true,temperature=${temperature.value || 0.8},top_p=0.9` : search.value;
    return { turns: [...state.talk.slice(0, at), said], decode };
  },
  async reply(state, model, { turns, decode }, bubble, signal) {
    const found = await stream(model, turns, decode, (text) => write(bubble, text), signal);
    write(bubble, found.response);
    state.talk = [...turns, found.response];
    return found;
  },
};

const spoken = ({ said }) => said.filter(({ speaker }) => speaker === "bot").map(({ text }) => text);

export const dialog = {
  ...base,
  key: "history",
  title: "Most probable responses",
  drawn: (score) => bar(score, percent(score)),
  scale: "Probability among all responses that the model knows.",
  isSilenceSaid: true,
  map: memories,
  begin(state) {
    base.begin.call(this, state);
    state.fields.find.addEventListener("input", () => browse(state));
    state.fields.find.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); }); // nothing is said
  },
  introduce(state, { name }) {
    state.knowledge = [];
    browse(state);
    if (name) ask(pathOf(name, "/knowledge")).then(({ knowledge }) => { if (state.details.name === name) { state.knowledge = knowledge; browse(state); } }, (failure) => state.say(failure.message));
  },
  instance: (state, { at, said } = draft(state)) => ({ history: [...state.talk.slice(0, at), { speaker: "user", text: said || SILENCE }] }),
  async reply(state, model, { history }, bubble, signal) {
    const found = await explain(model, { history }, signal);
    const facts = found.said.filter(({ speaker }) => speaker === "fact").length;
    for (const [i, text] of spoken(found).entries()) write(i ? show(state, "bot", "") : bubble, text, text.startsWith("api_call ") && factsFound(facts));
    state.talk = [...history, ...found.said];
    return found;
  },
};

function browse(state) {
  const wanted = state.fields.find.value.toLowerCase();
  const shown = state.knowledge.filter((fact) => fact.toLowerCase().includes(wanted)).slice(0, 300);
  state.panel.querySelector(".facts").replaceChildren(...shown.map((fact) => element("div", { dir: "auto" }, fact)));
}
