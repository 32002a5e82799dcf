// A memory network's attention: bars beside the sentences in memory.

import { element, makeHint, makeMore, percent } from "./common.js";

const SHOWN = 8; // sentences, before "more"

/**
 * A bar for each hop beside each sentence; those with the largest weights, in their order. Where no
 * sentence has twice its share, one line says so instead, as /explain of chat.py does.
 */
export function showMemories({ rows, columns, weights }) {
  const most = weights.map((row) => Math.max(...row));
  if (rows.length > 1 && Math.max(...most) < 2 / rows.length) {
    const share = percent(1 / rows.length);
    return [makeHint(`Attention is flat here: each of ${rows.length} sentences has about ${share}.`)];
  }
  const byWeight = most.map((_, i) => i).sort((i, j) => most[j] - most[i]);
  const shown = new Set(byWeight.slice(0, SHOWN));
  const scale = Math.max(...most);
  const items = rows.map((text, i) => {
    const item = makeMemory(text, columns, weights[i], scale);
    item.hidden = !shown.has(i);
    return item;
  });
  const label = "Sentences in memory";
  const list = element("ol", { class: "memories", tabindex: 0, "aria-label": label });
  list.append(...items);
  const hops = columns.length === 1 ? "" : `, one for each of ${columns.length} hops`;
  const hint = makeHint(`Bars: the share of attention${hops}.`);
  return [list, ...makeMore(list, ", with smaller weights"), hint];
}

function makeMemory(text, hops, weights, scale) {
  const [speaker, sentence] = splitSpeaker(text);
  const bars = element("span", { class: "hops" });
  weights.forEach((weight, hop) => {
    const title = `${hops[hop]}: ${percent(weight)}`;
    const width = `${Math.round((100 * weight) / scale)}%`;
    bars.append(element("span", { class: "hop", "--p": width, title }));
  });
  const said = weights.map((weight, hop) => `${hops[hop]} ${percent(weight)}`).join(", ");
  bars.setAttribute("role", "img");
  bars.setAttribute("aria-label", said);
  const number = element("span", { class: "number" }, percent(Math.max(...weights)));
  const words = element("span", { dir: "auto" }, element("span", { class: "hint" }, speaker), " ");
  words.append(sentence);
  return element("li", {}, bars, number, words);
}

/** The speaker and the sentence of `user: <SILENCE>`. */
function splitSpeaker(text) {
  const colon = text.indexOf(": ");
  const speaker = text.slice(0, colon).replace("user", "you");
  const sentence = text.slice(colon + 2).replace("<SILENCE>", "");
  return [speaker, sentence || "(silence)"];
}
