// The rights on a channel that an operator granted: which principals may publish on it, and which
// may register on it if the settings close it. Also the forms of rights in the settings. Pure.
import * as Schema from "effect/Schema"
import { matchesWildcard } from "#basics/wildcard.ts"
import { Timestamp } from "./timestamp.ts"

export const PublisherPut = Schema.Struct({ principal: Schema.String, at: Timestamp })
export const PublisherDelete = Schema.Struct({ principal: Schema.String, at: Timestamp })

/** A registrar may register on a channel that is closed to others. */
export type PublisherCommand =
  | ({ readonly type: "publisher.put" | "registrar.put" } & typeof PublisherPut.Type)
  | ({ readonly type: "publisher.delete" | "registrar.delete" } & typeof PublisherDelete.Type)

/** Whether a message is a command that grants or revokes a right on a channel. */
export const isPublisherCommand = (message: {
  readonly type: string
}): message is PublisherCommand => /^(publisher|registrar)\./.test(message.type)

/** The value of a key in the bucket `permissions`. */
export interface Publishers {
  readonly v: 1
  readonly seq: number
  /** Principals that may publish, sorted. */
  readonly principals: ReadonlyArray<string>
  /** Principals that may register, sorted. */
  readonly registrars: ReadonlyArray<string>
}

export const noPublishers: Publishers = { v: 1, seq: 0, principals: [], registrars: [] }

/** Principals in both lists together. If each has 300 bytes, they fit into a value of 64 KiB. */
const publishersMax = 200
const fullFault =
  `a channel has at most ${publishersMax} publishers and registrars: ` +
  "let them share a principal, or use the settings"
const principalBytesMax = 300

/**
 * Returns why a text is not a principal (`<policy>:<id>`, system.Authenticated or system.Everyone).
 */
const principalFault = (principal: string): string | undefined => {
  if (Buffer.byteLength(principal) > principalBytesMax)
    return `a principal has at most ${principalBytesMax} bytes`
  if (/^system\.(Authenticated|Everyone)$/.test(principal)) return undefined
  if (/^(?:group:)?(?!(?:system|group):)[a-z0-9_-]+:[^\s,"\\]+$/.test(principal)) return undefined
  return (
    "a principal is <policy>:<id> as GET /v1/ shows it to its user, " +
    "group:<policy>:<name>, or system.Authenticated"
  )
}

/** Returns why no user who subscribes can have an id; undefined: somebody may. */
export const nobodyIdFault = (id: string): string | undefined => {
  if (/^basicauth(?:-[a-z0-9-]*)?:(?![0-9a-f]{64}$)/.test(id))
    return "an id of basicauth has 64 digits, 0-9 and a-f, as GET /v1/ shows it to its user"
  return /^token(?:-[a-z0-9-]*)?:/.test(id)
    ? "a token has the rights of its creation (bellcast token create), and no others"
    : undefined
}

/** Returns why a grant to this principal lets nobody publish; undefined: it may let somebody. */
export const nobodyFault = (principal: string): string | undefined => {
  const [, withoutGroups] =
    /^group:((?:basicauth|token|portier)[a-z0-9-]*|nats):/.exec(principal) ?? []
  if (withoutGroups !== undefined) return `the policy ${withoutGroups} has no groups`
  return nobodyIdFault(principal) ?? principalFault(principal)
}

/** Returns why a principal cannot have the right to name users: everybody must never have it. */
export const userWriteFault = (principal: string): string | undefined =>
  principal.startsWith("system.")
    ? "name users or groups: whoever has this right reaches every user, and logs them out"
    : nobodyFault(principal)

/** Returns why a principal cannot be that of operators: everybody must never be one. */
export const operatorFault = (principal: string): string | undefined =>
  principal.startsWith("system.")
    ? "name users or groups: an operator sees every user, and stops the broadcasts of everybody"
    : nobodyFault(principal)

/** The policy in the ids of publishers on NATS, `nats:<source>`: NATS knows who they are. */
export const natsPolicy = "nats"

/** The policy whose users have a principal; undefined: those of all policies. */
export const policyOf = (principal: string): string | undefined =>
  /^(?:group:)?([^:]+):/.exec(principal)?.[1]

/** A permission to publish: a principal, and a pattern of channels. */
export interface WriteRule {
  readonly principal: string
  /** `*` stands for any text. */
  readonly channels: string
}

/** The rule of `principal` (on every channel) or `pattern=principal`. */
export const writeRuleOf = (text: string): WriteRule => {
  const [, channels = "*", principal = text] = /^([^=:]+)=(.*)$/s.exec(text) ?? []
  return { principal, channels }
}

/**
 * The rule of `pattern=principal` in the setting that closes channels, or of `pattern=`, which
 * nobody has. The pattern ends at the first `=`.
 */
export const registerRuleOf = (text: string): WriteRule => {
  const [, channels = "", principal = ""] = /^([^=]*)=(.*)$/s.exec(text) ?? []
  return { principal, channels }
}

/** Returns why a text closes no channel. */
export const registerRuleFault = (text: string): string | undefined => {
  const { channels, principal } = registerRuleOf(text)
  if (channels === "")
    return "Expected <pattern of channels>=<principal>, or <pattern>= to close it to everybody"
  return principal === "" ? undefined : nobodyFault(principal)
}

/** Whether everybody may register on a channel: no rule of the settings closes it. */
export const isOpen = (rules: ReadonlyArray<WriteRule>, channel: string): boolean =>
  !rules.some(({ channels }) => matchesWildcard(channels, channel))

/** Returns why a text is not a rule that somebody can have. */
export const writeRuleFault = (text: string): string | undefined =>
  nobodyFault(writeRuleOf(text).principal)

/** A rejected command changes only the sequence. */
export const passOverInPublishers = (publishers: Publishers, seq: number): Publishers =>
  seq <= publishers.seq ? publishers : { ...publishers, seq }

/**
 * Folds one command, stored at `seq`. `reason`: why the command is rejected. A command that was
 * folded before changes nothing.
 */
export const foldPublishers = (
  publishers: Publishers,
  command: PublisherCommand,
  seq: number
): { readonly publishers: Publishers; readonly reason?: string } => {
  if (seq <= publishers.seq) return { publishers }
  const { principal, type } = command
  const list = type.startsWith("registrar.") ? "registrars" : "principals"
  const others = publishers[list].filter((each) => each !== principal)
  const without = { ...publishers, seq, [list]: others }
  if (type.endsWith(".delete")) return { publishers: without }
  const isFull = without.principals.length + without.registrars.length >= publishersMax
  const reason = principalFault(principal) ?? (isFull ? fullFault : undefined)
  if (reason !== undefined) return { publishers: passOverInPublishers(publishers, seq), reason }
  return { publishers: { ...without, [list]: [...others, principal].sort() } }
}
