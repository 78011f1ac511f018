// The address names the screen: what follows `#/`.
import { Store } from "./store.ts"

/** The parts of the address, decoded: `#/draft/a/review` is `["draft", "a", "review"]`. */
export type Route = ReadonlyArray<string>

const decoded = (part: string): string => {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

const read = (): Route =>
  location.hash
    .replace(/^#\/?/, "")
    .split("/")
    .filter((part) => part !== "")
    .map(decoded)

export const route = new Store<Route>(read())

addEventListener("hashchange", () => route.set(read()))

/** For `href`. */
export const address = (...parts: ReadonlyArray<string>): string =>
  `#/${parts.map(encodeURIComponent).join("/")}`

export const go = (...parts: ReadonlyArray<string>): void => {
  location.hash = address(...parts)
}

/** Instead of the present one: Back does not come to it. */
export const goInstead = (...parts: ReadonlyArray<string>): void => {
  history.replaceState(null, "", address(...parts))
  route.set(read())
}
