// Attention on one absolute scale: words shaded where they are in the text, and heat maps.

import { element, makeButton } from "./common.js";

export const END = "_EOS_";

/**
 * Opacity of a weight in [0, 1]: its square root, so that .01 can be seen and a uniform map is
 * pale.
 */
function weightDepth(weight) {
  return Math.sqrt(clip(weight)).toFixed(3);
}

/** Opacity of a match in [0, 1]: its cube, as most words match a little. */
function matchDepth(match) {
  return (clip(match) ** 3).toFixed(3);
}

function clip(value) {
  return Math.min(1, Math.max(0, value));
}

function shadeWord(word, weight, depth) {
  const title = `${word}: ${weight.toFixed(3)}`;
  return element("span", { class: "word", "--w": depth(weight), title }, word);
}

export const WEIGHTS = { text: "Weight:", steps: [0, 0.01, 0.1, 0.3, 1], depth: weightDepth };
export const MATCHES = { text: "Match:", steps: [0, 0.25, 0.5, 0.75, 1], depth: matchDepth };

export function makeLegend({ text, steps, depth }) {
  const legend = element("p", { class: "legend" }, element("span", { class: "hint" }, text));
  for (const step of steps) {
    legend.append(element("span", { class: "word", "--w": depth(step) }, String(step)));
  }
  return legend;
}

/**
 * Buttons, one of which is pressed. A choice has a `text`, perhaps `say` for screen readers, and a
 * `weight` if it is a word.
 */
export function makeChooser(label, choices, pick, depth = weightDepth) {
  const buttons = choices.map(({ text, weight, say }, i) => {
    const isWord = weight != null;
    return makeButton(text, () => press(i), {
      class: isWord ? "chip word" : "chip",
      "aria-pressed": String(i === 0),
      "aria-label": say,
      "--w": isWord ? depth(weight) : null,
    });
  });
  const press = (number) => {
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", i === number));
    pick(number);
  };
  const name = element("span", { class: "hint" }, label);
  return element("div", { class: "chooser", role: "group", "aria-label": label }, name, ...buttons);
}

// === A text ===

/**
 * A text whose words are shaded: `words` follow each other in it, their weights beside them. The
 * part from `marked[0]` to `marked[1]` is marked. What is not in `window` is dimmed.
 */
export function shadeText(text, words, weights, marked, window) {
  const places = findWords(text, words, window[0]);
  const cuts = new Set([0, text.length, ...marked, ...window, ...places.flat()]);
  const ends = [...cuts].sort((a, b) => a - b);
  const shown = element("span");
  const mark = element("mark");
  for (let i = 1; i < ends.length; i += 1) {
    const [start, end] = [ends[i - 1], ends[i]];
    const part = text.slice(start, end);
    const place = places.findIndex(([first, last]) => first <= start && end <= last);
    const isUnread = start < window[0] || end > window[1];
    let node = part;
    if (place >= 0) node = shadeWord(part, weights[place], weightDepth);
    else if (isUnread) node = element("span", { class: "unread" }, part);
    const isMarked = start >= marked[0] && end <= marked[1];
    if (isMarked && !mark.parentNode) shown.append(mark);
    (isMarked ? mark : shown).append(node);
  }
  return shown;
}

/** Places `[start, end]` of words that follow each other from `begin` on, or none. */
function findWords(text, words, begin) {
  const isSameLength = text.toLowerCase().length === text.length;
  const lower = isSameLength ? text.toLowerCase() : text;
  const wanted = isSameLength ? words.map((word) => word.toLowerCase()) : words;
  if (!wanted.length) return [];
  let from = lower.indexOf(wanted[0], begin);
  while (from >= 0) {
    const places = followWords(lower, wanted, from);
    if (places) return places;
    from = lower.indexOf(wanted[0], from + 1);
  }
  return [];
}

function followWords(text, words, from) {
  const places = [];
  let end = from;
  for (const word of words) {
    while (end < text.length && !text.startsWith(word, end)) {
      if (/[\p{L}\p{N}]/u.test(text[end])) return null;
      end += 1;
    }
    if (end >= text.length) return null;
    places.push([end, end + word.length]);
    end += word.length;
  }
  return places;
}

// === A conversation ===

/**
 * Turns as bubbles whose words are shaded by a choice.
 *
 *   label, choices   of `makeChooser`
 *   turns            lists of words; the last turn is `lastIs`, "you" or "them"
 *   weightOf         function of a choice, a turn and a word: its weight
 *   scale            WEIGHTS or MATCHES
 *   maps             for the table
 */
export function shadeTurns({ label, choices, turns, lastIs, weightOf, scale, maps }) {
  const list = element("ol", { class: "turns shown" });
  const other = lastIs === "you" ? "them" : "you";
  const draw = (choice) => {
    const items = turns.map((words, t) => {
      const isLike = (turns.length - t) % 2 === 1;
      const item = element("li", { "data-who": isLike ? lastIs : other, dir: "auto" });
      words.forEach((word, k) => {
        item.append(shadeWord(word, weightOf(choice, t, k), scale.depth), " ");
      });
      return item;
    });
    list.replaceChildren(...items);
  };
  draw(0);
  const chooser = makeChooser(label, choices, draw, scale.depth);
  return [chooser, list, makeLegend(scale), makeTable(maps, scale.depth)];
}

// === Tables ===

function makeTable(maps, depth) {
  const place = element("div");
  const choice = element("select", { "aria-label": "Map" });
  maps.forEach(({ title }, i) => choice.append(element("option", { value: i }, title)));
  choice.value = maps.length - 1;
  const draw = () => place.replaceChildren(makeHeatMap(maps[choice.value], depth));
  choice.addEventListener("change", draw);
  const table = element("details", { class: "table" }, element("summary", {}, "As a table"));
  if (maps.length > 1) table.append(choice);
  table.append(place);
  table.addEventListener("toggle", () => {
    if (!place.children.length) draw();
  });
  return table;
}

/** The longer side runs downwards, so that the page scrolls and not the map. */
function makeHeatMap(map, depth) {
  const { title, rows, columns, weights } = lengthen(map);
  const head = element("tr", {}, element("td"));
  for (const word of columns) head.append(makeLabel("col", word));
  const body = element("tbody");
  rows.forEach((word, i) => {
    const row = element("tr", {}, makeLabel("row", word));
    weights[i].forEach((weight, j) => {
      const said = `${word} / ${columns[j]}: ${weight.toFixed(3)}`;
      row.append(element("td", { class: "word", "--w": depth(weight), title: said }));
    });
    body.append(row);
  });
  const table = element("table", { class: "map" }, element("thead", {}, head), body);
  const region = { class: "scroll", tabindex: 0, role: "region", "aria-label": title };
  return element("div", region, table);
}

function lengthen({ title, rows, columns, weights }) {
  if (columns.length <= rows.length) return { title, rows, columns, weights };
  const turned = columns.map((_, j) => weights.map((row) => row[j]));
  return { title, rows: columns, columns: rows, weights: turned };
}

function makeLabel(scope, word) {
  return element("th", { scope, dir: "auto" }, element("span", {}, word));
}
