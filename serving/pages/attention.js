// Attention on one absolute scale: words shaded where they are in the text, heat maps, and lists of memories.

import { element } from "./common.js";

const FUNCTION_WORDS = new Set(("a an and are as at be been but by can could did do does for from had has have he her his i if in into is it its me my no nor not of on or "
  + "our she so some than that the their them then there these they this to too up was we were what when which who will with would you your _EOS_").split(" "));
const END = "_EOS_";
export const isFaint = (word) => FUNCTION_WORDS.has(word.toLowerCase()) || !/[\p{L}\p{N}]/u.test(word);

/** Opacity of a weight in [0, 1]: its square root, so that .01 can be seen and a uniform map is pale. */
const depth = (weight) => Math.sqrt(Math.min(1, Math.max(0, weight))).toFixed(3);
/** Opacity of a match in [0, 1]: its cube, as most words match a little. */
const depthOfMatch = (match) => (Math.min(1, Math.max(0, match)) ** 3).toFixed(3);
const shaded = (word, weight, faint = isFaint(word), deep = depth) =>
  element("span", { class: faint ? "word faint" : "word", "--w": deep(weight), title: `${word}: ${weight.toFixed(3)}` }, word);

export function legend(text, deep = depth, steps = [0, 0.01, 0.1, 0.3, 1]) {
  return element("p", { class: "legend" }, `${text} `, ...steps.map((weight) => element("span", { class: "word", "--w": deep(weight) }, String(weight))));
}

/** A text whose words are shaded: `words` are found one after the other, their weights beside them. */
export function shadeText(text, words, weights, marked = [0, 0]) {
  const found = placesOf(text, words);
  const pieces = element("span");
  const mark = element("mark");
  let done = 0;
  const add = (end, make) => { // cut where the mark begins and ends
    for (const stop of [...marked.filter((cut) => cut > done && cut < end), end]) {
      const place = done >= marked[0] && stop <= marked[1] ? mark : pieces;
      if (place === mark && !mark.parentNode) pieces.append(mark);
      if (stop > done) place.append(make(text.slice(done, stop)));
      done = stop;
    }
  };
  for (const [i, [start, end]] of found.entries()) {
    add(start, (part) => part);
    add(end, (part) => shaded(part, weights[i], false));
  }
  add(text.length, (part) => part);
  return pieces;
}

/** Where words are that follow each other, with space or signs between: of a long text, only a window was read. Else nowhere. */
function placesOf(text, words) {
  const lower = text.toLowerCase().length === text.length ? text.toLowerCase() : text;
  const wanted = words.map((word) => (lower === text ? word : word.toLowerCase()));
  for (let from = lower.indexOf(wanted[0]); wanted.length && from >= 0; from = lower.indexOf(wanted[0], from + 1)) {
    const places = [];
    let at = from;
    for (const word of wanted) {
      while (at < lower.length && !lower.startsWith(word, at) && !/[\p{L}\p{N}]/u.test(lower[at])) at += 1;
      if (!lower.startsWith(word, at)) break;
      places.push([at, at += word.length]);
    }
    if (places.length === wanted.length) return places;
  }
  return [];
}

/** Buttons, one of which is pressed; `choices` are `{text, weight, say}`. */
export function chooser(label, choices, pick, deep = depth) {
  const buttons = choices.map(({ text, weight, say }, i) => element("button", {
    type: "button", class: weight == null ? "chip whole" : isFaint(text) ? "chip word faint" : "chip word", "aria-pressed": String(i === 0), "aria-label": say,
    "--w": weight == null ? null : deep(weight),
    onclick: () => { buttons.forEach((each, n) => each.setAttribute("aria-pressed", n === i)); pick(i); },
  }, text));
  return element("div", { class: "chooser", role: "group", "aria-label": label }, element("span", { class: "hint" }, label), ...buttons);
}

/** Turns as bubbles, the last one of `sides[1]`, whose words are shaded by a choice: `weightOf(i, t, k)` is the weight of word `k` of turn `t` under the choice `i`. */
function turnsBy(title, label, choices, sides, turns, weightOf, scale, maps, deep = depth) {
  const place = element("ol", { class: "turns shown" });
  const draw = (i) => place.replaceChildren(...turns.map((words, t) => element("li", { "data-who": sides[(turns.length - t) % 2], dir: "auto" },
    ...words.flatMap((word, k) => [shaded(word, weightOf(i, t, k), isFaint(word), deep), " "]))));
  draw(0);
  return element("section", { class: "view", "aria-label": title }, element("h2", {}, title), chooser(label, choices, draw, deep), place, scale, asTable(maps, deep));
}

/** The matches of a response with the words of each turn: of one word of the response, or the strongest of all. */
export function matches(maps) {
  const response = maps[0].columns;
  const strongest = response.map((_, j) => Math.max(...maps.flatMap((map) => map.weights.map((row) => row[j]))));
  const choices = [{ text: "all words" }, ...response.map((text, j) => ({ text, weight: strongest[j], say: `matches of ${text}` }))];
  const weightOf = (i, t, k) => (i ? maps[t].weights[k][i - 1] : Math.max(...maps[t].weights[k]));
  return turnsBy("What matched", "Response:", choices, ["you", "them"], maps.map((map) => map.rows), weightOf, legend("Match (1 is the strongest):", depthOfMatch, [0, 0.25, 0.5, 0.75, 1]), maps, depthOfMatch);
}

/** A reply's attention to the source: of one word of the reply, or the mean of all. */
export function sources([map]) {
  const { rows, columns, weights } = map;
  const turns = [[]];
  columns.forEach((word, j) => (word === END && j < columns.length - 1 ? turns[turns.length - 1].push(j) && turns.push([]) : turns[turns.length - 1].push(j)));
  const mean = columns.map((_, j) => weights.reduce((sum, row) => sum + row[j], 0) / weights.length);
  const shown = (word) => (word === END ? "(end)" : word);
  const choices = [{ text: "mean" }, ...rows.map((text) => ({ text: shown(text), weight: 0, say: `attention while writing ${shown(text)}` }))];
  return turnsBy("What it attended to", "While writing:", choices, ["them", "you"], turns.map((turn) => turn.map((j) => shown(columns[j]))), (i, t, k) => (i ? weights[i - 1] : mean)[turns[t][k]],
    legend("Weight (sum 1 per word):"), [{ ...map, rows: rows.map(shown), columns: columns.map(shown) }]);
}

/** A memory network's attention: the sentences in memory, and the weight that each hop gives them. */
export function memories([map]) {
  const most = map.weights.map((row) => Math.max(...row));
  const limit = [...most].sort((a, b) => b - a)[Math.min(most.length, 10) - 1];
  const rows = map.rows.map((text, i) => element("tr", { hidden: most[i] < limit }, element("th", { scope: "row", dir: "auto" }, text),
    ...map.weights[i].map((weight) => element("td", { class: "word", "--w": depth(weight) }, weight.toFixed(2)))));
  const rest = rows.filter((row) => row.hidden);
  const all = element("button", { type: "button", class: "quiet", onclick: () => { rest.forEach((row) => { row.hidden = false; }); all.previousElementSibling.focus(); all.remove(); } }, `Show ${rest.length} more, with smaller weights`);
  return element("section", { class: "view", "aria-label": "What it remembered" }, element("h2", {}, "What it remembered"),
    element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Sentences in memory" }, element("table", { class: "memories" },
      element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "sentence in memory"), ...map.columns.map((hop) => element("th", { scope: "col" }, hop)))),
      element("tbody", {}, ...rows))),
    ...(rest.length ? [all] : []), legend("Weight (sum 1 per hop):"));
}

function asTable(maps, deep = depth) {
  const drawn = element("div");
  const choice = element("select", { "aria-label": "Map", onchange: () => drawn.replaceChildren(heatMap(maps[choice.value], deep)) });
  maps.forEach((map, i) => choice.append(element("option", { value: i, selected: i === maps.length - 1 }, map.title)));
  return element("details", { class: "table", ontoggle: () => drawn.children.length || choice.dispatchEvent(new Event("change")) },
    element("summary", {}, "As a table"), ...(maps.length > 1 ? [choice] : []), drawn);
}

/** The longer side runs downwards, so that the page scrolls and not the map. */
function heatMap({ title, rows, columns, weights }, deep) {
  if (columns.length > rows.length) [rows, columns, weights] = [columns, rows, columns.map((_, j) => weights.map((row) => row[j]))];
  const label = (scope, word) => element("th", { scope, dir: "auto", class: isFaint(word) ? "faint" : null }, element("span", {}, word));
  return element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title }, element("table", { class: "map" },
    element("thead", {}, element("tr", {}, element("td"), ...columns.map((word) => label("col", word)))),
    element("tbody", {}, ...rows.map((word, i) => element("tr", {}, label("row", word),
      ...weights[i].map((weight, j) => element("td", { class: isFaint(word) || isFaint(columns[j]) ? "word faint" : "word", "--w": deep(weight), title: `${word} / ${columns[j]}: ${weight.toFixed(3)}` })))))));
}
