// The service worker of "Try it", in development: the shipped one, and reports to the page of what
// it does.
{
  const worker = /** @type {ServiceWorkerGlobalScope} */ (/** @type {unknown} */ (self))
  const pages = new BroadcastChannel("bellcast-try")

  /** @param {string} kind @param {string} text @param {string} [details] */
  const report = (kind, text, details) => pages.postMessage({ kind, text, details })

  worker.bellcast = {
    name: "Bellcast",
    onpush(content) {
      report("push", `the worker shows “${content.title}”`, JSON.stringify(content))
      return content
    }
  }
  worker.addEventListener("notificationclick", ({ notification }) =>
    report("push", `“${notification.title}” was clicked`)
  )
  worker.addEventListener("pushsubscriptionchange", () =>
    report("push", "the browser changed the subscription")
  )
  const { fetch } = worker
  worker.fetch = async (input, init) => {
    const response = await fetch(input, init)
    report("request", `the worker: ${init?.method ?? "GET"} ${input} ${response.status}`)
    return response
  }
  importScripts("../worker.js")
}
