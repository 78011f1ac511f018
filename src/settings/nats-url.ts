// What may stand in BELLCAST_NATS_URL. A password in it that is not escaped is cut in pieces by the URL parser, and one would be taken for the host.

const schemes = ["nats:", "tls:"]
/** Without an example that the log would take for a URL and cut. */
const form =
  "host:port or user:password@host:port, comma-separated, nats:// or tls:// before it; in a password all but letters and digits is %XX"

/** The addresses of a list, each with its scheme. */
export const natsUrls = (list: string): ReadonlyArray<string> =>
  list.split(",").map((one) => (one.includes("://") ? one.trim() : `nats://${one.trim()}`))

const isEscaped = (text: string): boolean => {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

const isAddress = (one: string): boolean => {
  const url = URL.parse(one)
  if (url === null || !schemes.includes(url.protocol) || url.hostname === "") return false
  return (
    /^\/?$/.test(url.pathname) &&
    url.search === "" &&
    url.hash === "" &&
    isEscaped(url.username) &&
    isEscaped(url.password)
  )
}

/** Why a list cannot be used; quotes nothing of it. */
export const natsUrlFault = (list: string): string | undefined =>
  natsUrls(list).every(isAddress) ? undefined : `Expected ${form}`
