// Every subject that Bellcast uses, as a function of its parts, and the parsers of subjects. No
// other file spells a subject.
import {
  type ChannelToken,
  decodeToken,
  isChannelToken,
  isDraftId,
  isPlace,
  isUserToken,
  type OriginToken,
  type UserToken
} from "./tokens.ts"

export const subjects = {
  /** Changes of one user's subscriptions, in order. */
  subscription: (user: UserToken) => `bellcast.cmd.subscription.${user}`,
  /** The registration of one user in one channel. */
  registration: (channel: ChannelToken, user: UserToken) =>
    `bellcast.cmd.registration.${channel}.${user}`,
  /** Since when a channel has users, where messages that said so are gone. */
  begun: (channel: ChannelToken) => `bellcast.cmd.begun.${channel}`,
  /** The erasure of a user, until it is done. */
  erase: (user: UserToken) => `bellcast.cmd.erase.${user}`,
  /** A user was erased: each time once. */
  erased: (user: UserToken) => `bellcast.evt.erased.${user}`,
  /** Who may publish on a channel, in order. */
  publisher: (channel: ChannelToken) => `bellcast.cmd.publisher.${channel}`,
  /** The making and the revocation of tokens of one name, in order. */
  token: (name: string) => `bellcast.cmd.token.${name}`,
  /** The forms of one draft, in order: the last one counts. */
  draft: (id: string) => `bellcast.cmd.draft.${id}`,
  /**
   * A broadcast. `source` is the publisher: `rest` is the gateway, `redrive` the command, anything
   * else a NATS client. NATS permissions can bind a client to its source. `channel`: that of a
   * broadcast to one channel, else `directToken` or `channelsToken`, which only `rest` and
   * `redrive` may use.
   */
  broadcast: (source: string, channel: ChannelToken) =>
    `bellcast.cmd.broadcast.${source}.${channel}`,
  /** A part of the recipients or variants of a later broadcast of a gateway. */
  part: "bellcast.cmd.part.rest",
  /** Why a message of LOG was rejected: a broadcast or another command. */
  rejected: (seq: number) => `bellcast.evt.rejected.${seq}`,
  /** Which subscriptions were another user's when a message of LOG was folded. */
  taken: (seq: number) => `bellcast.evt.taken.${seq}`,
  /** Changes of the state of a broadcast, in order. */
  state: (broadcast: number) => `bellcast.evt.state.${broadcast}`,
  /** The final counts of a broadcast. */
  finished: (channel: ChannelToken, broadcast: number) =>
    `bellcast.evt.finished.${channel}.${broadcast}`,
  /** The pushes of a channel by final counts that are gone, or may go. */
  summed: (channel: ChannelToken) => `bellcast.evt.summed.${channel}`,
  /** The gateway offers this VAPID public key (base64url) to browsers from here on. */
  adopted: (publicKey: string) => `bellcast.evt.adopted.${publicKey}`,
  /** The gateway derives user ids with the secret of this fingerprint from here on. */
  useridSecret: "bellcast.evt.userid-secret",
  /** How the planner cut a broadcast into shards. Written once. */
  plan: (channel: ChannelToken, broadcast: number) => `bellcast.plan.${channel}.${broadcast}`,
  /** The pushes of a broadcast to one shard of its channel. */
  shard: (broadcast: number, shard: string) => `bellcast.job.shard.${broadcast}.${shard}`,
  /** The same, of a broadcast with a rate. */
  limitedShard: (broadcast: number, shard: string) => `bellcast.job.limited.${broadcast}.${shard}`,
  /** One push that must be attempted again. */
  retry: (origin: OriginToken, broadcast: number, user: UserToken, subscription: string) =>
    `bellcast.job.retry.${origin}.${broadcast}.${user}.${subscription}`,
  /** A job again, in a later run of its broadcast. No shard and no subscription ends with `r1`. */
  jobOfRun: (subject: string, run: number) => `${subject.replace(/\.r\d+$/, "")}.r${run}`,
  /** The outcomes of the pushes of one shard. */
  shardOutcome: (channel: ChannelToken, broadcast: number, shard: string) =>
    `bellcast.outcome.${channel}.${broadcast}.shard.${shard}`,
  /** The outcome of one push that was attempted again. */
  pushOutcome: (channel: ChannelToken, broadcast: number, user: UserToken, subscription: string) =>
    `bellcast.outcome.${channel}.${broadcast}.push.${user}.${subscription}`,
  /** A push that delivery gave up, with the reason. */
  deadLetter: (channel: ChannelToken, broadcast: number, user: UserToken, subscription: string) =>
    `bellcast.dead.${channel}.${broadcast}.${user}.${subscription}`,
  /**
   * An operator looked at a user, or at the pushes to a user of a broadcast, in this minute since
   * the epoch. Written once.
   */
  look: (user: UserToken, operator: UserToken, at: "user" | number, minute: number) =>
    `bellcast.look.${user}.${operator}.${at}.${minute}`,
  /**
   * An operator looked in this hour since the epoch at what broadcasts say, those whose ids have
   * this hash. Written once.
   */
  lookAtBroadcasts: (operator: UserToken, hash: string, hour: number) =>
    `bellcast.look.=broadcasts.${operator}.${hash}.${hour}`,
  /** Core NATS request of an internal service to the API: gateways respond. */
  api: (source: string, operation: string) => `bellcast.api.${source}.${operation}`,
  /** Core NATS, not stored: the projector publishes the last sequence that it applied. */
  applied: "bellcast.sys.applied",
  /** Core NATS request: the projector responds with the last sequence that it applied. */
  appliedGet: "bellcast.sys.applied.get",
  /** Core NATS, not stored: a process announces its roles. */
  process: "bellcast.sys.process",
  /** Core NATS, not stored: gossip of delivery workers about push services. */
  pushService: "bellcast.sys.push-service"
} as const

/** Filters over several subjects, for consumers and replays. */
export const filters = {
  commands: "bellcast.cmd.>",
  subscriptions: "bellcast.cmd.subscription.>",
  registrations: "bellcast.cmd.registration.>",
  registrationsIn: (channel: ChannelToken) => `bellcast.cmd.registration.${channel}.*`,
  registrationsOf: (user: UserToken) => `bellcast.cmd.registration.*.${user}`,
  erases: "bellcast.cmd.erase.*",
  erased: "bellcast.evt.erased.*",
  publishers: "bellcast.cmd.publisher.*",
  tokens: "bellcast.cmd.token.*",
  drafts: "bellcast.cmd.draft.*",
  broadcasts: "bellcast.cmd.broadcast.>",
  states: "bellcast.evt.state.*",
  finished: "bellcast.evt.finished.>",
  finishedIn: (channel: ChannelToken) => `bellcast.evt.finished.${channel}.*`,
  summed: "bellcast.evt.summed.*",
  rejected: "bellcast.evt.rejected.*",
  taken: "bellcast.evt.taken.*",
  adopted: "bellcast.evt.adopted.*",
  plans: "bellcast.plan.>",
  shards: "bellcast.job.shard.>",
  limitedShards: "bellcast.job.limited.>",
  retries: "bellcast.job.retry.>",
  outcomes: "bellcast.outcome.>",
  outcomesIn: (channel: ChannelToken, broadcast: number) =>
    `bellcast.outcome.${channel}.${broadcast}.>`,
  shardOutcomesIn: (channel: ChannelToken, broadcast: number) =>
    `bellcast.outcome.${channel}.${broadcast}.shard.>`,
  outcomesOf: (broadcast: number) => `bellcast.outcome.*.${broadcast}.>`,
  /** With or without a rate. The jobs of retries have another token there, never a number. */
  shardsOf: (broadcast: number) => `bellcast.job.*.${broadcast}.>`,
  retriesOf: (broadcast: number) => `bellcast.job.retry.*.${broadcast}.>`,
  planOf: (broadcast: number) => `bellcast.plan.*.${broadcast}`,
  deadLetters: "bellcast.dead.>",
  looksAtBroadcasts: "bellcast.look.=broadcasts.>",
  looksAt: (user: UserToken) => `bellcast.look.${user}.>`,
  deadLettersOf: (broadcast: number) => `bellcast.dead.*.${broadcast}.>`
} as const

/** The tokens after the kind in a subject of LOG; none where it has another form. */
const tokensOf = (subject: string, kind: string, count: number): ReadonlyArray<string> => {
  const [, , found, ...tokens] = subject.split(".")
  return found === kind && tokens.length === count ? tokens : []
}

/** Host and port of the push service of a retry, as the subject of its job names them. */
export const hostOfRetry = (subject: string): string =>
  decodeToken(subject.split(".")[3] ?? "") ?? ""

/** The user of a subscription command's subject. */
export const parseSubscription = (subject: string): UserToken | undefined => {
  const [user] = tokensOf(subject, "subscription", 1)
  return isUserToken(user) ? user : undefined
}

/** Channel and user of a registration command's subject. */
export const parseRegistration = (
  subject: string
): { readonly channel: ChannelToken; readonly user: UserToken } | undefined => {
  const [channel, user] = tokensOf(subject, "registration", 2)
  return isChannelToken(channel) && isUserToken(user) ? { channel, user } : undefined
}

/** The user of the subject of an erasure: of the command or of the fact. */
export const parseErasure = (subject: string): UserToken | undefined => {
  const [user] = [...tokensOf(subject, "erase", 1), ...tokensOf(subject, "erased", 1)]
  return isUserToken(user) ? user : undefined
}

/** The channel of the subject of its begin. */
export const parseBegun = (subject: string): ChannelToken | undefined => {
  const [channel] = tokensOf(subject, "begun", 1)
  return isChannelToken(channel) ? channel : undefined
}

/** The channel of a publisher command's subject. */
export const parsePublisher = (subject: string): ChannelToken | undefined => {
  const [channel] = tokensOf(subject, "publisher", 1)
  return isChannelToken(channel) ? channel : undefined
}

/** The name of the token of a token command's subject. */
export const parseToken = (subject: string): string | undefined => tokensOf(subject, "token", 1)[0]

/** The id of the draft of a draft command's subject. */
export const parseDraft = (subject: string): string | undefined => {
  const [id = ""] = tokensOf(subject, "draft", 1)
  return isDraftId(id) ? id : undefined
}

/** The kind of a command, from a subject under `bellcast.cmd.`. */
export const commandKind = (subject: string): string => subject.split(".")[2] ?? ""

/** Source and channel of a broadcast's subject; undefined when the subject has another form. */
export const parseBroadcast = (
  subject: string
): { readonly source: string; readonly channel: ChannelToken } | undefined => {
  const [source, channel] = tokensOf(subject, "broadcast", 2)
  return source !== undefined && isPlace(channel) ? { source, channel } : undefined
}

/** The broadcast of the subject of a change of its state; undefined: the subject is another. */
export const parseState = (subject: string): number | undefined => {
  const broadcast = Number(/^bellcast\.evt\.state\.([1-9]\d*)$/.exec(subject)?.[1])
  return Number.isSafeInteger(broadcast) ? broadcast : undefined
}

/** Channel and broadcast of the subject of final counts. */
export const parseFinished = (
  subject: string
): { readonly channel: ChannelToken; readonly broadcast: number } | undefined => {
  const [channel, broadcast = ""] = tokensOf(subject, "finished", 2)
  return isPlace(channel) && /^[1-9]\d*$/.test(broadcast)
    ? { channel, broadcast: Number(broadcast) }
    : undefined
}

/** The channel of the subject of the sum of its final counts. */
export const parseSummed = (subject: string): ChannelToken | undefined => {
  const [channel] = tokensOf(subject, "summed", 1)
  return isChannelToken(channel) ? channel : undefined
}

/**
 * Channel and broadcast of the subject of a plan, an outcome or a dead letter. `of` says whether an
 * outcome is that of a shard or of a push.
 */
export const parseOfBroadcast = (
  subject: string
):
  | { readonly channel: ChannelToken; readonly broadcast: number; readonly of: "shard" | "push" }
  | undefined => {
  const [, , channel, broadcast, of] = subject.split(".")
  const sequence = Number(broadcast)
  if (
    !isPlace(channel) ||
    !Number.isSafeInteger(sequence) ||
    sequence < 1 ||
    String(sequence) !== broadcast
  )
    return undefined
  return { channel, broadcast: sequence, of: of === "push" ? "push" : "shard" }
}
