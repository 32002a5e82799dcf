// Long texts and files.

import { element, formatCount } from "./common.js";

let longest = 100_000; // characters of a text; the server says its own limit

export function setLongest(characters) {
  longest = characters;
}

/** What is wrong with a text of `length` characters: that it is too long, or nothing. */
export function tooLong(length) {
  if (length <= longest) return "";
  const most = formatCount(longest);
  return `The text is too long: ${most} characters at most, this one has ${formatCount(length)}.`;
}

/**
 * Lets a text file be dropped onto `target` or chosen by the panel's button. `use(text)` may return
 * what is wrong with it. If it takes the text, it calls `panel.forgetExample()`.
 */
export function acceptFile(panel, target, use) {
  const button = panel.find("[data-file]");
  const input = element("input", { type: "file", accept: ".txt,.md,text/*", hidden: true });
  input.setAttribute("aria-label", "Text file");
  const take = async (file) => {
    if (!file) return;
    panel.stop();
    panel.clear();
    const problem = await file.text().then(use, () => "This file cannot be read.");
    panel.changed();
    panel.say(problem);
  };
  input.addEventListener("change", () => {
    take(input.files[0]);
    input.value = "";
  });
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
