// A page of the console, and what a person does there; readers for what is sent.
import type { Page } from "puppeteer-core"
import { expect } from "vitest"
import { call, until } from "#test/client.ts"
import type { PushService } from "#test/push-service.ts"

/** As many browsers as the service takes of one user at one push service. */
export const browsersEach = 20

/** Stores the browsers of so many users, who join the channel `news`. */
export const addReaders = async (url: string, push: PushService, count: number): Promise<void> => {
  const subscribe = async (user: string) => {
    const { subscription } = push.subscribe()
    const store = () => call(url, "POST", "/subscriptions", user, { data: subscription })
    // A busy machine may answer 503 first.
    await until(store, ({ status }) => status === 201 || status === 200)
  }
  const join = async (index: number) => {
    const user = `reader${index}`
    for (let each = 0; each < browsersEach; each++) await subscribe(user)
    expect((await call(url, "PUT", "/channels/news/registration", user)).status).toBe(202)
  }
  // Several users at once: writes at once to one list are refused.
  for (let index = 0; index < count; index += 25) {
    const some = Array.from({ length: Math.min(25, count - index) }, (_, more) => index + more)
    await Promise.all(some.map(join))
  }
}

export class Desk {
  readonly page: Page
  readonly #url: string

  /** `url`: the address of the service. */
  constructor(url: string, page: Page) {
    this.#url = url
    this.page = page
  }

  /** Opens a screen, such as `#/sent`, and logs in where the page asks who one is. */
  open = async (at: string, user: string): Promise<void> => {
    await this.page.goto(`${this.#url}/console/${at}`)
    await this.page.waitForSelector("[name=user], .who b")
    if ((await this.page.$("[name=user]")) !== null) {
      await this.page.type("[name=user]", user)
      await this.page.type("[name=password]", "secret")
      await this.page.keyboard.press("Enter")
    }
    await this.becomes(".who b", new RegExp(`^${user}$`))
  }

  /** Replaces what is in a field. */
  type = async (name: string, text: string): Promise<void> => {
    const field = await this.page.waitForSelector(`[name="${name}"]`)
    await field!.click({ count: 3 })
    await this.page.keyboard.press("Backspace")
    await field!.type(text)
  }

  /** Presses the button or link with this text, below an element. */
  press = async (text: string, within = "*"): Promise<void> => {
    const path = `//${within}//*[self::button or self::a][contains(normalize-space(.), "${text}")]`
    const button = await this.page.waitForSelector(`::-p-xpath(${path})`, { visible: true })
    await button!.click()
  }

  /** As it is shown, with lines. */
  text = async (selector: string): Promise<string> =>
    String(
      await this.page.evaluate(
        `document.querySelector(${JSON.stringify(selector)})?.innerText ?? ""`
      )
    )

  becomes = (selector: string, expected: RegExp): Promise<string> =>
    until(
      () => this.text(selector),
      (text) => expected.test(text)
    )

  /** The last part of the address: the id of the draft or broadcast that is shown. */
  id = async (screen: string): Promise<string> => {
    const parts = new RegExp(`#/${screen}/([^/]+)`)
    const at = await until(
      async () => this.page.url(),
      (url) => parts.test(url) && !url.endsWith("/new")
    )
    return parts.exec(at)![1]!
  }
}
