// The browsers of the user, as the service has them.
import type { Push } from "../../../types/client.d.ts"
import { request } from "../../api/client.ts"
import { Button } from "../../parts/button.tsx"
import { Store } from "../../state/store.ts"
import { time } from "../../words/language.ts"
import { subscription } from "./client.ts"
import { isRemoved, type Say, test } from "./pushes.ts"
import type { Running } from "./task.tsx"
import { tt } from "./texts.ts"

export interface Device {
  readonly id: string
  readonly endpoint: string
  readonly last_modified: number
}

interface Devices {
  readonly all: ReadonlyArray<Device>
  /** Of this browser, if it is among them. */
  readonly own: string | undefined
  /** Of this browser, when it was last seen. */
  readonly ownId: string | undefined
}

/** Undefined: not read yet. */
export const devices = new Store<Devices | undefined>(undefined)

export const readDevices = async (): Promise<void> => {
  const { body } = await request<{ readonly data: ReadonlyArray<Device> }>("subscriptions")
  const endpoint = (await subscription())?.endpoint
  const own = body.data.find((device) => device.endpoint === endpoint)
  devices.set({ all: body.data, own: own?.id, ownId: own?.id ?? devices.value?.ownId })
}

/** Sends one push to a browser, and says what became of it. */
export const sendTo = async (push: Push, id: string, say: Say): Promise<string> => {
  const { outcome, said } = await test(id, say)
  const isGone = outcome === "gone" && (await isRemoved(id))
  const isOwn = id === devices.value?.ownId
  // Else the page goes on to say that this browser gets pushes: the client looks once a day.
  const isBack = isGone && isOwn && (await push.check()) === "on"
  await readDevices()
  const removed = isGone ? ` ${tt("tryRemoved")}` : ""
  return said + removed + (isBack ? ` ${tt("trySubscribedAnew")}` : "")
}

/** Sends one push to this browser, whose subscription may be newer than the list on the page. */
export const sendToThisBrowser = async (push: Push, say: Say): Promise<string> => {
  await readDevices()
  const ownId = devices.value?.ownId
  if (ownId === undefined) throw new Error(tt("tryUnknownBrowser"))
  return sendTo(push, ownId, say)
}

const nameOf = ({ endpoint }: Device): string => {
  const { host, pathname } = new URL(endpoint)
  return pathname.startsWith("/v1/demo/push/") ? tt("tryMadeUp") : tt("tryBrowserAt", { host })
}

const remove = async (push: Push, device: Device, isOwn: boolean): Promise<string> => {
  // The client would not notice for a day that its subscription is gone from the service.
  if (isOwn) {
    await push.disable()
    if (push.error) throw push.error
  } else await request(`subscriptions/${device.id}`, { method: "DELETE" })
  await readDevices()
  return tt("tryForgot")
}

interface RowProps {
  readonly device: Device
  readonly isOwn: boolean
  readonly push: Push
  readonly task: Running
}

export const DeviceRow = ({ device, isOwn, push, task }: RowProps) => {
  const name = isOwn ? tt("tryThisBrowser") : nameOf(device)
  return (
    <li>
      <span>
        {name} <small>{tt("trySince", { time: time(device.last_modified) })}</small>
      </span>
      <Button
        kind="quiet"
        name={tt("trySendNamed", { name })}
        onPress={() => task.run((say) => sendTo(push, device.id, say))}
      >
        {tt("trySend")}
      </Button>
      <Button
        kind="quiet"
        name={tt("tryRemoveNamed", { name })}
        onPress={() => task.run(() => remove(push, device, isOwn))}
      >
        {tt("tryRemove")}
      </Button>
    </li>
  )
}
