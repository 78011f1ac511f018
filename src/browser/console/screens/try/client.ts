// This browser as a browser of a site: connected by the client.js that sites load, with the worker
// of this page.
import { useEffect, useState } from "preact/hooks"
import type { Push } from "../../../types/client.d.ts"
import { session } from "../../api/session.ts"
import { add } from "./underneath.ts"

export interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { readonly createScriptURL: (text: string) => string }
  ): { createScriptURL(text: string): { toString(): string } }
}

const { trustedTypes } = window as { readonly trustedTypes?: TrustedTypes }
/** The page demands Trusted Types where the browser has them; this is its one policy. */
const policy = trustedTypes?.createPolicy("console", { createScriptURL: () => "worker.js" })

/** The address as a value: the bundle must load the file that sites load, not hold a copy. */
const clientFile = "../client.js"

let connected: Promise<Push> | undefined

/** One connection for each load of the page. */
const connectOnce = (): Promise<Push> => {
  connected ??= import(clientFile).then(
    ({ connect }: typeof import("../../../types/client.d.ts")) => {
      const { authorization, user } = session()
      return connect({
        url: "..",
        worker: policy?.createScriptURL("") ?? "worker.js",
        user,
        token: () => authorization ?? null
      })
    }
  )
  return connected
}

/** Undefined until it is connected. The component is rendered again when something changes. */
export const usePush = (): Push | undefined => {
  const [, render] = useState(0)
  const [push, setPush] = useState<Push>()
  useEffect(() => {
    let shown = ""
    let isGone = false
    const show = (now: Push) => {
      if (isGone) return
      render((count) => count + 1)
      const state = `state: ${now.state}${now.error ? `, error: ${now.error.code}` : ""}`
      if (state !== shown) add("client", state)
      shown = state
    }
    const opened = connectOnce().then((now) => {
      const listen = () => show(now)
      now.addEventListener("change", listen)
      setPush(() => now)
      show(now)
      return () => now.removeEventListener("change", listen)
    })
    return () => {
      isGone = true
      void opened.then((close) => close())
    }
  }, [])
  return push
}

/** The worker's registration at this page, if there is one. */
export const registration = () => navigator.serviceWorker.getRegistration()

export const subscription = async (): Promise<PushSubscription | undefined> =>
  (await (await registration())?.pushManager.getSubscription()) ?? undefined
