// To whom and by whom, in words.
import { session } from "../api/session.ts"
import type { Broadcast, To } from "../api/shapes.ts"
import { list, t } from "./language.ts"

const namesMax = 3

/** An id as people can read it: hashes are cut, a policy is left out. */
export const person = (id: string): string => {
  if (id === session().user) return t("you")
  if (id === "operator") return t("anOperator")
  if (id === "expiry") return t("itself")
  const [policy, name = ""] = [id.slice(0, id.indexOf(":")), id.slice(id.indexOf(":") + 1)]
  if (policy === "nats" || policy === "token") return t("server", { name })
  return name.length > 40 ? t("somebody", { id: name.slice(0, 6) }) : name || id
}

const channelsIn = (channels: ReadonlyArray<string>): string => {
  const more = channels.length - namesMax
  if (more <= 1) return list(channels)
  return list([...channels.slice(0, namesMax), t("moreChannels", { count: more })])
}

/** "news, sports and 12 readers by name, without 2". Undefined: it is not said. */
export const audience = (to: Broadcast["to"] | undefined): string | undefined => {
  if (to === undefined) return undefined
  const { channels = [], except_users = 0, users = 0 } = to
  const parts = [
    ...(channels.length > 0 ? [channelsIn(channels)] : []),
    ...(users > 0 ? [t("namedReaders", { count: users })] : [])
  ]
  const whole = list(parts)
  return except_users > 0 ? t("without", { whole, count: except_users }) : whole
}

/** Of a draft, which may be unfinished. */
export const draftAudience = (to: To | undefined): string =>
  audience({
    channels: to?.channels ?? [],
    users: to?.users?.length ?? 0,
    except_users: to?.except_users?.length ?? 0
  }) || t("nobodyYet")
