// Checks the headers of a request that may stand there once: Host (RFC 9112 section 3.2) and
// Authorization (RFC 9110 section 5.3). Pure.

/** A host name or address, with or without a port (RFC 3986 section 3.2.2). May be empty. */
const host = /^(?:[\w.~!$&'()*+,;=%-]*|\[[0-9A-Fa-f:.]+\])(?::\d*)?$/

/**
 * The code of the error, or undefined for a valid head. Rejects what stands there twice: a proxy
 * and this server might choose different ones. `rawHeaders` alternates names and values.
 */
export const headError = (
  rawHeaders: ReadonlyArray<string>,
  httpVersion: string
): "no-host" | "wrong-host" | "two-authorizations" | undefined => {
  const valuesOf = (name: string) =>
    rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]!.toLowerCase() === name)
  const [value, ...others] = valuesOf("host")
  if (value === undefined && httpVersion === "1.1") return "no-host"
  if (value !== undefined && (others.length > 0 || !host.test(value))) return "wrong-host"
  return valuesOf("authorization").length > 1 ? "two-authorizations" : undefined
}
