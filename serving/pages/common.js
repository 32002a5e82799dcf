// What all tabs share: elements, numbers, bars. Text from people and models only becomes
// `textContent`, so that it is never markup.

/** Makes an element; `on...` adds a listener, `--name` sets a custom property. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) {
      made.addEventListener(name.slice(2), value);
    } else if (name.startsWith("--")) {
      made.style.setProperty(name, value);
    } else if (value !== false && value != null) {
      made.setAttribute(name, value === true ? "" : value);
    }
  }
  made.append(...children);
  return made;
}

/** Makes a button that submits nothing. */
export function makeButton(text, onclick, attributes = {}) {
  return element("button", { type: "button", onclick, ...attributes }, text);
}

export function percent(fraction) {
  if (fraction > 0 && fraction < 0.005) return "< 1 %";
  if (fraction > 0.995 && fraction < 1) return "> 99 %";
  return `${Math.round(100 * fraction)} %`;
}

export const formatCount = (count) => count.toLocaleString("en");

/** An error that is mended in `field`, which then has the focus. */
export function fieldError(text, field) {
  return Object.assign(new Error(text), { field });
}

/** Whether two values of JSON are the same. */
export function isSame(first, second) {
  return JSON.stringify(first) === JSON.stringify(second);
}

export function splitLines(text) {
  return text.split("\n").map((line) => line.trim()).filter(Boolean);
}

export function softmax(logits) {
  const most = Math.max(...logits);
  const powers = logits.map((logit) => Math.exp(logit - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

/** A bar that is filled to `fraction`, perhaps with a number on it. */
export function makeBar(fraction, text = "", title = null) {
  return element("span", { class: "bar", title, "--p": `${Math.round(100 * fraction)}%` }, text);
}

/** A list of texts, each with a bar of its `fraction` in front. */
export function makeRanking(rows) {
  const list = element("ol", { class: "ranked" });
  for (const { text, fraction, title } of rows) {
    const shown = element("span", { dir: "auto" }, text);
    list.append(element("li", {}, makeBar(fraction, percent(fraction), title), shown));
  }
  return list;
}

/** A button that shows the hidden items of a list, if it has any: `N more`, then `note`. */
export function makeMore(list, note = "") {
  const rest = [...list.children].filter((item) => item.hidden);
  if (!rest.length) return [];
  const more = makeButton(`${rest.length} more${note}`, () => {
    for (const item of rest) item.hidden = false;
    (rest[0].querySelector("button") || list).focus();
    more.remove();
  }, { class: "quiet" });
  return [more];
}

export function makeHint(text) {
  return element("p", { class: "hint" }, text);
}

/** Says why an answer may not be good, if the server says so. */
export function makeDoubt(text, { good, reason }) {
  return good === false ? [element("p", { class: "remark" }, `${text}: ${reason}.`)] : [];
}

/** Whether an input method composes with a key; 229 is Safari's. */
export function isComposing(event) {
  return event.isComposing || event.keyCode === 229;
}

/** Shows a sentence above the tabs. */
export function showNotice(text) {
  document.getElementById("notice").textContent = text;
}
