// In place of a worker that is not wanted any more.
addEventListener("install", () => skipWaiting());
addEventListener("activate", (e) => e.waitUntil(registration.unregister()));
