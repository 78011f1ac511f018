// The language of the console, and how it writes texts, numbers and times.
import { Store } from "../state/store.ts"
import { texts } from "./texts.ts"

export const languages = ["en", "de"] as const
export type Language = (typeof languages)[number]

/** In themselves, for whoever cannot read the present one. */
export const languageNames: Readonly<Record<Language, string>> = { en: "English", de: "Deutsch" }

const place = "bellcast-console-language"
const isLanguage = (text: string | null | undefined): text is Language =>
  languages.some((each) => each === text)

const chosen = (): Language => {
  const stored = localStorage.getItem(place)
  if (isLanguage(stored)) return stored
  return navigator.languages.map((tag) => tag.slice(0, 2)).find(isLanguage) ?? "en"
}

export const language = new Store<Language>(chosen())

export const chooseLanguage = (next: Language): void => {
  localStorage.setItem(place, next)
  language.set(next)
}

type Texts = Readonly<Record<string, readonly [english: string, german: string]>>

/** The names of the values in a text: of `{count}` and `{count|reader|readers}` both `count`. */
type ValuesIn<S> = S extends `${string}{${infer Inside}}${infer Rest}`
  ? (Inside extends `${infer Name}|${string}` ? Name : Inside) | ValuesIn<Rest>
  : never
type Given<S> = [ValuesIn<S>] extends [never]
  ? []
  : [values: Readonly<Record<ValuesIn<S>, string | number>>]

/** Regional habits, such as the order of day and month, where the browser has that language. */
const regional = (): string => {
  const { value } = language
  return navigator.languages.find((tag) => tag.startsWith(`${value}-`)) ?? value
}

const pluralRules = new Map<string, Intl.PluralRules>()
const pluralIn = (tag: string, count: number): Intl.LDMLPluralRule => {
  const rules = pluralRules.get(tag) ?? new Intl.PluralRules(tag)
  pluralRules.set(tag, rules)
  return rules.select(count)
}

export const number = (value: number): string => value.toLocaleString(regional())
export const percent = (share: number): string => {
  // 99.96 % is not 100 %: somebody still waits.
  const shown = share < 1 && share > 0.99 ? 0.99 : share
  return shown.toLocaleString(regional(), { style: "percent" })
}

/** Gives the texts of a file in the language of the console. */
export const textsOf = <T extends Texts>(all: T) => ({
  t: <K extends keyof T & string>(key: K, ...given: Given<T[K][0]>): string =>
    filled(all[key]!, given[0] ?? {}),
  /** For a key that is made of a word of the API; undefined: there is no such text. */
  tIf: (key: string, values: Readonly<Record<string, string | number>> = {}) =>
    Object.hasOwn(all, key) ? filled(all[key]!, values) : undefined
})

const filled = (
  text: readonly [string, string],
  values: Readonly<Record<string, string | number>>
): string =>
  text[languages.indexOf(language.value)]!.replace(/\{([^}]+)\}/g, (_, inside: string) => {
    const [name = "", one, other] = inside.split("|")
    const value = values[name] ?? ""
    if (one === undefined || other === undefined)
      return typeof value === "number" ? number(value) : value
    return pluralIn(language.value, Number(value)) === "one" ? one : other
  })

/** Texts of the console; `t` takes a key and the values in the text. */
export const { t, tIf } = textsOf(texts)

/** A list of names: "news, sports and weather". */
export const list = (names: ReadonlyArray<string>): string =>
  new Intl.ListFormat(regional(), { type: "conjunction" }).format(names)

/** The name of a language; the tag itself where it has extensions, such as `de-x-formal`. */
export const languageName = (tag: string): string => {
  try {
    return new Intl.DisplayNames(language.value, { type: "language" }).of(tag) ?? tag
  } catch {
    return tag
  }
}

export const zone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone

const format = (at: number, options: Intl.DateTimeFormatOptions): string =>
  new Date(at).toLocaleString(regional(), options)

const clock = { hour: "2-digit", minute: "2-digit" } as const

/** The day counted from today: -1 is yesterday. */
const dayOf = (at: number): number => {
  const [day, today] = [new Date(at), new Date()]
  for (const each of [day, today]) each.setHours(0, 0, 0, 0)
  return Math.round((day.getTime() - today.getTime()) / 86_400_000)
}

/** A time in the zone of the reader, as short as it is clear: "14:02", "tomorrow at 09:00". */
export const time = (at: number): string => {
  const day = dayOf(at)
  const hour = format(at, clock)
  if (day === 0) return t("todayAt", { time: hour })
  if (day === 1) return t("tomorrowAt", { time: hour })
  if (day === -1) return t("yesterdayAt", { time: hour })
  const isNear = new Date(at).getFullYear() === new Date().getFullYear()
  const date = format(at, {
    day: "numeric",
    month: "short",
    ...(isNear ? {} : { year: "numeric" })
  })
  return t("dateAt", { date, time: hour })
}

/** "3 May", with the year where it is another one. */
export const day = (at: number): string => {
  const isThisYear = new Date(at).getFullYear() === new Date().getFullYear()
  return format(at, { day: "numeric", month: "long", ...(isThisYear ? {} : { year: "numeric" }) })
}

export const minute = (at: number): string => format(at, clock)
export const second = (at: number): string => format(at, { ...clock, second: "2-digit" })

/** With the zone: "Tuesday, 24 December 2026 at 18:00 GMT+1". */
export const wholeTime = (at: number): string =>
  format(at, {
    weekday: "long",
    day: "numeric",
    month: "long",
    year: "numeric",
    ...clock,
    timeZoneName: "short"
  })

/** How long: "17 h 12 min", "42 s". */
export const duration = (millis: number): string => {
  const seconds = Math.max(0, Math.round(millis / 1_000))
  const minutes = Math.floor(seconds / 60)
  const hours = Math.floor(minutes / 60)
  const days = Math.floor(hours / 24)
  if (days > 0) return t("daysHours", { days, hours: hours % 24 })
  if (hours > 0) return t("hoursMinutes", { hours, minutes: minutes % 60 })
  if (minutes > 9) return t("minutes", { minutes })
  if (minutes > 0) return t("minutesSeconds", { minutes, seconds: seconds % 60 })
  return t("seconds", { seconds })
}
