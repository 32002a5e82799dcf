// Ask a text: the answer marked in the passage, whose words are shaded by attention.

import { acceptFile, bar, element, explain, percent, tooLong } from "./common.js";
import { chooser, legend, shadeText } from "./attention.js";

export const reading_comprehension = {
  begin(state) {
    acceptFile(state, state.fields.passage, (text) => tooLong(text.length) || this.fill(state, { ...this.input(state), passage: text }));
  },
  fill(state, { passage = "", question = "" }) {
    state.fields.passage.value = passage;
    state.fields.question.value = question;
  },
  input: (state) => ({ passage: state.fields.passage.value, question: state.fields.question.value }),
  instance(state) { return this.input(state); },
  async submit(state, signal) {
    const instance = this.instance(state);
    const names = state.asked();
    const found = await Promise.all(names.map((model) => explain(model, instance, signal)));
    const views = found.map((answer, i) => view(state, instance, answer, names.length > 1 ? names[i] : "Answer"));
    state.result.replaceChildren(...views);
    state.answered(views[0]);
  },
};

function view(state, instance, found, title) {
  const doubtful = found.good === false;
  const truth = state.expected(instance);
  const answer = element("p", { class: doubtful ? "answer doubtful" : "answer" }, doubtful ? "The text may not answer this. Its best words: " : "", element("strong", { dir: "auto" }, found.answer || "none found"));
  if (truth.length) answer.append(" ", truth.includes(found.answer) ? element("span", { class: "truth" }, "✓ correct") : element("span", { class: "truth" }, `correct: ${truth[0]}`));
  const passage = element("p", { class: "passage", dir: "auto", tabindex: 0, role: "region", "aria-label": "Passage with the answer marked" });
  const letters = [...instance.passage]; // offsets count characters, not UTF-16 units
  const unit = (offset) => letters.slice(0, Math.max(offset, 0)).join("").length;
  const marked = [unit(found.start), unit(found.end)];
  const choices = choicesOf(found.attention);
  const draw = (i) => passage.replaceChildren(shadeText(instance.passage, choices[i]?.words || [], choices[i]?.weights || [], marked));
  draw(0);
  requestAnimationFrame(() => { const mark = passage.querySelector("mark"); if (mark) passage.scrollTop = mark.offsetTop - passage.offsetTop - passage.clientHeight / 2; });
  const best = (found.n_best || []).filter((each) => /[\p{L}\p{N}]/u.test(each.answer));
  const rows = best.map((each) => element("li", {}, each.confidence == null ? bar(each.probability, percent(each.probability), "probability within the passage") : bar(each.confidence, percent(each.confidence), "confidence"),
    element("span", { dir: "auto" }, each.answer)));
  return element("section", { class: "view", "aria-label": title }, element("h2", {}, title), answer, element("p", { class: "hint" }, remarks(found)),
    ...(choices.length ? [chooser("Shade by", choices, draw)] : []), passage, ...(choices.length ? [legend("Weight:")] : []),
    ...(best.length > 1 ? [element("h3", {}, "Best answers"), element("ol", { class: "ranked" }, ...rows)] : []));
}

/** What the words of the passage can be shaded by: probabilities, or attention from and to the question. */
function choicesOf(maps) {
  const found = [];
  for (const { title, rows, columns, weights } of maps) {
    if (title === "probabilities") found.push({ text: "first and last word of the answer", words: columns, weights: columns.map((_, j) => Math.max(...weights.map((row) => row[j]))) });
    else if (rows.length === 1) found.push({ text: "attention of the question", words: columns, weights: weights[0] });
    else columns.forEach((word, j) => found.push({ text: word, weight: 0, say: `attention to ${word}`, words: rows, weights: weights.map((row) => row[j]) }));
  }
  return found.sort((a, b) => Boolean(a.say) - Boolean(b.say)); // what concerns one word comes last
}

function remarks(found) {
  const said = found.confidence == null ? ["Confidence unknown: evaluate.py measures it on dev."] : [`Confidence ${percent(found.confidence)}: of 100 such answers about ${Math.round(100 * found.confidence)} are right, if the text answers every second question.`];
  if (found.unknown_percent) said.push(`The model does not know ${found.unknown_percent} % of the words.`);
  return said.join(" ");
}
