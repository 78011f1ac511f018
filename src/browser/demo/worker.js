// The demo's service worker: the shipped one, with a name.
{
  const worker = /** @type {ServiceWorkerGlobalScope} */ (/** @type {unknown} */ (self))
  worker.bellcast = { name: "Bellcast's demo" }
  importScripts("../worker.js")
}
