// Lets a page of a test read and change what src/browser/README.md says is stored on the device.

export const inStore = (mode, use) =>
  new Promise((resolve, reject) => {
    const opening = indexedDB.open("bellcast", 1)
    opening.onupgradeneeded = () => opening.result.createObjectStore("state")
    opening.onerror = () => reject(opening.error)
    opening.onsuccess = () => {
      const request = use(opening.result.transaction("state", mode).objectStore("state"))
      request.onerror = () => reject(request.error)
      request.onsuccess = () => resolve(request.result)
      opening.result.close()
    }
  })

/** The record of the worker at a path. */
export const record = (at = "/") =>
  inStore("readonly", (states) => states.get(location.origin + at))

export const change = async (members, at = "/") => {
  const before = await record(at)
  await inStore("readwrite", (states) =>
    states.put({ ...before, ...members }, location.origin + at)
  )
}
