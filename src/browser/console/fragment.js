// Takes a login out of the address before anything else loads, so that neither the history nor a
// look at the address bar shows it. The script of the page takes it from here, once.
{
  const logins = ["login", "openid", "portier", "error"]
  const read = () => new URLSearchParams(location.hash.slice(1))
  /** @param {URLSearchParams} given */
  const isLogin = (given) => logins.some((name) => given.has(name))
  const given = isLogin(read()) ? read() : new URLSearchParams()
  if (isLogin(given)) history.replaceState(null, "", location.pathname + location.search)
  const taken = { given: Object.fromEntries(given) }
  // A link that is opened where the console is open already changes the fragment alone. A reload
  // would end the session of a pasted token, which only the memory of this page has.
  addEventListener("hashchange", (event) => {
    const brought = read()
    if (!isLogin(brought)) return
    event.stopImmediatePropagation()
    history.replaceState(null, "", event.oldURL)
    const detail = Object.fromEntries(brought)
    if ("bellcastLogin" in window) taken.given = detail
    else dispatchEvent(new CustomEvent("bellcast-login", { detail }))
  })
  Object.defineProperty(window, "bellcastLogin", {
    configurable: true,
    get: () => {
      delete (/** @type {any} */ (window).bellcastLogin)
      return taken.given
    }
  })
}
