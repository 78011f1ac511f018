// POST /broadcasts: accepts a broadcast to several channels and to users. Each browser gets it
// once.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { pushExample } from "#browser/push.ts"
import { channelsMax, usersMax } from "#domain/recipients.ts"
import { Identity } from "#identity/identity.ts"
import { channelToken } from "#streams/tokens.ts"
import { readBody } from "../../http/body.ts"
import { type ErrorDetail, errorIn, refuse } from "../../http/errors.ts"
import type { Call } from "../../http/request.ts"
import { userIdFault } from "../../named-user.ts"
import { operation } from "../../operation.ts"
import { invalidChannel, isChannelId, maySend } from "../../rights.ts"
import { accept, publishDoc, published } from "./accepted.ts"
import { readGiven, withOptions } from "./publish.ts"

/** 256 KiB: users, channels and variants together are at most so many bytes. */
export const bodiesMax = 16

const texts = (max: number) =>
  Schema.optionalKey(Schema.Array(Schema.String).pipe(Schema.check(Schema.isMaxLength(max))))

const To = Schema.Struct({
  channels: texts(channelsMax),
  users: texts(usersMax),
  except_users: texts(usersMax)
})
const DirectBody = Schema.Struct({ ...published, to: To })

const decodeDirectBody = readBody(DirectBody)
const inBody = (name: string, description: string) => errorIn("body", name, description)
const nobody = inBody("to", "Expected channels or users")

/** Sorted and without duplicates: the same recipients are the same broadcast. */
const sorted = <T extends string>(tokens: Iterable<T>): ReadonlyArray<T> =>
  [...new Set(tokens)].sort()

/** Adds the names of `to` that name nobody to `errors`. */
const checkRecipients = Effect.fnUntraced(function* (
  { channels = [], except_users = [], users = [] }: typeof To.Type,
  errors: Array<ErrorDetail>
) {
  const { isUserId } = yield* Identity
  if (channels.length + users.length === 0) errors.push(nobody)
  for (const [i, id] of channels.entries())
    if (!isChannelId(id)) errors.push(inBody(`to.channels.${i}`, invalidChannel))
  for (const [name, ids] of Object.entries({ except_users, users }))
    for (const [i, id] of ids.entries())
      if (!isUserId(id)) errors.push(inBody(`to.${name}.${i}`, userIdFault))
})

/** The recipients, once it is known that the caller may name them: 2,000 pseudonyms take 37 ms. */
const tokensOfRecipients = Effect.fnUntraced(function* ({
  channels = [],
  except_users = [],
  users = []
}: typeof To.Type) {
  const { userOf } = yield* Identity
  const tokensOf = (ids: ReadonlyArray<string>) =>
    new Set(ids.flatMap((id) => userOf(id)?.user ?? []))
  const except = tokensOf(except_users)
  return {
    channels: sorted(channels.map(channelToken)),
    users: sorted([...tokensOf(users)].filter((user) => !except.has(user))),
    // The excepted users of a broadcast to users alone are left out of `users` already.
    except: channels.length === 0 ? [] : sorted(except)
  }
})

const readDirectPost = Effect.fnUntraced(function* ({ request }: Call, errors: Array<ErrorDetail>) {
  const given = readGiven(request, errors)
  const { value } = yield* decodeDirectBody(request, errors, { times: bodiesMax })
  // With another error, nothing of the body is used.
  const body = value ?? { to: {} }
  if (value !== undefined) yield* checkRecipients(value.to, errors)
  return { ...(yield* withOptions(given, body, errors)), body }
})

export const directPost = operation({
  access: "principal",
  takesJson: "always",
  exposes: ["Location"],
  readDirectPost,
  run: Effect.fnUntraced(function* ({ body: { to: named, ...body }, ...input }, call) {
    const { channels = [], except_users = [], users = [] } = named
    const namesUsers = users.length + except_users.length > 0
    if (!(yield* maySend(call.caller!, channels, namesUsers))) return yield* refuse("forbidden")
    const to = yield* tokensOfRecipients(named)
    return yield* accept({ ...input, to, body, isPlain: false }, "", call)
  }),
  doc: {
    summary: "Broadcast to several channels and to users, each browser once",
    ...publishDoc,
    body: DirectBody,
    bodyExample: { ...pushExample, to: { channels: ["news"] } },
    bodyRequired: true
  }
})
