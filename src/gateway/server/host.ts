// Checks the Host header of a request (RFC 9112 section 3.2). Pure.

/** A host name or address, with or without a port (RFC 3986 section 3.2.2). May be empty. */
const host = /^(?:[\w.~!$&'()*+,;=%-]*|\[[0-9A-Fa-f:.]+\])(?::\d*)?$/

/**
 * The name of a wire error, or undefined for a valid Host. Rejects two Host headers: a proxy and
 * this server might choose different ones. `rawHeaders` alternates names and values.
 */
export const hostError = (
  rawHeaders: ReadonlyArray<string>,
  httpVersion: string
): "noHost" | "wrongHost" | undefined => {
  const [value, ...others] = rawHeaders.filter(
    (_, i) => i % 2 === 1 && rawHeaders[i - 1]!.toLowerCase() === "host"
  )
  if (value === undefined) return httpVersion === "1.1" ? "noHost" : undefined
  return others.length === 0 && host.test(value) ? undefined : "wrongHost"
}
