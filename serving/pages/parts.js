// Puts the markup that the tabs share, the templates `part-NAME`, in the place of each element `data-part="NAME"`.
// Children of such an element join the first row of its part. Imported before all modules that look for elements.

for (const place of document.querySelectorAll("[data-part]")) {
  const part = document.getElementById(`part-${place.dataset.part}`).content.cloneNode(true);
  part.querySelector(".row")?.append(...place.children);
  place.replaceWith(part);
}
