// Try it, in development only: this browser, a press, a push; channels, devices, what can break,
// and what happens underneath.
import { useEffect, useState } from "preact/hooks"
import { sentenceOf } from "../../client/words.ts"
import type { Push } from "../../types/client.d.ts"
import { Button, ButtonLink } from "../parts/button.tsx"
import { Field } from "../parts/field.tsx"
import { Heading } from "../parts/frame.tsx"
import { Pen } from "../parts/icons.tsx"
import { address } from "../state/route.ts"
import { useStore } from "../state/store.ts"
import { second, t } from "../words/language.ts"
import { Breaks } from "./try/breaks.tsx"
import { usePush } from "./try/client.ts"
import { DeviceRow, devices, readDevices, sendToThisBrowser } from "./try/devices.tsx"
import { publish } from "./try/pushes.ts"
import { useTask } from "./try/task.tsx"
import { tt } from "./try/texts.ts"
import { clear, type Row, rows, watch } from "./try/underneath.ts"

const ThisBrowser = ({ push }: { readonly push: Push | undefined }) => {
  const sent = useTask()
  const [pressed, press] = useState<string>()
  const state = push?.state
  useEffect(() => {
    // A button that vanishes must not take the focus along.
    if (pressed === "enable" && state === "on") document.getElementById("send")?.focus()
    if (pressed === "disable" && state === "off") document.getElementById("enable")?.focus()
  }, [pressed, state])
  const begin = (name: string, task: () => Promise<unknown>) => {
    press(name)
    return task()
  }
  return (
    <section class="panel" aria-labelledby="this-browser">
      <h2 id="this-browser">{tt("tryThisBrowser")}</h2>
      <p role="status" class="push-state">
        <b id="state" class={`badge ${state ?? ""}`}>
          {state ?? ""}
        </b>{" "}
        <span id="state-text" lang="en">
          {push ? sentenceOf(push) : t("oneMoment")}
        </span>
      </p>
      <div class="buttons">
        {push && (state === "off" || state === "lost") && (
          <Button
            id="enable"
            kind="prominent"
            onPress={() => begin("enable", () => push.enable({ channels: ["news"] }))}
          >
            {tt("tryNotifyMe")}
          </Button>
        )}
        {push && state === "on" && (
          <>
            <Button
              id="send"
              kind="prominent"
              onPress={() => sent.run((say) => sendToThisBrowser(push, say))}
            >
              {tt("trySend")}
            </Button>
            <ButtonLink icon={Pen} to={address("draft", "new")}>
              {tt("tryWrite")}
            </ButtonLink>
            <Button
              id="disable"
              kind="quiet"
              onPress={() => begin("disable", () => push.disable())}
            >
              {tt("tryStop")}
            </Button>
          </>
        )}
      </div>
      <output id="sent">{sent.text}</output>
    </section>
  )
}

const Channels = ({ push }: { readonly push: Push }) => {
  const [names, setNames] = useState<ReadonlyArray<string>>()
  const [joined, setJoined] = useState("sports")
  const [to, setTo] = useState("news")
  const [title, setTitle] = useState("Hello")
  const [text, setText] = useState("from the demo")
  const task = useTask()
  const read = async () => setNames(await push.channels())
  const { state } = push
  useEffect(() => {
    read().catch(console.debug)
  }, [push, state])
  return (
    <section class="panel" aria-labelledby="channels-title">
      <h2 id="channels-title">{tt("tryChannels")}</h2>
      <p class="soft">{tt("tryChannelsText")}</p>
      <ul id="channels" class="things" tabIndex={-1}>
        {names?.length === 0 && <li>{tt("tryNone")}</li>}
        {names?.map((name) => (
          <li key={name}>
            <span>{name}</span>
            <Button
              kind="quiet"
              name={tt("tryLeaveNamed", { name })}
              onPress={async () => {
                await task.run(async () => {
                  await push.leave(name)
                  await read()
                  return tt("tryLeft", { name })
                })
                document.getElementById("channels")?.focus()
              }}
            >
              {tt("tryLeave")}
            </Button>
          </li>
        ))}
      </ul>
      <form
        id="join"
        class="in-line"
        onSubmit={(event) => {
          event.preventDefault()
          void task.run(async () => {
            await push.join(joined)
            await read()
            return tt("tryJoined", { name: joined })
          })
        }}
      >
        <Field
          label={tt("tryChannel")}
          name="channel"
          value={joined}
          onInput={setJoined}
          isRequired
        />
        <Button isSubmit>{tt("tryJoin")}</Button>
      </form>
      <form
        id="publish"
        class="in-line"
        onSubmit={(event) => {
          event.preventDefault()
          void task.run((say) => publish(to, title, text, say))
        }}
      >
        <Field label={tt("tryToChannel")} name="channel" value={to} onInput={setTo} isRequired />
        <Field label={t("title")} name="title" value={title} onInput={setTitle} isRequired />
        <Field label={t("text")} name="body" value={text} onInput={setText} />
        <Button isSubmit>{tt("tryPublish")}</Button>
      </form>
      <output id="published">{task.text}</output>
    </section>
  )
}

const Devices = ({ push }: { readonly push: Push }) => {
  const known = useStore(devices)
  const task = useTask()
  const { state } = push
  useEffect(() => {
    readDevices().catch(console.debug)
  }, [push, state])
  return (
    <section class="panel" aria-labelledby="devices-title">
      <h2 id="devices-title">{tt("tryDevices")}</h2>
      <ul id="devices" class="things" tabIndex={-1}>
        {known?.all.length === 0 && <li>{tt("tryNoDevices")}</li>}
        {known?.all.map((device) => (
          <DeviceRow
            key={device.id}
            device={device}
            isOwn={device.id === known.own}
            push={push}
            task={task}
          />
        ))}
      </ul>
      <output id="tested">{task.text}</output>
    </section>
  )
}

const Line = ({ row: { at, kind, status, text } }: { readonly row: Row }) => (
  <>
    <time class="soft">{second(at)}</time> <i class={kind}>{kind}</i>
    <span>
      {text} {status && <b>{status}</b>}
    </span>
  </>
)

/** On a phone the newest line stays in sight: it explains what happens above. */
const Underneath = () => {
  const all = useStore(rows)
  return (
    <section class="underneath" aria-labelledby="underneath-title">
      <div class="heading">
        <h2 id="underneath-title">{tt("tryUnderneath")}</h2>
        <Button kind="quiet" onPress={clear}>
          {tt("tryClear")}
        </Button>
      </div>
      <p class="soft">{tt("tryUnderneathText")}</p>
      <ol id="underneath">
        {all.map((row) => (
          <li key={row.key}>
            {row.details ? (
              <details>
                <summary>
                  <Line row={row} />
                </summary>
                <pre>{row.details}</pre>
              </details>
            ) : (
              <div>
                <Line row={row} />
              </div>
            )}
          </li>
        ))}
      </ol>
    </section>
  )
}

export const TryIt = () => {
  useEffect(watch, [])
  const push = usePush()
  return (
    <>
      <Heading title={tt("tryTitle")} windowTitle={t("tryIt")} />
      <p class="lead">{tt("tryLead")}</p>
      <div class="try">
        <div>
          <ThisBrowser push={push} />
          {push && (
            <>
              <Channels push={push} />
              <Devices push={push} />
              <Breaks push={push} />
            </>
          )}
        </div>
        <Underneath />
      </div>
    </>
  )
}
