// The page of the OpenAPI document.

SwaggerUIBundle({ url: "openapi.json", dom_id: "#docs" });
