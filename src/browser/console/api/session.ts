// The session: its user, how it began, and how it is kept over a reload.
import { goInstead } from "../state/route.ts"
import { Store } from "../state/store.ts"
import { login, Problem, randomId, request, root } from "./client.ts"
import type { Config, LoginKind, Root } from "./shapes.ts"

/** `link`: a one-time token in a link of the site. `pasted`: a token that somebody typed. */
export type SessionKind = Exclude<LoginKind, "signed"> | "link" | "pasted"

export interface Session {
  readonly kind: SessionKind
  /** Of the header; absent where a proxy knows the user. */
  readonly authorization?: string
  /** As people say it; always visible. */
  readonly name: string
  /** The id by which the API names the user. */
  readonly user: string
  readonly mayNameUsers: boolean
}

export interface SessionState {
  readonly phase: "starting" | "out" | "in"
  readonly config?: Config
  readonly session?: Session
  /** The login ended while the page was in use. */
  readonly hasEnded?: boolean
  /** Another person, by a link, another login, or a proxy: a question is open. */
  readonly other?: Session
  /** Whose page this was before, where another person entered: said until it is dismissed. */
  readonly former?: string
  readonly problem?: Problem
  /** The login failed at the provider, which says why. */
  readonly refusal?: string
  /** How the session began that was ended here: its provider may still know the person. */
  readonly endedKind?: SessionKind
}

export const sessions = new Store<SessionState>({ phase: "starting" })

const change = (members: Partial<SessionState>) => sessions.set({ ...sessions.value, ...members })
const without = (...names: ReadonlyArray<keyof SessionState>): SessionState => {
  const left = { ...sessions.value }
  for (const name of names) delete left[name]
  return left
}

/** The session, on screens that are shown to nobody else. */
export const session = (): Session => {
  const { session: found } = sessions.value
  if (found === undefined) throw new Error("Nobody is logged in")
  return found
}

const place = "bellcast-console-session"
const begunPlace = "bellcast-console-login-begun"
/** A login at a provider takes no longer than the service allows. */
const begunMaxMillis = 15 * 60_000
const screenPlace = "bellcast-console-login-screen"

type Kept = Pick<Session, "kind" | "name" | "authorization"> & { readonly user?: string }

const kept = (): Kept | undefined => {
  try {
    return JSON.parse(sessionStorage.getItem(place) ?? "") as Kept
  } catch {
    return undefined
  }
}

/** Whose page this is: of who is logged in, else of whose login this tab had last. */
const owner = (): Pick<Kept, "name" | "user"> | undefined => sessions.value.session ?? kept()

const isOf = ({ user }: Session): boolean => [undefined, user].includes(owner()?.user)

/** A reload keeps the login of this tab, but a pasted token: it may be that of a server. */
const enter = (session: Session): void => {
  const { authorization, kind, name, user } = session
  const isSame = isOf(session)
  // A person who enters twice, by two answers of one moment, has not read it yet.
  const former = isSame ? sessions.value.former : owner()?.name
  // The screen still shows what is the former person's.
  if (!isSame && sessions.value.session !== undefined) goInstead("sent")
  if (kind === "pasted") sessionStorage.removeItem(place)
  else sessionStorage.setItem(place, JSON.stringify({ kind, name, authorization, user }))
  login.authorization = authorization
  login.user = user
  sessions.set({
    ...without("other", "former", "problem", "refusal", "hasEnded", "endedKind"),
    phase: "in",
    session,
    ...(former !== undefined && { former })
  })
}

/** Another person than the one whose page is open enters by the answer to a question only. */
const enterOrAsk = (found: Session): void => {
  const isOpen = sessions.value.session !== undefined
  if (isOpen && !isOf(found)) change({ other: found })
  else enter(found)
}

export const dismissFormer = (): void => sessions.set(without("former"))

login.ended = () => {
  if (sessions.value.phase === "in") change({ hasEnded: true })
}

login.isAnother = () => {
  // Requests of one moment are refused together.
  if (sessions.value.other === undefined) void lookAgain().catch(() => {})
}

/** Asks who sends the requests of this page now. */
export const lookAgain = async (): Promise<void> => {
  const found = await verified(session())
  if (found === undefined) change({ hasEnded: true })
  else enterOrAsk(found)
}

/** Asks the service who this is. Undefined: nobody. */
const verified = async ({ authorization, kind, name }: Kept): Promise<Session | undefined> => {
  const { body } = await request<Root>("", { authorization: authorization ?? null })
  if (body.user === undefined) return undefined
  const { id, users } = body.user
  return {
    kind,
    // At a proxy somebody else may have logged in since the name was stored.
    name: (kind === "proxy" ? "" : name) || nameIn(authorization) || id.slice(id.indexOf(":") + 1),
    user: id,
    mayNameUsers: users === true,
    ...(authorization === undefined ? {} : { authorization })
  }
}

/** The name in a signed token, to be shown only: the service verifies it. */
const nameIn = (authorization = ""): string => {
  const [, claims = ""] = authorization.replace(/^\w+ /, "").split(".")
  try {
    const bytes = Uint8Array.from(atob(claims.replaceAll("-", "+").replaceAll("_", "/")), (char) =>
      char.charCodeAt(0)
    )
    const { email, name, preferred_username, sub } = JSON.parse(new TextDecoder().decode(bytes))
    return [name, preferred_username, email, sub].find((each) => typeof each === "string") ?? ""
  } catch {
    return ""
  }
}

/** A login that is tried. Undefined where the service knows nobody by it. */
const tryLogin = async (login: Kept): Promise<Session | undefined> => {
  const found = await verified(login)
  if (found !== undefined) enterOrAsk(found)
  return found
}

const basic = (user: string, password: string): string => {
  const bytes = new TextEncoder().encode(`${user}:${password}`)
  return `Basic ${btoa(String.fromCharCode(...bytes))}`
}

/** In development: any name and any password are a user. */
export const logInWithPassword = (user: string, password: string) =>
  tryLogin({ kind: "basicauth", name: user, authorization: basic(user, password) })

export const logInWithToken = (token: string) =>
  tryLogin({ kind: "pasted", name: "", authorization: `Bearer ${token.trim()}` })

/** Where nobody is logged in, a proxy lets the request pass without a user, or refuses it. */
export const logInByProxy = () =>
  tryLogin({ kind: "proxy", name: "" }).catch((problem: Problem) => {
    if (problem.code !== "unauthenticated") throw problem
    return undefined
  })

/** A login at a provider. `mail`: whose mail; the service knows a hash of it alone. */
interface Begun {
  readonly id: string
  readonly at: number
  readonly mail: string
}

let isLeaving = false
addEventListener("pageshow", () => {
  isLeaving = false
})
/** A copy of what was typed is kept: a warning that it may be lost would be untrue. */
export const isLeavingForLogin = (): boolean => isLeaving

/** Leaves the page for the provider of a policy, which leads back here. */
export const leaveForLogin = (kind: "openid" | "portier", url: string, mail = ""): void => {
  isLeaving = true
  const begun: Begun = { id: randomId(), at: Date.now(), mail }
  // A link in a mail opens another tab, which must know that this browser began the login.
  localStorage.setItem(begunPlace, JSON.stringify(begun))
  sessionStorage.setItem(screenPlace, location.hash)
  // A login may return to the page itself, by no other name.
  const back = `${new URL("console/", root).href}#begun=${begun.id}&${kind}=`
  const target = new URL(url, root)
  target.searchParams.set(kind === "openid" ? "callback" : "redirect", back)
  if (kind === "portier") target.searchParams.set("email", mail)
  location.assign(target)
}

/** The last work with the login, such as storing what was typed. */
export const beforeLogOut = new Set<() => Promise<unknown>>()

export const logOut = async (): Promise<void> => {
  const { kind } = session()
  await Promise.all([...beforeLogOut].map((each) => each()))
  await endAtService(session())
  sessionStorage.removeItem(place)
  login.authorization = undefined
  login.user = undefined
  sessions.set({
    ...without("session", "hasEnded", "former", "problem", "refusal"),
    phase: "out",
    endedKind: kind
  })
}

/** The others end at their provider, or by themselves. */
const endAtService = async ({ authorization, kind }: Session): Promise<void> => {
  if (kind !== "link") return
  await request("console/session", {
    method: "DELETE",
    authorization: authorization ?? null
  }).catch(() => {})
}

/** The answer to the question whether a link may replace the session. */
export const answerOther = async (isWanted: boolean): Promise<void> => {
  const { other } = sessions.value
  if (other === undefined) return
  if (isWanted) return enter(other)
  sessions.set(without("other"))
  await endAtService(other)
}

type Fragment = Readonly<Record<string, string>>

/** The login that the address brought, before `fragment.js` took it away. */
const loginIn = async (given: Fragment): Promise<Session | undefined> => {
  const { error, login: once, openid, portier } = given
  if (once !== undefined) {
    const { body } = await request<{ readonly data: { token: string; user: string } }>(
      "console/session",
      { method: "POST", body: { data: { token: once } }, authorization: null }
    )
    return verified({ kind: "link", name: "", authorization: `Bearer ${body.data.token}` })
  }
  if (error === undefined && openid === undefined && portier === undefined) return undefined
  const { mail } = begunBy(given)
  const found = error === undefined ? await verified(broughtBy(given, mail)) : undefined
  if (error !== undefined) change({ refusal: given["error_description"] ?? error })
  else if (found === undefined) change({ problem: new Problem("unauthenticated", 401) })
  const screen = sessionStorage.getItem(screenPlace) ?? ""
  sessionStorage.removeItem(screenPlace)
  // Back to the screen whose login had ended, and to what was typed there.
  if (screen.startsWith("#/") && (found === undefined || isOf(found))) location.hash = screen
  return found
}

const broughtBy = ({ openid, portier }: Fragment, mail: string): Kept =>
  openid === undefined
    ? { kind: "portier", name: mail, authorization: `Portier ${portier}` }
    : { kind: "openid", name: "", authorization: `Bearer ${openid}` }

/**
 * The login that the address ends. One that this browser did not begin is another person's: a link
 * would make us them.
 */
const begunBy = ({ begun }: Fragment): Begun => {
  const stored = JSON.parse(localStorage.getItem(begunPlace) ?? "{}") as Partial<Begun>
  const { at = 0, id, mail = "" } = stored
  if (id === undefined || id !== begun || Date.now() - at > begunMaxMillis)
    throw new Problem("login-not-begun")
  localStorage.removeItem(begunPlace)
  return { id, at, mail }
}

/**
 * Enters the login that the address brought. Another person's waits for the answer to a question.
 */
const enterBrought = async (given: Fragment): Promise<void> => {
  const brought = await loginIn(given).catch((problem: Problem) => {
    change({ problem })
    return undefined
  })
  if (brought !== undefined) enterOrAsk(brought)
}

const read = async (given: Fragment): Promise<void> => {
  const { body: config } = await request<Config>("console/config.json", { authorization: null })
  change({ config })
  // On the origin of a site, any hole of its pages could publish as whoever logs in here.
  if (config.origin !== location.origin) throw new Problem("wrong-origin", 0, config.origin)
  const stored = kept()
  const before = stored && (await verified(stored))
  if (before !== undefined) enter(before)
  const hasProxy = config.logins.some(({ kind }) => kind === "proxy")
  // Asked before a link is entered: whom a proxy knows is logged in, without a stored session.
  if (hasProxy && before === undefined && given["login"] !== undefined) await logInByProxy()
  await enterBrought(given)
  if (sessions.value.session !== undefined) return
  if (hasProxy && (await logInByProxy()) !== undefined) return
  const isTrial = config.development && location.hash === "#/try"
  // A newcomer sees a push without a login; with any password, every name is a user.
  if (isTrial && (await logInWithPassword("alice", "demo")) !== undefined) return
  change({ phase: "out" })
}

/** At the load of the page, and again where the service did not answer. */
export const startSession = (given: Fragment): Promise<void> => {
  sessions.set({ phase: "starting" })
  started = read(given).catch((problem: Problem) => change({ phase: "out", problem }))
  return started
}

let started: Promise<void> = Promise.resolve()

/** A login that a link brought to the open page. */
export const bringLogin = async (given: Fragment): Promise<void> => {
  await started
  await (sessions.value.phase === "in" ? enterBrought(given) : startSession(given))
}
