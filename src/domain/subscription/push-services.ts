// The push services of the browsers: their names, their hosts, and what they ignore in an endpoint.
// Pure.
import { hostMatcher } from "./push-host.ts"

/**
 * The push services of the browsers, with their names in outcomes. Chromium without Google's brand,
 * as Debian's 156, has its endpoints at jmt17 (kPushMessagingStagingGcmEndpoint in its source).
 */
const pushServices = {
  google: ["fcm.googleapis.com", "jmt17.google.com"],
  mozilla: ["updates.push.services.mozilla.com"],
  apple: ["web.push.apple.com", "*.push.apple.com"],
  microsoft: ["*.notify.windows.com"]
} as const
export const knownPushHosts = Object.values(pushServices).flat()

export const otherPushService = "other"
/** The names of push services: those of the browsers, and one for all others. */
export const pushServiceNames = [...Object.keys(pushServices), otherPushService]

const matchers = Object.entries(pushServices).map(
  ([name, hosts]) => [name, hosts.map(hostMatcher)] as const
)

/** The name of the push service of an outcome or a dead letter. */
export const pushServiceOf = ({ service }: { readonly service?: string }): string =>
  service ?? otherPushService

/** The name of the push service at a host. */
export const pushServiceAt = (host: string): string =>
  matchers.find(([, matches]) => matches.some((each) => each(host)))?.[0] ?? otherPushService

/** RFC 3986 section 6.2.2. Microsoft's escapes have lower case. */
const unescaped = (text: string): string => {
  const character = String.fromCharCode(Number.parseInt(text.slice(1), 16))
  return /[\w.~:-]/.test(character) ? character : text.toLowerCase()
}

/** By push service: folds what it ignores, in an endpoint whose escapes are folded. */
const folds: Readonly<Record<string, (endpoint: string) => string>> = {
  google: (endpoint) => endpoint.replace(/^(https:\/\/fcm\.googleapis\.com)\/wp\//, "$1/fcm/send/"),
  // As autopush-rs: version 1 is that of a path without one, and tokens are padded.
  mozilla: (endpoint) =>
    endpoint.replace(/\/wpush\/(?=[^/]+$)/, "/wpush/v1/").replace(/(?<!=|%3d)(=|%3d)+$/, ""),
  apple: (endpoint) => endpoint.replace(/\?.*/, ""),
  // The token is base64 with escapes.
  microsoft: (endpoint) =>
    endpoint.replace(/(?<=\?token=)([^&]*).*/, (_, token: string) =>
      token.replaceAll("/", "%2f").replaceAll("=", "%3d")
    )
}

/**
 * One text for all spellings of an endpoint that its push service takes for the same. An endpoint
 * that a browser gives stays as it is, but for `/wp/`, which Chromium has behind a flag
 * (kPushMessagingGcmEndpointWebpushPath).
 */
export const foldedEndpoint = (endpoint: string): string => {
  const fold = folds[pushServiceAt(endpoint.split("/", 3)[2] ?? "")]
  return fold === undefined ? endpoint : fold(endpoint.replace(/%[\da-f]{2}/gi, unescaped))
}
