// Buttons that break things, with sentences about what happens then.
import type { Push } from "../../../types/client.d.ts"
import { request } from "../../api/client.ts"
import { answerOther, logInWithPassword, session } from "../../api/session.ts"
import { Button } from "../../parts/button.tsx"
import { goInstead } from "../../state/route.ts"
import { t } from "../../words/language.ts"
import { registration, subscription } from "./client.ts"
import { readDevices, sendTo } from "./devices.tsx"
import { type Task, useTask } from "./task.tsx"
import { tt } from "./texts.ts"

const breaks = ["unsubscribe", "key", "worker", "user", "permission", "gone", "throttled"] as const
type Break = (typeof breaks)[number]

const otherUser = () => (session().name === "bob" ? "alice" : "bob")

const base64url = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "")

/** A new public key, as a browser and a VAPID pair have them. */
const publicKey = async (): Promise<Uint8Array<ArrayBuffer>> => {
  const algorithm = { name: "ECDH", namedCurve: "P-256" }
  const pair = await crypto.subtle.generateKey(algorithm, false, ["deriveBits"])
  return new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey))
}

const unsubscribe = async () => {
  const found = await subscription()
  if (found === undefined) throw new Error(tt("tryNotSubscribed"))
  await found.unsubscribe()
}

const worker = async () => {
  const found = await registration()
  if (found === undefined) throw new Error(tt("tryNoWorker"))
  return found
}

/** A subscription whose endpoint the service plays itself: its answer stands in the path. */
const madeUp = async (answer: string): Promise<string> => {
  const key = await request<{ readonly data: object }>("vapid-public-key")
  const { body } = await request<{ readonly data: { readonly id: string } }>("subscriptions", {
    method: "POST",
    body: {
      data: {
        endpoint: `${location.origin}/v1/demo/push/${answer}/${crypto.randomUUID()}`,
        keys: {
          p256dh: base64url(await publicKey()),
          auth: base64url(crypto.getRandomValues(new Uint8Array(16)))
        },
        ...key.body.data
      }
    }
  })
  await readDevices()
  return body.data.id
}

/** The made-up push service answers 429 for so long. */
const throttledMillis = 8_000

const tasksOf = (push: Push): Readonly<Partial<Record<Break, Task>>> => ({
  unsubscribe: async () => {
    await unsubscribe()
    return tt("tryDid-unsubscribe")
  },
  key: async () => {
    const { pushManager } = await worker()
    await unsubscribe()
    const applicationServerKey = await publicKey()
    await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey })
    return tt("tryDid-key")
  },
  worker: async () => {
    await (await worker()).unregister()
    return tt("tryDid-worker")
  },
  user: async () => {
    await logInWithPassword(otherUser(), "demo")
    // The press has answered whether another person may enter.
    await answerOther(true)
    goInstead("try")
    location.reload()
    return t("oneMoment")
  },
  gone: async (say) => sendTo(push, await madeUp("410"), say),
  throttled: async (say) => {
    const id = await madeUp(String(Date.now() + throttledMillis))
    const said = await sendTo(push, id, say)
    await request(`subscriptions/${id}`, { method: "DELETE" })
    await readDevices()
    return said
  }
})

const BreakRow = ({ name, task }: { readonly name: Break; readonly task: Task | undefined }) => {
  const running = useTask()
  const title = tt(`tryBreak-${name}`, { other: otherUser() } as never)
  return (
    <li id={`break-${name}`}>
      {task === undefined ? (
        <b>{title}</b>
      ) : (
        <Button onPress={() => running.run(task)}>{title}</Button>
      )}
      <p class="soft">{tt(`tryBreakText-${name}`)}</p>
      <output>{running.text}</output>
    </li>
  )
}

export const Breaks = ({ push }: { readonly push: Push }) => {
  const tasks = tasksOf(push)
  return (
    <details class="panel fold" id="breaks-fold">
      <summary>{tt("tryBreaks")}</summary>
      <div>
        <div class="buttons">
          <span>{tt("tryBreaksText")}</span>
          <Button id="reload" onPress={() => location.reload()}>
            {tt("tryReload")}
          </Button>
        </div>
        <ul id="breaks">
          {breaks.map((name) => (
            <BreakRow key={name} name={name} task={tasks[name]} />
          ))}
        </ul>
      </div>
    </details>
  )
}
