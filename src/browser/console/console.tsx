// The console: its header, and the screen that the address names.
import { render, type VNode } from "preact"
import { useLayoutEffect } from "preact/hooks"
import {
  answerOther,
  bringLogin,
  dismissFormer,
  logOut,
  lookAgain,
  type Session,
  type SessionState,
  sessions,
  startSession
} from "./api/session.ts"
import { Button, ButtonLink } from "./parts/button.tsx"
import { Dialog } from "./parts/dialog.tsx"
import { NotFound } from "./parts/frame.tsx"
import { Bell, Plus } from "./parts/icons.tsx"
import { Awaited, Ghosts, useLoad } from "./parts/load.tsx"
import { Box, Reported } from "./parts/problem.tsx"
import { reported } from "./parts/report.ts"
import { BroadcastScreen } from "./screens/broadcast.tsx"
import { Compose, NewDraft } from "./screens/compose.tsx"
import { Edit } from "./screens/edit.tsx"
import { Login, LoginAgain } from "./screens/login.tsx"
import { isTab, Notifications } from "./screens/notifications.tsx"
import { Review } from "./screens/review.tsx"
import { UnsavedDrafts } from "./screens/unsaved.tsx"
import { address, type Route, route } from "./state/route.ts"
import { useStore } from "./state/store.ts"
import {
  chooseLanguage,
  type Language,
  language,
  languageNames,
  languages,
  t
} from "./words/language.ts"

const LanguageChoice = () => (
  <label>
    <span class="unseen">{t("languageLabel")}</span>
    <select
      class="select"
      value={language.value}
      onChange={({ currentTarget }) => chooseLanguage(currentTarget.value as Language)}
    >
      {languages.map((each) => (
        <option key={each} value={each} lang={each}>
          {languageNames[each]}
        </option>
      ))}
    </select>
  </label>
)

interface TopProps {
  readonly session: Session
  readonly at: Route
  readonly isDevelopment: boolean
}

const Top = ({ at, isDevelopment, session }: TopProps) => {
  const links = [
    { to: address("sent"), text: t("notifications"), isHere: at[0] !== "try" },
    ...(isDevelopment ? [{ to: address("try"), text: t("tryIt"), isHere: at[0] === "try" }] : [])
  ]
  return (
    <header class="top">
      <div>
        <a class="brand" href={address("sent")}>
          <Bell /> <span>Bellcast</span>
        </a>
        <nav aria-label={t("mainMenu")}>
          {links.map(({ isHere, text, to }) => (
            <a key={to} href={to} aria-current={isHere ? "page" : undefined}>
              {text}
            </a>
          ))}
        </nav>
        <div class="who">
          <LanguageChoice />
          <span>
            <span class="unseen">{t("loggedInAs")} </span>
            <b title={session.user}>{session.name}</b>
          </span>
          <Button kind="quiet" onPress={logOut}>
            {t("logOut")}
          </Button>
        </div>
        <ButtonLink
          kind="prominent"
          icon={Plus}
          to={address("draft", "new")}
          name={t("newNotification")}
        >
          <span class="long">{t("newNotification")}</span>
          <span class="short">{t("newOne")}</span>
        </ButtonLink>
      </div>
    </header>
  )
}

/** Read when it is shown: outside development nobody needs it. */
const tryIt = () => import("./screens/try.tsx").then(({ TryIt }) => TryIt)

interface LaterProps {
  readonly screen: () => Promise<() => VNode>
}

const Later = ({ screen }: LaterProps) => {
  const loaded = useLoad(async () => ({ Screen: await screen() }), [screen])
  return (
    <Awaited of={loaded} waiting={<Ghosts />}>
      {({ Screen }) => <Screen />}
    </Awaited>
  )
}

const draftScreen = (id: string, part: string | undefined) => {
  if (part === "review") return <Review key={`review ${id}`} id={id} />
  if (part !== undefined) return <NotFound key={part} />
  return id === "new" ? <NewDraft key={id} /> : <Compose key={id} id={id} />
}

const broadcastScreen = (id: string, part: string | undefined) => {
  if (part === "edit") return <Edit key={`edit ${id}`} id={id} />
  return part === undefined ? <BroadcastScreen key={id} id={id} /> : <NotFound key={part} />
}

/** The screen of an address. Its key: another address of the same screen begins it anew. */
const screenOf = ([name = "sent", id, part]: Route, isDevelopment: boolean) => {
  if (isTab(name)) return <Notifications key="notifications" tab={name} />
  if (name === "broadcast" && id !== undefined) return broadcastScreen(id, part)
  if (name === "draft" && id !== undefined) return draftScreen(id, part)
  if (name === "try" && isDevelopment) return <Later key="try" screen={tryIt} />
  return <NotFound key={name} />
}

interface OtherLoginProps {
  readonly state: SessionState
  readonly session: Session
  readonly other: Session
}

/** Nothing is done in the name of another person before this is answered. */
const OtherLogin = ({ other, session, state }: OtherLoginProps) => {
  const names = { name: session.name, other: other.name }
  // A proxy sends its user with every request: this page cannot go on as the former one.
  const isByProxy = other.kind === "proxy" && session.kind === "proxy"
  const way = isByProxy ? "Proxy" : state.hasEnded ? "Again" : "Link"
  return (
    <Dialog title={t(isByProxy ? "otherLoginNow" : "otherLoginTitle", names)}>
      <p>{t(`otherLogin${way}`, names)}</p>
      <p>{t("otherLoginKeeps", names)}</p>
      <div class="buttons">
        <Button onPress={() => answerOther(true)}>
          {t(isByProxy ? "otherLoginGoOn" : "otherLoginChange", names)}
        </Button>
        <Button kind="prominent" onPress={isByProxy ? () => lookAgain() : () => answerOther(false)}>
          {t(isByProxy ? "otherLoginBack" : "otherLoginStay", names)}
        </Button>
      </div>
    </Dialog>
  )
}

/** Another person's page begins anew: nothing of the former one stays on the screen. */
const Screen = ({ isDevelopment, state }: { isDevelopment: boolean; state: SessionState }) => {
  const at = useStore(route)
  const { former, session } = state
  useLayoutEffect(() => reported.set([]), [session?.user])
  return (
    <main id="main" tabIndex={-1} key={session?.user}>
      {former !== undefined && (
        <Box kind="warning" onDismiss={dismissFormer}>
          <b>{t("nowYou", { name: session?.name ?? "" })}</b> {t("nowYouText", { name: former })}
        </Box>
      )}
      <Reported />
      <UnsavedDrafts />
      {screenOf(at, isDevelopment)}
    </main>
  )
}

const Console = () => {
  const state = useStore(sessions)
  const at = useStore(route)
  const shownIn = useStore(language)
  useLayoutEffect(() => {
    document.documentElement.lang = shownIn
  }, [shownIn])
  if (state.phase === "starting")
    return (
      <main class="login" id="main">
        <p role="status">
          <span class="ring" /> {t("loginStarting")}
        </p>
      </main>
    )
  const { config, other, session } = state
  if (state.phase === "out" || session === undefined) return <Login state={state} />
  const isDevelopment = config?.development === true
  return (
    <>
      <button type="button" class="skip" onClick={toMain}>
        {t("skip")}
      </button>
      <Top at={at} isDevelopment={isDevelopment} session={session} />
      <Screen isDevelopment={isDevelopment} state={state} />
      {other ? (
        <OtherLogin other={other} session={session} state={state} />
      ) : (
        state.hasEnded && <LoginAgain state={state} />
      )}
    </>
  )
}

/** No link: its address would name another screen. */
const toMain = () => document.getElementById("main")?.focus()

addEventListener("bellcast-login", (event) => {
  void bringLogin((event as CustomEvent<Readonly<Record<string, string>>>).detail)
})
const { bellcastLogin = {} } = window as {
  readonly bellcastLogin?: Readonly<Record<string, string>>
}
render(<Console />, document.getElementById("console")!)
void startSession(bellcastLogin)
