// A person's text as the data of a broadcast: Declarative Web Push, with a variant for each
// language. Drafts may be unfinished, so every member of a notification may be missing.
import type { Action, Content, Contents, DraftData, Notification } from "../api/shapes.ts"

export type Written = Partial<Notification>

/** The largest payload of a broadcast, in bytes of compact JSON. */
export const payloadBytesMax = 3_993
/** Mozilla's push service may refuse more for Firefox on Android. */
export const androidFirefoxBytesMax = 2_820
export const buttonsMax = 2
/** The key of `data`, which browsers without a variant of their own get. */
export const others = ""

/** `others` first, then the languages in the order of their tags. */
export const localesOf = ({ data_by_locale }: Contents): ReadonlyArray<string> => [
  others,
  ...Object.keys(data_by_locale ?? {}).sort()
]

export const contentOf = (draft: Contents, locale: string): Content | undefined =>
  locale === others ? draft.data : draft.data_by_locale?.[locale]

const isObject = (value: unknown): value is Written => typeof value === "object" && value !== null

/**
 * The part that a browser shows, as worker.js has it: `notification`, else the data itself. A
 * program may have published members of any type: those that are not the type they must be are
 * left out, or they would break the page of whoever opens it.
 */
export const writtenOf = (content: Content | undefined): Written => {
  if (content === undefined) return {}
  if (isObject(content.notification)) return typed(content.notification)
  const { url, web_push, ...members } = content
  return typed({ ...(url === undefined ? {} : { navigate: url }), ...members })
}

const texts: ReadonlyArray<string> = ["title", "body", "navigate", "image", "icon", "tag", "lang"]

const typed = (members: object): Written =>
  Object.fromEntries(
    Object.entries(members).flatMap(([name, value]: [string, unknown]) => {
      if (texts.includes(name)) return typeof value === "string" ? [[name, value]] : []
      if (name !== "actions") return [[name, value]]
      return Array.isArray(value) ? [[name, value.filter(isAction)]] : []
    })
  )

const isAction = (value: unknown): value is Action => {
  const { action, navigate, title } = Object(value) as Partial<Action>
  return [action, navigate, title].every((each) => typeof each === "string")
}

/** Whether the data has another form, such as data that a program published. */
export const isForeign = (content: Content | undefined): boolean =>
  content !== undefined && Object.keys(content).length > 0 && content.web_push !== 8030

/** Without members that are empty texts, empty lists or undefined. */
const withoutEmpty = (members: Written): Written =>
  Object.fromEntries(
    Object.entries(members).filter(
      ([, value]) => value !== undefined && value !== "" && (value as Array<unknown>)?.length !== 0
    )
  )

/** Members that a language has in common with the others, until it gets its own. */
const shared = ["navigate", "image", "icon", "tag"] as const

/** Buttons without an address of their own open the page of the notification. */
const withLink = (before: Written, after: Written): Written => {
  const { actions, navigate = "" } = after
  if (actions === undefined || navigate === before.navigate) return after
  return {
    ...after,
    actions: actions.map((each) =>
      each.navigate === (before.navigate ?? "") ? { ...each, navigate } : each
    )
  }
}

const declarative = (content: Content | undefined, written: Written): Content => ({
  ...(content?.web_push === 8030 ? content : {}),
  web_push: 8030,
  notification: withoutEmpty(written) as unknown as Notification
})

const withContent = (draft: DraftData, locale: string, content: Content): DraftData =>
  locale === others
    ? { ...draft, data: content }
    : { ...draft, data_by_locale: { ...draft.data_by_locale, [locale]: content } }

/** The draft after some members were written. What the languages had in common, they still have. */
export const written = (draft: DraftData, locale: string, members: Written): DraftData => {
  const before = writtenOf(contentOf(draft, locale))
  const after = withLink(before, { ...before, ...members })
  const changed = withContent(draft, locale, declarative(contentOf(draft, locale), after))
  if (locale !== others) return changed
  return Object.keys(draft.data_by_locale ?? {}).reduce((all, each) => {
    const variant = writtenOf(contentOf(all, each))
    const same = shared.filter(
      (name) => name in members && (variant[name] ?? "") === (before[name] ?? "")
    )
    if (same.length === 0) return all
    const next = { ...variant, ...Object.fromEntries(same.map((name) => [name, after[name]])) }
    return withContent(all, each, declarative(contentOf(all, each), withLink(variant, next)))
  }, changed)
}

/**
 * A language tag as it is stored; undefined: none. Standards allow languages of 5 to 8 letters, of
 * which there is none: a word of so many letters is a name, such as "German".
 */
export const localeOf = (typed: string): string | undefined => {
  const tag = typed.trim().replaceAll("_", "-")
  if (tag.length > 35 || !/^[a-z]{2,3}(-|$)/i.test(tag)) return undefined
  try {
    return Intl.getCanonicalLocales(tag)[0]
  } catch {
    return undefined
  }
}

/** A new language begins with what is no text: addresses, pictures, the story. */
export const withLocale = (draft: DraftData, locale: string): DraftData => {
  const first = writtenOf(draft.data)
  const { actions, body, title, lang, ...rest } = first
  return withContent(draft, locale, declarative(undefined, { ...rest, lang: locale }))
}

export const withoutLocale = (draft: DraftData, locale: string): DraftData => {
  const { [locale]: _, ...left } = draft.data_by_locale ?? {}
  if (Object.keys(left).length > 0) return { ...draft, data_by_locale: left }
  const { data_by_locale, ...rest } = draft
  return rest
}

/** As the service counts it. */
export const bytesOf = (content: Content | undefined): number =>
  content === undefined ? 0 : new TextEncoder().encode(JSON.stringify(content)).length

/** Another button, with an id that the others do not have. */
export const emptyAction = (there: ReadonlyArray<Action>, navigate = ""): Action => {
  const ids = Array.from({ length: buttonsMax + 1 }, (_, index) => `button-${index + 1}`)
  const action = ids.find((id) => there.every((each) => each.action !== id))!
  return { action, title: "", navigate }
}

const isLocal = (host: string): boolean => ["localhost", "127.0.0.1", "[::1]"].includes(host)

/** Why browsers would not open an address, or the first Safari would drop the push. */
export type AddressFault = "missing" | "relative" | "scheme" | "http"

export const addressFault = (address: string): AddressFault | undefined => {
  if (address === "") return "missing"
  const scheme = /^([a-z][a-z\d+.-]*):/i.exec(address)?.[1]?.toLowerCase()
  // "localhost:8080/a" has no scheme: what follows the colon is a port.
  if (scheme === undefined || /^[^/]+:\d/.test(address)) return "relative"
  if (scheme !== "https" && scheme !== "http") return "scheme"
  const { hostname = "" } = (/^https?:\/\//i.test(address) && URL.parse(address)) || {}
  if (hostname === "") return "relative"
  return scheme === "http" && !isLocal(hostname) ? "http" : undefined
}

/** A picture is shown here, and may be missing. */
export const pictureFault = (address: string | undefined): AddressFault | undefined =>
  address === undefined || address === "" ? undefined : addressFault(address)

export type Fault =
  | { readonly member: "title" }
  | { readonly member: "navigate" | "image" | "icon"; readonly why: AddressFault }
  | { readonly member: "actionTitle"; readonly index: number }
  | { readonly member: "actionLink"; readonly index: number; readonly why: AddressFault }
  | { readonly member: "bytes"; readonly bytes: number }

/** The faults to correct before a variant can be sent. */
export const faultsOf = (content: Content | undefined): ReadonlyArray<Fault> => {
  const { actions = [], icon, image, navigate = "", title = "" } = writtenOf(content)
  const faults: Array<Fault> = []
  if (title.trim() === "") faults.push({ member: "title" })
  const link = addressFault(navigate)
  if (link) faults.push({ member: "navigate", why: link })
  for (const [member, address] of [["image", image] as const, ["icon", icon] as const]) {
    const why = pictureFault(address)
    if (why) faults.push({ member, why })
  }
  for (const [index, action] of actions.entries()) {
    if (action.title.trim() === "") faults.push({ member: "actionTitle", index })
    const why = addressFault(action.navigate)
    // One without an address of its own has the fault of the notification's.
    if (why && action.navigate !== navigate) faults.push({ member: "actionLink", index, why })
  }
  const bytes = bytesOf(content)
  if (bytes > payloadBytesMax) faults.push({ member: "bytes", bytes })
  return faults
}
