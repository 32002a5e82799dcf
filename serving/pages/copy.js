// The menu Copy: what was given as a link, or the request that was answered for a program.

import { element } from "./common.js";
import { isLong } from "./link.js";
import { needsKey, pathOf } from "./requests.js";

export async function copyAs(panel, kind) {
  if (kind === "link") panel.remember(false);
  const isCut = kind === "link" && isLong(panel.task.input(panel));
  const place = panel.find(".copied");
  let text;
  try {
    text = write(panel, kind);
  } catch (failure) { // there is no request yet
    place.textContent = failure.message;
    return;
  }
  try {
    await navigator.clipboard.writeText(text);
    const without = "Copied without the text, which is too long for a link.";
    place.replaceChildren(isCut ? without : `Copied: ${kind}.`);
  } catch { // without HTTPS, or refused: to be copied by hand
    const field = element("textarea", { readonly: true, rows: 5 });
    field.setAttribute("aria-label", `Copy as ${kind}`);
    field.value = text;
    place.replaceChildren(field);
    field.select();
  }
}

function write(panel, kind) {
  if (kind === "link") return location.href;
  const { model, instance } = panel.request || nextRequest(panel);
  const body = { instances: [instance] };
  if (kind === "JSON") return JSON.stringify(body, null, 1);
  const page = location.href.split("#")[0];
  const url = new URL(pathOf(model, ":predict"), page).href;
  return kind === "curl" ? writeCurl(url, body) : writePython(url, body);
}

/** Without an answer yet, what would be asked. */
function nextRequest(panel) {
  panel.task.check?.(panel);
  return { model: panel.model, instance: panel.task.instance(panel) };
}

function writeCurl(url, body) {
  const key = needsKey ? ' -H "Authorization: Bearer $COLLOQUY_API_KEY"' : "";
  return `curl${key} --json ${quote(JSON.stringify(body))} ${quote(url)}`;
}

function quote(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function writePython(url, body) {
  const importOs = needsKey ? "import os\n" : "";
  const bearer = '"Bearer " + os.environ["COLLOQUY_API_KEY"]';
  const key = needsKey ? `, "Authorization": ${bearer}` : "";
  return `import json
${importOs}import urllib.request

body = ${JSON.stringify(body, null, 4)}
headers = {"Content-Type": "application/json"${key}}
request = urllib.request.Request(${JSON.stringify(url)}, json.dumps(body).encode(), headers)
print(json.load(urllib.request.urlopen(request)))
`;
}
