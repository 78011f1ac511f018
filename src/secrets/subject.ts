// The VAPID subject: where push services may write to about our traffic (RFC 8292 section 2.1).
import * as Effect from "effect/Effect"
import { isPublicName } from "#basics/public-name.ts"

/** The subject beside the embedded server, if none is set. Nobody reads mail to it. */
export const developmentSubject = "mailto:operator@example.com"

/** The characters of RFC 5322's dot-atom. A colon would be that of a second `mailto:`. */
const mailto = /^mailto:[\w.!#$%&'*+/=?^`{|}~-]+@([^\s<>@/:?#[\]\\]+)$/

/** The host of a subject as a URL parser writes it. */
const hostOf = (subject: string): string | undefined => {
  const domain = mailto.exec(subject)?.[1]
  const url = domain === undefined ? subject : `https://${domain}`
  return /^https:\/\/[^\s]+$/.test(url) ? URL.parse(url)?.hostname : undefined
}

/** Why a push service would refuse a subject. Apple is the strictest (403 BadJwtToken). */
export const subjectFault = (subject: string): string | undefined => {
  const host = hostOf(subject)
  if (host === undefined)
    return "must be mailto:name@domain or an https: URL, without spaces or brackets"
  return isPublicName(host)
    ? undefined
    : "must name a public domain, not an address or a name of a private network"
}

/** Domains that belong to nobody (RFC 2606). */
const examples = /(?:^|\.)(?:example\.(?:com|net|org)|example|test|invalid)$/i

/** Whether the subject was taken from an example, so that push services can write to nobody. */
export const isExample = (subject: string): boolean => examples.test(hostOf(subject) ?? "")

/**
 * Warns at the start of a process that sends: push services block senders whom they cannot write
 * to. No failure, as deliveries work until then. Undefined: the process sends nothing.
 */
export const warnOfExample = (subject: string | undefined): Effect.Effect<void> =>
  subject !== undefined && isExample(subject)
    ? Effect.logWarning(
        "push services can write to nobody about your pushes: BELLCAST_VAPID_SUBJECT is unset or " +
          "an example, set it to an address of yours (mailto:NAME@DOMAIN) or to an https: URL"
      )
    : Effect.void
