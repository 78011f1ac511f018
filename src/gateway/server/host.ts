// The Host header of a request (RFC 9112 section 3.2). Pure.

/** A host name or address with or without a port (RFC 3986 section 3.2.2); it may be empty. */
const host = /^(?:[\w.~!$&'()*+,;=%-]*|\[[0-9A-Fa-f:.]+\])(?::\d*)?$/

/**
 * Why a request is refused for its Host, as a name in the table of wire faults. Two of them may be
 * read differently by a proxy and by this server. `rawHeaders`: names and values in turn.
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
