navigator.serviceWorker?.register("/worker.js", { updateViaCache: "none" }).catch(() => {});
