// Encodes names as subject tokens and bucket keys. A NATS token has no spaces and no `.`, `*`, `>`.
// A bucket key has only [-/_=.a-zA-Z0-9] (ADR-6). So every other byte is written as `=XX`.

/** A channel id as a subject token; reversible with {@link decodeToken}. */
export type ChannelToken = string & { readonly channel: unique symbol }
/** A pseudonym of a user: 22 base64url characters of an HMAC of the full user id. */
export type UserToken = string & { readonly user: unique symbol }
/** The host of a push service as a subject token, so that operators can filter by push service. */
export type OriginToken = string & { readonly origin: unique symbol }

const plain = /^[A-Za-z0-9_-]$/

const encode = (text: string): string => {
  let token = ""
  for (const byte of new TextEncoder().encode(text)) {
    const char = String.fromCharCode(byte)
    token += plain.test(char) ? char : `=${byte.toString(16).toUpperCase().padStart(2, "0")}`
  }
  return token
}

/** `news eu.1` becomes `news=20eu=2E1`: at most three characters for a byte. */
export const channelToken = (channel: string): ChannelToken => encode(channel) as ChannelToken
export const originToken = (host: string): OriginToken => encode(host) as OriginToken

/**
 * The text that a token encodes; undefined when no text encodes to this token. NATS clients other
 * than Bellcast may send any token.
 */
export const decodeToken = (token: string): string | undefined => {
  const bytes: Array<number> = []
  for (let i = 0; i < token.length; i++) {
    if (token[i] !== "=") bytes.push(token.charCodeAt(i))
    else {
      bytes.push(Number.parseInt(token.slice(i + 1, i + 3), 16))
      i += 2
    }
  }
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes))
  return text !== "" && encode(text) === token ? text : undefined
}

/** The texts of those tokens that encode one. */
export const decodeTokens = (tokens: ReadonlyArray<string>): ReadonlyArray<string> =>
  tokens.flatMap((token) => decodeToken(token) ?? [])

/**
 * Bytes of a channel id in UTF-8. Its token has up to three times as many, and nats-server takes
 * subjects and bucket keys of up to 4 KiB.
 */
export const channelBytesMax = 255

/** Whether a token is that of a channel. A path of the API cannot name a channel with a slash. */
export const isChannelToken = (token: string | undefined): token is ChannelToken => {
  if (token === undefined || token.length > 3 * channelBytesMax) return false
  const channel = decodeToken(token)
  return (
    channel !== undefined &&
    !channel.includes("/") &&
    new TextEncoder().encode(channel).length <= channelBytesMax
  )
}

/** Stands in subjects for the channel of a broadcast to users alone. No channel has this token. */
export const directToken = "=direct" as ChannelToken
/**
 * The same, of a broadcast that names several channels, or channels and users. Lists of a channel
 * read these, and would otherwise read past each letter to a user.
 */
export const channelsToken = "=channels" as ChannelToken

/** Whether a token stands for the channel of a broadcast to several channels or to users. */
export const isDirect = (token: string | undefined): boolean =>
  token === directToken || token === channelsToken

/** Whether a token names a channel, or stands for several. */
export const isPlace = (token: string | undefined): token is ChannelToken =>
  isDirect(token) || isChannelToken(token)

/** Whether a token is that of a user. The bucket key `meta`, for example, is not. */
export const isUserToken = (token: string | undefined): token is UserToken =>
  token !== undefined && /^[A-Za-z0-9_-]{22}$/.test(token)

/** Whether a text is the id of a draft, which its client chose: it stands in subjects as it is. */
export const isDraftId = (text: string): boolean => /^[A-Za-z0-9_-]{1,64}$/.test(text)

const base64url = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

/**
 * The place of a user in the hash tree of a channel: four hexadecimal tokens. A wildcard after the
 * first k of them matches 1/16^k of the registrations of the channel. A user token is an HMAC, so
 * its first 16 bits are evenly distributed.
 */
export const shardPath = (user: UserToken): string => {
  let bits = 0
  for (let i = 0; i < 3; i++) bits = bits * 64 + Math.max(0, base64url.indexOf(user[i] ?? "A"))
  return [...(bits >> 2).toString(16).padStart(4, "0")].join(".")
}

/** The shard of a user in a channel of some depth. */
export const shardOf = (user: UserToken, depth: number): string =>
  depth === 0 ? "all" : shardPath(user).split(".").slice(0, depth).join(".")

/** Whether a user is in a shard, which is a prefix of {@link shardPath} or `all`. */
export const isInShard = (user: UserToken, shard: string): boolean =>
  shard === "all" || `${shardPath(user)}.`.startsWith(`${shard}.`)

/**
 * The shards of a channel at a depth, as prefixes of {@link shardPath}: `all` at depth 0, `0`..`f`
 * at depth 1, `0.0`..`f.f` at depth 2, and so on.
 */
export const shardsAt = (depth: number): ReadonlyArray<string> => {
  let prefixes = [""]
  for (let level = 0; level < depth; level++) {
    prefixes = prefixes.flatMap((prefix) =>
      [..."0123456789abcdef"].map((digit) => (prefix === "" ? digit : `${prefix}.${digit}`))
    )
  }
  return depth === 0 ? ["all"] : prefixes
}
