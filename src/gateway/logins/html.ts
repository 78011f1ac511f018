// The HTML pages of logins, for people: the question before a mail goes out, and why a login ended.
import {
  type LoginError,
  type LoginPages,
  loginErrorCode,
  loginErrors,
  type Question
} from "#identity/login/pages.ts"
import { html, pageHead, pagePolicy, pageStyle, pageType } from "../html.ts"
import type { ApiResponse } from "../http/response.ts"
import { noStore } from "../http/response-headers.ts"

const style = `${pageStyle}
body{max-width:34rem;margin-top:4rem}h1{font-size:1.5rem;line-height:1.3;margin:0 0 1rem}
p{margin:1rem 0}
h1,b{overflow-wrap:anywhere}small{color:var(--dim);font-size:.85rem}form{margin:1.5rem 0}
button{font:inherit;padding:.6rem 1.4rem;border:0;border-radius:.4rem;cursor:pointer;
background:var(--key);color:light-dark(#fff,#17191c)}
@media(max-width:40rem){body{margin-top:1.5rem}}`

const page = (
  status: number,
  title: string,
  body: ReadonlyArray<string>,
  headers: Readonly<Record<string, string>>
): ApiResponse => ({
  status,
  headers: { ...pageType, ...noStore, ...headers },
  text: [`${pageHead(title, style)}<main><h1>${html(title)}</h1>`, ...body, "</main></html>"].join(
    "\n"
  )
})

const hidden = (name: string, value: string) =>
  `<input type="hidden" name="${name}" value="${html(value)}">`

/**
 * Asks whether a login shall begin, with a form that posts to `action`. Whoever opens a link must
 * see for whom it is.
 */
export const questionPage = (
  { email, provider, redirect }: Question,
  action: string
): ApiResponse => {
  const site = new URL(redirect).host
  const form = [
    `<form method="post" action="${html(action)}">`,
    hidden("email", email),
    hidden("redirect", redirect),
    "<button>Log in</button></form>"
  ]
  const body = [
    `<p>You will be <b><bdi>${html(email)}</bdi></b> there, once you have shown that you receive`,
    "mail at this address.</p>",
    form.join(""),
    "<p><small>Is this not your address, or did you not ask for a login? Then close this page.",
    "</small></p>"
  ]
  // Chromium checks all redirects: the provider may go on to another one, by https.
  const targets = [new URL(action).origin, new URL(provider).origin, "https:"]
  return page(200, `Log in at ${site}?`, body, {
    ...pagePolicy(style, targets),
    // With the form comes our origin, which begins the login; never the address in the URL.
    "Referrer-Policy": "strict-origin"
  })
}

const openAgain = "Open the site again, and log in there."
const otherBrowser = {
  openid: openAgain,
  portier:
    "If a mail brought you here, it has a code, too: go back to the device and the browser where " +
    "you began, and type the code there. Or open the site in this browser, and log in again."
} as const

/** A failure in words, and the next step of the user. */
const sentencesOf = (error: LoginError, at: LoginPages["at"]): ReadonlyArray<string> => {
  const code = loginErrorCode(error)
  if (error._tag === "LoginRefused" && code === "invalid_request") {
    if (error.field === "email") return ["This is no mail address. Please go back and correct it."]
    const wrong = [error.field, error.description].filter((part) => part !== undefined)
    return [
      "The page that sent you here made a mistake. Please tell its operator:",
      wrong.join(": ")
    ]
  }
  const sentence = loginErrors[code]
  if (code === "temporarily_unavailable") return [sentence]
  return [sentence, code === "other_browser" ? otherBrowser[at] : openAgain]
}

/** Tells a user why a login ended. `response`: what programs get. */
export const failurePage = (
  { error: failed, headers, status }: ApiResponse,
  error: LoginError,
  at: LoginPages["at"]
): ApiResponse => {
  const paragraphs = sentencesOf(error, at).map((each) => `<p>${html(each)}</p>`)
  const all = { ...headers, ...pagePolicy(style), "Referrer-Policy": "no-referrer" }
  return {
    ...page(status, "This login cannot go on", paragraphs, all),
    ...(failed && { error: failed })
  }
}
