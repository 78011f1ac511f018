// A browser as far as its cookies go: it keeps those of responses, and sends them.

/** A GET with these cookies, which follows no redirect. */
export const get = (url: string, cookies: ReadonlyMap<string, string>, accept = "*/*") =>
  fetch(url, {
    redirect: "manual",
    headers: { accept, cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; ") }
  })

/** Keeps the cookies of a response. Returns where it leads. */
export const keep = (response: Response, cookies: Map<string, string>): string => {
  for (const text of response.headers.getSetCookie()) {
    const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(text) ?? []
    if (value === "") cookies.delete(name)
    else cookies.set(name, value)
  }
  return response.headers.get("location") ?? ""
}

/** Follows redirects within an origin. Returns the first URL outside. */
export const follow = async (
  from: string,
  origin: string,
  cookies: Map<string, string>
): Promise<URL> => {
  let location = from
  for (let i = 0; i < 6 && new URL(location).origin === origin; i += 1)
    location = new URL(keep(await get(location, cookies), cookies), origin).href
  return new URL(location)
}

/**
 * A browser that was sent to a provider when it began a login, and is sent back by it. `cookies`:
 * those of the beginning.
 */
export const returnedFrom = async (begun: Response, issuer: string) => {
  const cookies = new Map<string, string>()
  const first = keep(begun, cookies)
  const location = await follow(first, issuer, new Map())
  return { begun, first: new URL(first), location, cookies }
}
