// Every subject Bellcast uses, as a function of its parts, and the parsers back. Nothing else in the code spells a subject.
import {
  type ChannelToken,
  isChannelToken,
  isUserToken,
  type OriginToken,
  type UserToken
} from "./tokens.ts"

export const subjects = {
  /** Changes of one user's subscriptions, in order. */
  subscription: (user: UserToken) => `bellcast.cmd.subscription.${user}`,
  /** One user's place in one channel. */
  registration: (channel: ChannelToken, user: UserToken) =>
    `bellcast.cmd.registration.${channel}.${user}`,
  /** Who may publish on a channel, in order. */
  publisher: (channel: ChannelToken) => `bellcast.cmd.publisher.${channel}`,
  /** A broadcast; `source` is the authenticated publisher (`rest` for the gateway, `redrive` for the verb), so that NATS permissions can bind it. */
  broadcast: (source: string, channel: ChannelToken) =>
    `bellcast.cmd.broadcast.${source}.${channel}`,
  /** Why a message that entered the log was refused: a broadcast, or a command that cannot be obeyed. */
  rejected: (seq: number) => `bellcast.evt.rejected.${seq}`,
  /** The final counts of a broadcast. */
  finished: (channel: ChannelToken, broadcast: number) =>
    `bellcast.evt.finished.${channel}.${broadcast}`,
  /** From here on browsers were offered this VAPID public key (base64url). */
  adopted: (publicKey: string) => `bellcast.evt.adopted.${publicKey}`,
  /** From here on user ids are made with the secret of this fingerprint. */
  useridSecret: "bellcast.evt.userid-secret",
  /** How a broadcast was cut into shards: written once. */
  plan: (channel: ChannelToken, broadcast: number) => `bellcast.plan.${channel}.${broadcast}`,
  /** One slice of a channel to deliver to. */
  shard: (broadcast: number, shard: string) => `bellcast.job.shard.${broadcast}.${shard}`,
  /** One push that must be tried again. */
  retry: (origin: OriginToken, broadcast: number, user: UserToken, subscription: string) =>
    `bellcast.job.retry.${origin}.${broadcast}.${user}.${subscription}`,
  /** What became of the pushes of one shard. */
  shardOutcome: (channel: ChannelToken, broadcast: number, shard: string) =>
    `bellcast.outcome.${channel}.${broadcast}.shard.${shard}`,
  /** What became of one push that was tried again. */
  pushOutcome: (channel: ChannelToken, broadcast: number, user: UserToken, subscription: string) =>
    `bellcast.outcome.${channel}.${broadcast}.push.${user}.${subscription}`,
  /** A push that was given up, and why. */
  deadLetter: (channel: ChannelToken, broadcast: number, user: UserToken, subscription: string) =>
    `bellcast.dead.${channel}.${broadcast}.${user}.${subscription}`,
  /** Core NATS, not stored: the projector says how far it is. */
  applied: "bellcast.sys.applied",
  /** Core NATS request: ask the projector how far it is. */
  appliedGet: "bellcast.sys.applied.get",
  /** Core NATS, not stored: a delivery worker says what it has learned about a push service. */
  lane: "bellcast.sys.lane"
} as const

/** Filters over several subjects, for consumers and replays. */
export const filters = {
  commands: "bellcast.cmd.>",
  subscriptions: "bellcast.cmd.subscription.>",
  registrations: "bellcast.cmd.registration.>",
  publishers: "bellcast.cmd.publisher.*",
  broadcasts: "bellcast.cmd.broadcast.>",
  finished: "bellcast.evt.finished.>",
  adopted: "bellcast.evt.adopted.*",
  plans: "bellcast.plan.>",
  shards: "bellcast.job.shard.>",
  retries: "bellcast.job.retry.>",
  outcomes: "bellcast.outcome.>",
  outcomesIn: (channel: ChannelToken, broadcast: number) =>
    `bellcast.outcome.${channel}.${broadcast}.>`,
  outcomesOf: (broadcast: number) => `bellcast.outcome.*.${broadcast}.>`,
  planOf: (broadcast: number) => `bellcast.plan.*.${broadcast}`,
  deadLetters: "bellcast.dead.>",
  deadLettersOf: (broadcast: number) => `bellcast.dead.*.${broadcast}.>`
} as const

/** The user of a subscription command's subject. */
export const parseSubscription = (subject: string): UserToken | undefined => {
  const [, , kind, user, ...rest] = subject.split(".")
  return kind === "subscription" && isUserToken(user) && rest.length === 0 ? user : undefined
}

/** Channel and user of a registration command's subject. */
export const parseRegistration = (
  subject: string
): { readonly channel: ChannelToken; readonly user: UserToken } | undefined => {
  const [, , kind, channel, user, ...rest] = subject.split(".")
  return kind === "registration" &&
    isChannelToken(channel) &&
    isUserToken(user) &&
    rest.length === 0
    ? { channel, user }
    : undefined
}

/** The channel of a publisher command's subject. */
export const parsePublisher = (subject: string): ChannelToken | undefined => {
  const [, , kind, channel, ...rest] = subject.split(".")
  return kind === "publisher" && isChannelToken(channel) && rest.length === 0 ? channel : undefined
}

/** What a subject under `bellcast.cmd.` is a command for. */
export const commandKind = (subject: string): string => subject.split(".")[2] ?? ""

/** Source and channel of a broadcast's subject; undefined when it names none. */
export const parseBroadcast = (
  subject: string
): { readonly source: string; readonly channel: ChannelToken } | undefined => {
  const [, , kind, source, channel, ...rest] = subject.split(".")
  return kind === "broadcast" &&
    source !== undefined &&
    isChannelToken(channel) &&
    rest.length === 0
    ? { source, channel }
    : undefined
}

/** Channel and broadcast of a plan's, an outcome's (with what it is of) or a dead letter's subject. */
export const parseOfBroadcast = (
  subject: string
):
  | { readonly channel: ChannelToken; readonly broadcast: number; readonly of: "shard" | "push" }
  | undefined => {
  const [, , channel, broadcast, of] = subject.split(".")
  const sequence = Number(broadcast)
  if (
    !isChannelToken(channel) ||
    !Number.isSafeInteger(sequence) ||
    sequence < 1 ||
    String(sequence) !== broadcast
  )
    return undefined
  return { channel, broadcast: sequence, of: of === "push" ? "push" : "shard" }
}
