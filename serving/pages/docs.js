// The page of the OpenAPI document, dark where the browser is.

const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
document.documentElement.classList.toggle("dark-mode", isDark);
SwaggerUIBundle({ url: "openapi.json", dom_id: "#docs" });
