// Which URLs of identity providers may be called. Pure.

const loopbackHosts = ["localhost", "127.0.0.1", "[::1]"]

export const isLoopback = (url: URL): boolean => loopbackHosts.includes(url.hostname)

/** Why a setting is no URL of a provider. `http:` is for a provider on this machine. */
export const providerUrlFault = (text: string): string | undefined => {
  // The parser drops blanks and line breaks, which the text keeps where it is compared.
  const url = /^[!-~]+$/.test(text) ? URL.parse(text) : null
  if (url === null || url.username !== "" || url.password !== "" || url.hash !== "")
    return "Expected a URL such as https://login.example.org/path, without a login or a fragment"
  if (url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url))) return undefined
  return "Expected https://; only a provider on this machine may have http://"
}

/**
 * Why a URL from a provider's document must not be called: it must be https. The provider's own
 * origin, which the operator named, may be http on this machine.
 */
export const discoveredUrlFault = (text: unknown, issuer: string): string | undefined => {
  const url = typeof text === "string" ? URL.parse(text) : null
  if (url === null || url.username !== "" || url.password !== "") return "is no URL"
  if (url.origin === new URL(issuer).origin) return undefined
  return url.protocol === "https:" ? undefined : "is not https"
}
