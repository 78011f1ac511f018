// Parses a line of an import: a subscription as browsers and the package web-push write it, or a
// row of OneSignal's CSV export, as JSON. Pure.
import { isObject, type JsonObject, parseWhole } from "#basics/json.ts"
import { isLocale } from "#domain/locale.ts"

export interface ParsedLine {
  /** The subscription, unchecked. */
  readonly data: JsonObject
  /** The user and the channels that the line names, unchecked. */
  readonly user: unknown
  readonly channels: unknown
}

/**
 * A line without a subscription. refused: why. passed: why it is passed over: "skipped" is a row of
 * an app or of a browser that left, "keyless" one of a browser whose keys were not exported.
 */
export type NoSubscription =
  | { readonly refused: string }
  | { readonly passed: "skipped" | "keyless" }

const isText = (value: unknown): value is string => typeof value === "string" && value !== ""
/** Empty cells of a CSV file are no values. */
const cellOf = (cell: unknown): unknown => (cell === "" || cell === null ? undefined : cell)

/** Whether a row says that its browser takes no pushes any more: OneSignal exports these, too. */
const isUnsubscribed = (row: JsonObject): boolean => {
  const type = cellOf(row["notification_types"])
  const isOff = /^(t|true)$/i.test(String(row["invalid_identifier"]))
  return isOff || (type !== undefined && Number(type) <= 0)
}

const parseOneSignal = (row: JsonObject): ParsedLine | NoSubscription => {
  const { external_user_id: user, identifier, language, web_auth: auth, web_p256: p256dh } = row
  if (isUnsubscribed(row)) return { passed: "skipped" }
  // Apps have a token there, browsers an address.
  if (!isText(auth) || !isText(p256dh))
    return { passed: /^https?:/.test(String(identifier)) ? "keyless" : "skipped" }
  const key = cellOf(row["vapid_public_key"])
  const data = {
    endpoint: identifier,
    keys: { auth, p256dh },
    ...(isText(language) && isLocale(language) ? { locale: language } : {}),
    ...(key === undefined ? {} : { vapid_public_key: key })
  }
  return { data, user: cellOf(user), channels: cellOf(row["channels"]) }
}

/**
 * The subscription of a line. Its id and timestamp are those of another store, where they may be
 * anything.
 */
export const parseLine = (text: string): ParsedLine | NoSubscription => {
  const parsed = parseWhole(text)
  if (typeof parsed !== "string" && "loss" in parsed) return { refused: parsed.loss }
  const json = typeof parsed === "string" ? undefined : parsed.json
  if (!isObject(json)) return { refused: "Expected a JSON object" }
  if (Object.hasOwn(json, "identifier") && !Object.hasOwn(json, "endpoint"))
    return parseOneSignal(json)
  const { channels, id: _, last_modified: __, user, ...data } = json
  return { data, user: cellOf(user), channels: cellOf(channels) }
}
