// Firefox's own windows, with its rights: the prompt for a permission, and the notifications, which
// it shows in windows of its own where there is no desktop. Buttons of notifications are not shown
// there: a click on one is reported by the window's listener, as a desktop's service does.
import type { Browser, Page } from "puppeteer-core"
import { until } from "#test/client.ts"

interface Connection {
  readonly send: (method: string, parameters: object) => Promise<{ readonly result: unknown }>
}

/** Commands of WebDriver BiDi that puppeteer has no methods for. */
const connectionOf = (browser: Browser) =>
  (browser as unknown as { readonly connection: Connection }).connection

interface Window {
  readonly context: string
  readonly url: string
}

const windowsOf = async (browser: Browser, url: string): Promise<ReadonlyArray<Window>> => {
  const tree = { "moz:scope": "chrome" }
  const { result } = await connectionOf(browser).send("browsingContext.getTree", tree)
  const { contexts } = result as { readonly contexts: ReadonlyArray<Window> }
  return contexts.filter((each) => each.url === url)
}

/** Evaluates an expression with the rights of Firefox's own code. The value passes as JSON. */
const valueIn = async <A>(
  browser: Browser,
  { context }: Window,
  expression: string
): Promise<A> => {
  const { result } = await connectionOf(browser).send("script.evaluate", {
    expression: `JSON.stringify(${expression})`,
    target: { context },
    awaitPromise: true
  })
  const { exceptionDetails, result: text } = result as {
    readonly exceptionDetails?: { readonly text: string }
    readonly result: { readonly value: string }
  }
  if (exceptionDetails !== undefined) throw new Error(`Firefox: ${exceptionDetails.text}`)
  return JSON.parse(text.value)
}

/**
 * Waits for the question whether the page may show notifications, and answers it by Firefox's own
 * button. The page is brought to the front: a prompt of a hidden tab is not shown.
 */
export const answerPrompt = async (page: Page, answer: "Allow" | "Block"): Promise<void> => {
  await page.bringToFront()
  const browser = page.browser()
  const [window] = await windowsOf(browser, "chrome://browser/content/browser.xhtml")
  const panel = "PopupNotifications.panel"
  const isAsked = `PopupNotifications.getNotification("web-notifications") !== null
    && ${panel}.state === "open"`
  await until(
    () => valueIn<boolean>(browser, window!, isAsked),
    (asked) => asked
  )
  const button = answer === "Allow" ? "button" : "secondaryButton"
  await valueIn(browser, window!, `[${panel}.firstElementChild.${button}.click()]`)
}

const alertUrl = "chrome://global/content/alerts/alert.xhtml"

/** A window shows its title once it has read its arguments. */
const titleOf = `document.querySelector("#alertTitleLabel")?.value ?? ""`

/** An action that a listener of a notification takes for a click on a button. */
const actionOf = (action: string) => `{
  QueryInterface: ChromeUtils.generateQI(["nsIAlertAction"]), action: ${JSON.stringify(action)},
  title: "", iconURL: "", windowsSystemActivationType: false, opaqueRelaunchData: ""
}`

/** Waits for the newest notification with this title and clicks it, or its button `action`. */
export const clickNotification = async (
  browser: Browser,
  title: string,
  action?: string
): Promise<void> => {
  const find = async () => {
    const windows = await windowsOf(browser, alertUrl)
    const titles = await Promise.all(
      windows.map((each) => valueIn<string>(browser, each, titleOf).catch(() => ""))
    )
    return windows[titles.lastIndexOf(title)]
  }
  const window = await until(find, (each) => each !== undefined)
  const listener = "window.arguments[10]"
  const cookie = "window.arguments[4]"
  const click =
    action === undefined
      ? `document.querySelector("#alertBox").click()`
      : `${listener}.observe(${actionOf(action)}, "alertclickcallback", ${cookie})`
  await valueIn(browser, window!, `[${click}]`)
}
