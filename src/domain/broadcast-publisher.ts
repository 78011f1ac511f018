// The publisher of a broadcast, and whoever caused a message for another user, in headers. Pure.

/** The gateway, as the source of a message. */
export const gatewaySource = "rest"
/** Sources that are Bellcast itself: the gateway checks who may send to whom. */
const ownSources = [gatewaySource, "redrive"]
export const isOwnSource = (source: string): boolean => ownSources.includes(source)

/**
 * Header of a broadcast by HTTP: the id of its publisher, percent-encoded. The gateway writes it; a
 * NATS client may write anything there, so it counts only where the source is `rest`.
 */
const publisherHeader = "Bellcast-Publisher"

/** The header that names the publisher. */
export const publisherHeaders = (id: string): Readonly<Record<string, string>> => ({
  [publisherHeader]: encodeURI(id)
})

/**
 * Header of messages that somebody causes for another user: the id of the operator or the site's
 * server, percent-encoded, or `operator` for a command.
 */
const byHeader = "Bellcast-By"
export const byHeaders = (id: string): Readonly<Record<string, string>> => ({
  [byHeader]: encodeURI(id)
})

/** The id in such a header. */
const idIn = (text: string | undefined): string | undefined => {
  try {
    return text === undefined ? undefined : decodeURI(text)
  } catch {
    return text
  }
}

type Header = (name: string) => string | undefined

/** The caller that a message names. Undefined: the user caused it, or the service. */
export const callerIn = (header: Header): string | undefined => idIn(header(byHeader))

/** The operator who sent a broadcast again. Undefined of other broadcasts. */
export const redrivenBy = (source: string, header: Header): string | undefined =>
  source === "redrive" ? callerIn(header) : undefined

/**
 * The publisher of a broadcast: the id of a user, or `nats:<source>` for a NATS client, whose
 * permissions bind it to its source; of one that was sent again, the operator. Undefined without
 * the header.
 */
export const publisherOf = (source: string, header: Header): string | undefined => {
  if (source !== gatewaySource) return redrivenBy(source, header) ?? `nats:${source}`
  return idIn(header(publisherHeader))
}
