// What a line of an import says: a subscription as browsers and the package web-push write it, or a
// row of OneSignal's CSV export, as JSON. Pure.
import { type JsonObject, jsonObjectOf } from "#basics/json.ts"
import { isLocale } from "#domain/locale.ts"

export interface Told {
  /** The subscription, unchecked. */
  readonly data: JsonObject
  /** The user and the channels that the line names, unchecked. */
  readonly user: unknown
  readonly channels: unknown
}

/** A line without a subscription: why it is refused, or only passed over. */
export interface NotTold {
  readonly refused?: string
  readonly skipped?: string
}

const isText = (value: unknown): value is string => typeof value === "string" && value !== ""
/** Empty cells of a CSV file are no values. */
const cellOf = (cell: unknown): unknown => (cell === "" || cell === null ? undefined : cell)

/** Whether a row says that its browser takes no pushes any more: OneSignal exports these, too. */
const isUnsubscribed = (row: JsonObject): boolean => {
  const type = cellOf(row["notification_types"])
  const isOff = /^(t|true)$/i.test(String(row["invalid_identifier"]))
  return isOff || (type !== undefined && Number(type) <= 0)
}

const toldByOneSignal = (row: JsonObject): Told | NotTold => {
  const { external_user_id: user, identifier, language, web_auth: auth, web_p256: p256dh } = row
  if (!isText(auth) || !isText(p256dh)) return { skipped: "without keys of Web Push" }
  if (isUnsubscribed(row)) return { skipped: "unsubscribed" }
  const locale = isText(language) && isLocale(language) ? { locale: language } : {}
  const data = { endpoint: identifier, keys: { auth, p256dh }, ...locale }
  return { data, user: cellOf(user), channels: undefined }
}

/**
 * The subscription of a line. Its id and timestamp are those of another store, where they may be
 * anything.
 */
export const toldBy = (text: string): Told | NotTold => {
  const json = jsonObjectOf(text)
  if (json === undefined) return { refused: "Expected a JSON object" }
  if (Object.hasOwn(json, "identifier") && !Object.hasOwn(json, "endpoint"))
    return toldByOneSignal(json)
  const { channels, id: _, last_modified: __, user, ...data } = json
  return { data, user: cellOf(user), channels: cellOf(channels) }
}
