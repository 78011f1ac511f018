// The login: what this service offers, the most usual one first.
import { useState } from "preact/hooks"
import {
  leaveForLogin,
  logInByProxy,
  logInWithPassword,
  logInWithToken,
  type Session,
  type SessionState,
  startSession
} from "../api/session.ts"
import type { Config } from "../api/shapes.ts"
import { Button } from "../parts/button.tsx"
import { Dialog } from "../parts/dialog.tsx"
import { Field } from "../parts/field.tsx"
import { Heading } from "../parts/frame.tsx"
import { Bell } from "../parts/icons.tsx"
import { Box, ProblemBox } from "../parts/problem.tsx"
import { problemOf } from "../parts/report.ts"
import { t } from "../words/language.ts"

type Login = Config["logins"][number]
type Entering = () => Promise<Session | undefined>

/** Tries a login; what went wrong is shown below its form until the next try. */
const useEntering = (nobody: string) => {
  const [isBusy, showBusy] = useState(false)
  const [wrong, showWrong] = useState<unknown>()
  const enter = async (entering: Entering) => {
    showBusy(true)
    showWrong(undefined)
    try {
      if ((await entering()) === undefined) showWrong(nobody)
    } catch (cause) {
      showWrong(cause)
    } finally {
      showBusy(false)
    }
  }
  const box =
    typeof wrong === "string" ? (
      <Box kind="error">{wrong}</Box>
    ) : (
      wrong !== undefined && <ProblemBox problem={problemOf(wrong)} />
    )
  return { box, enter, isBusy }
}

const ByPassword = () => {
  const [name, setName] = useState("")
  const [password, setPassword] = useState("")
  const { box, enter, isBusy } = useEntering(t("loginUnknown"))
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault()
        void enter(() => logInWithPassword(name, password))
      }}
    >
      <p class="soft">{t("loginDevelopmentHint")}</p>
      <Field
        label={t("userName")}
        name="user"
        value={name}
        onInput={setName}
        autocomplete="username"
        isRequired
      />
      <Field
        label={t("password")}
        name="password"
        type="password"
        value={password}
        onInput={setPassword}
        autocomplete="current-password"
      />
      {box}
      <Button kind="prominent" isSubmit isBusy={isBusy}>
        {t("logIn")}
      </Button>
    </form>
  )
}

const ByMail = ({ url }: { readonly url: string }) => {
  const [mail, setMail] = useState("")
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault()
        leaveForLogin("portier", url, mail)
      }}
    >
      <Field
        label={t("mailAddress")}
        type="email"
        value={mail}
        onInput={setMail}
        autocomplete="email"
        isRequired
      />
      <Button kind="prominent" isSubmit>
        {t("loginPortier")}
      </Button>
    </form>
  )
}

const ByProxy = () => {
  const { box, enter, isBusy } = useEntering(t("loginProxyNobody"))
  return (
    <>
      <Button kind="prominent" isBusy={isBusy} onPress={() => enter(logInByProxy)}>
        {t("loginProxy")}
      </Button>
      {box}
    </>
  )
}

const ByToken = () => {
  const [token, setToken] = useState("")
  const { box, enter, isBusy } = useEntering(t("loginUnknown"))
  return (
    <details>
      <summary>{t("loginToken")}</summary>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault()
          void enter(() => logInWithToken(token))
        }}
      >
        <Field
          label={t("token")}
          type="password"
          value={token}
          onInput={setToken}
          autocomplete="off"
          hint={t("loginTokenHint")}
          isRequired
        />
        {box}
        <Button isSubmit isBusy={isBusy}>
          {t("logIn")}
        </Button>
      </form>
    </details>
  )
}

const By = ({ login: { kind, policy, url = "" } }: { readonly login: Login }) => {
  if (kind === "basicauth") return <ByPassword />
  if (kind === "proxy") return <ByProxy />
  if (kind === "portier") return <ByMail url={url || "portier/login"} />
  if (kind === "signed") return <p>{t("loginSigned")}</p>
  return (
    <Button
      kind="prominent"
      onPress={() => leaveForLogin("openid", url || `openid/${policy}/login`)}
    >
      {t("loginOpenid", { name: policy })}
    </Button>
  )
}

/** The ways in: on the page, and in the dialog over a screen whose login has ended. */
const Ways = ({ config }: { readonly config: Config | undefined }) => (
  <>
    {config?.logins.map((login, index) => (
      <>
        {index > 0 && <hr key={`line ${login.policy}`} />}
        <By key={login.policy} login={login} />
      </>
    ))}
    {config && config.logins.length > 0 && <hr />}
    <ByToken />
  </>
)

/** Whom a provider or a proxy still knows is back without a question. */
const isKnownElsewhere = ({ endedKind }: SessionState): boolean =>
  endedKind === "openid" || endedKind === "proxy"

export const Login = ({ state }: { readonly state: SessionState }) => (
  <main class="login" id="main">
    <div>
      <p class="brand">
        <Bell /> Bellcast
      </p>
      <p class="soft">{t("loginLead")}</p>
    </div>
    <div class="panel">
      <Heading title={t("loginTitle")} />
      {isKnownElsewhere(state) && <Box>{t("loggedOutHere")}</Box>}
      {state.refusal && <Box kind="error">{t("loginRefused", { reason: state.refusal })}</Box>}
      {state.problem && <ProblemBox problem={state.problem} onRetry={() => startSession({})} />}
      {state.problem?.code !== "wrong-origin" && <Ways config={state.config} />}
    </div>
  </main>
)

/** Over the screen, which keeps what was typed. */
export const LoginAgain = ({ state }: { readonly state: SessionState }) => (
  <Dialog title={t("loginEndedTitle")}>
    <p>{t("loginEndedText")}</p>
    <div class="ways">
      <Ways config={state.config} />
    </div>
  </Dialog>
)
