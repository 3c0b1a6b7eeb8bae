// Shows one page where the launcher cannot be loaded, and keeps nothing else. What a browser
// without a network says, it says better itself.
const page = PAGE, headers = HEADERS;
addEventListener("install", () => skipWaiting());
addEventListener("fetch", (e) => {
  if (e.request.mode !== "navigate" || e.request.method !== "GET" || new URL(e.request.url).pathname !== "/" || !navigator.onLine) return;
  e.respondWith(fetch(e.request).catch(() => new Response(page, { status: 503, headers })));
});
