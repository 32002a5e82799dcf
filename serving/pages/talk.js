// Talk, and Book a table: a conversation that the page keeps, so that any replica can answer the next turn.

import { bar, element, explain, percent, stream } from "./common.js";
import { memories, sources } from "./attention.js";

function show(state, who, text, note) {
  const line = element("li", { "data-who": who, dir: "auto" });
  write(line, text, note);
  state.list.append(line);
  line.scrollIntoView({ block: "nearest" });
  return line;
}

function write(line, text, note) {
  line.replaceChildren(text || "(silence)");
  if (note) line.append(element("span", { class: "note" }, note));
}

/** Shows what somebody says and a bubble that waits; `answer(bubble)` fills it. If it fails, the text is to be said again. */
async function exchange(state, said, answer) {
  const own = show(state, "you", said);
  const bubble = show(state, "bot", "…");
  bubble.classList.add("waiting");
  const field = state.fields.text;
  field.value = "";
  try {
    await answer(bubble);
  } catch (failure) {
    own.remove();
    bubble.remove();
    if (!field.value && own.dataset.forgotten == null && !state.restarted) field.value = said;
    throw failure;
  } finally {
    bubble.classList.remove("waiting");
  }
}

function other(state, model, text, best = []) { // what the second model says to the same
  const view = element("section", { class: "view", "aria-label": `Reply of ${model}` }, element("h2", {}, model), element("p", { class: "bubble", dir: "auto" }, text || "(silence)"), ...options(best, "Its best replies", "h3"));
  state.panel.querySelector(".other").replaceChildren(view);
}

function options(best, title, heading = "h2") {
  if (best.length < 2) return [];
  const rows = best.slice(0, 5).map(({ text, score }) => element("li", {}, score >= 0 ? bar(score, percent(score), "probability") : element("span", { class: "bar plain", title: "log probability, as the search ranks" }, score.toFixed(2)), element("span", { dir: "auto" }, text)));
  return [element(heading, {}, title), element("ol", { class: "ranked" }, ...rows)];
}

const base = {
  introduce() {},
  input(state) { return { [this.key]: state.talk, draft: state.fields.text.value }; },
  fill(state, input) {
    const turns = [...(input[this.key] || [])];
    const draft = input.draft ?? (turns.length ? textOf(turns.pop()) : ""); // an example's last turn is ready to be said
    state.restarted = true;
    state.stop();
    state.restarted = false;
    state.talk = turns;
    state.list.replaceChildren();
    let facts = 0;
    turns.forEach((turn, i) => {
      facts = turn.speaker === "fact" ? facts + 1 : 0;
      if (facts) return facts > 1 ? write(state.list.lastChild, `${facts} facts found`) : show(state, "fact", "1 fact found");
      const you = turn.speaker ? turn.speaker === "user" : (turns.length + 1 - i) % 2 === 1;
      return show(state, you ? "you" : "bot", textOf(turn));
    });
    state.fields.text.value = draft;
  },
  begin(state) {
    state.list = state.panel.querySelector(".talk");
    state.panel.querySelector("[data-reset]").addEventListener("click", () => {
      this.fill(state, {});
      state.clear();
      state.changed();
    });
  },
};
const SILENCE = "<SILENCE>";
const textOf = (turn) => { const text = turn.text ?? turn; return text === SILENCE ? "" : text; };

export const generation = {
  ...base,
  key: "turns",
  begin(state) {
    base.begin.call(this, state);
    const adapt = () => { state.fields.temperature.disabled = state.fields.search.value !== "sample"; };
    state.fields.search.addEventListener("change", adapt);
    adapt();
  },
  decode({ search, temperature }) {
    return search.value === "sample" ? `sample=true,temperature=${temperature.value || 0.8},top_p=0.9` : search.value;
  },
  instance(state, said = state.fields.text.value.trim()) {
    return { turns: [...state.talk, said].filter(Boolean), decode: this.decode(state.fields) };
  },
  async submit(state, signal) {
    const said = state.fields.text.value.trim();
    const { turns, decode } = this.instance(state);
    if (!said) throw new Error("Say something first.");
    const [model, second] = state.asked();
    await exchange(state, said, async (bubble) => {
      const beside = second && explain(second, { turns, decode }, signal);
      beside?.catch(() => {});
      const found = await stream(model, turns, decode, (text) => write(bubble, text), signal);
      write(bubble, found.response);
      state.talk = [...turns, found.response];
      state.result.replaceChildren(...options(found.best, "Its best replies"));
      state.answered(state.result);
      state.explanation.replaceChildren(...(found.attention.length ? [sources(found.attention)] : []));
      if (beside) { const theirs = await beside; other(state, second, theirs.response, theirs.best); }
    });
  },
};

export const dialog = {
  ...base,
  key: "history",
  begin(state) {
    base.begin.call(this, state);
    state.fields.find.addEventListener("input", (event) => { event.stopPropagation(); browse(state); });
  },
  introduce(state) { browse(state); },
  instance: (state) => ({ history: [...state.talk, { speaker: "user", text: state.fields.text.value.trim() }] }),
  async submit(state, signal) {
    const { history } = this.instance(state);
    const said = history[history.length - 1].text;
    const [model, second] = state.asked();
    await exchange(state, said, async (bubble) => {
      const beside = second && explain(second, { history }, signal);
      beside?.catch(() => {});
      const found = await explain(model, { history }, signal);
      const facts = found.said.filter((each) => each.speaker === "fact").length;
      const bots = found.said.filter((each) => each.speaker === "bot");
      bots.forEach(({ text }, i) => {
        const note = text.startsWith("api_call ") ? `${facts} facts found` : "";
        if (i) show(state, "bot", text, note); else write(bubble, text, note);
      });
      state.talk = [...history, ...found.said];
      state.result.replaceChildren(...options(found.best, "Most probable responses"));
      state.answered(state.result);
      state.explanation.replaceChildren(...(found.attention.length ? [memories(found.attention)] : []));
      if (beside) { const theirs = await beside; other(state, second, theirs.said.filter((each) => each.speaker === "bot").map((each) => each.text).join(" · "), theirs.best); }
    });
  },
};

function browse(state) {
  const wanted = state.fields.find.value.toLowerCase();
  const shown = (state.details.knowledge || []).filter((fact) => fact.toLowerCase().includes(wanted)).slice(0, 300);
  state.panel.querySelector(".facts").replaceChildren(...shown.map((fact) => element("div", { dir: "auto" }, fact)));
}
