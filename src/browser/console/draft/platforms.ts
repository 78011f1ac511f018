// How systems show a notification, as far as it can be known: which members they leave out, and
// about where they cut a text. Sources: MDN's compatibility data for Notification (image and
// actions: Chromium only; icon: not Safari), Microsoft's guide to toasts (two lines of title, four
// of text), and for the columns the widths of the systems' own windows at their usual font.
import type { Action } from "../api/shapes.ts"
import type { Written } from "./content.ts"

export const platforms = ["windows", "macos", "android", "iphone", "firefox"] as const
export type Platform = (typeof platforms)[number]

interface Room {
  /** Of the width of a digit. */
  readonly columns: number
  readonly lines: number
}

interface Habits {
  readonly title: Room
  readonly body: Room
  /** Of the text below an image. */
  readonly bodyWithImage?: Room
  readonly hasImage: boolean
  /** Else it shows the icon of the site or of its app. */
  readonly hasIcon: boolean
  readonly buttons: number
}

const habits: Readonly<Record<Platform, Habits>> = {
  windows: {
    title: { columns: 42, lines: 2 },
    body: { columns: 48, lines: 4 },
    hasImage: true,
    hasIcon: true,
    buttons: 2
  },
  macos: {
    title: { columns: 38, lines: 1 },
    body: { columns: 42, lines: 4 },
    hasImage: false,
    hasIcon: false,
    buttons: 0
  },
  android: {
    title: { columns: 38, lines: 1 },
    body: { columns: 46, lines: 7 },
    bodyWithImage: { columns: 46, lines: 1 },
    hasImage: true,
    hasIcon: true,
    buttons: 2
  },
  iphone: {
    title: { columns: 34, lines: 2 },
    body: { columns: 40, lines: 4 },
    hasImage: false,
    hasIcon: false,
    buttons: 0
  },
  firefox: {
    title: { columns: 40, lines: 1 },
    body: { columns: 46, lines: 4 },
    hasImage: false,
    hasIcon: true,
    buttons: 0
  }
}

export type LeftOut = "image" | "icon" | "buttons" | "titleEnd" | "bodyEnd"

export interface Shown {
  readonly title: string
  readonly body: string
  readonly image: string | undefined
  readonly icon: string | undefined
  readonly buttons: ReadonlyArray<Action>
  /** Parts that were written and are not shown. */
  readonly leftOut: ReadonlyArray<LeftOut>
}

export const shownOn = (platform: Platform, written: Written): Shown => {
  const { bodyWithImage, buttons, hasIcon, hasImage, ...rooms } = habits[platform]
  const { actions = [], body = "", icon, image, title = "" } = written
  const shownTitle = cut(title, rooms.title)
  const shownBody = cut(body, (hasImage && image && bodyWithImage) || rooms.body)
  const leftOut: ReadonlyArray<LeftOut | false> = [
    Boolean(image) && !hasImage && "image",
    Boolean(icon) && !hasIcon && "icon",
    actions.length > buttons && "buttons",
    shownTitle !== title.trim() && "titleEnd",
    shownBody !== body.trim() && "bodyEnd"
  ]
  return {
    title: shownTitle,
    body: shownBody,
    image: hasImage ? image : undefined,
    icon: hasIcon ? icon : undefined,
    buttons: actions.slice(0, buttons),
    leftOut: leftOut.filter((each) => each !== false)
  }
}

const graphemes = new Intl.Segmenter()
const isWide = /\p{Extended_Pictographic}|[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uff00-\uff60]/u

const columnsOf = (text: string): number => {
  let columns = 0
  for (const { segment } of graphemes.segment(text)) columns += isWide.test(segment) ? 2 : 1
  return columns
}

/** As much of a text as fits into some lines that break between words, with "…" where it ends. */
export const cut = (text: string, room: Room): string => {
  const given = text.trim()
  let used = 0
  let [line, end] = [1, 0]
  for (const { 0: token, index } of given.matchAll(/\n|[^\S\n]+|\S+/gu)) {
    const columns = columnsOf(token)
    const isBreak = token === "\n"
    if (isBreak || (used + columns > room.columns && used > 0 && token.trim() !== "")) {
      line += 1
      used = 0
    }
    if (line > room.lines) return `${given.slice(0, end).trimEnd()}…`
    if (columns > room.columns) {
      const [fits, lines] = longFits(token, room, line)
      if (fits < token.length) return `${given.slice(0, index + fits)}…`
      line = lines
    }
    used += isBreak ? 0 : columns
    end = index + token.length
  }
  return given
}

/** How much of a word that is longer than a line fits, and the line that it ends on. */
const longFits = (word: string, room: Room, begin: number): readonly [number, number] => {
  let [line, used] = [begin, 0]
  for (const { index, segment } of graphemes.segment(word)) {
    const columns = columnsOf(segment)
    if (used + columns > room.columns) {
      line += 1
      used = 0
    }
    if (line > room.lines) return [index, room.lines]
    used += columns
  }
  return [word.length, line]
}
