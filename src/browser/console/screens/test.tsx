// A test to one's own browsers, at once, with what the push service said.
import { useState } from "preact/hooks"
import { request } from "../api/client.ts"
import { session } from "../api/session.ts"
import type { Content } from "../api/shapes.ts"
import { faultsOf } from "../draft/content.ts"
import { type Device, deviceOf } from "../draft/devices.ts"
import { Button } from "../parts/button.tsx"
import { Awaited, useLoad } from "../parts/load.tsx"
import { Box, ProblemBox } from "../parts/problem.tsx"
import { problemOf } from "../parts/report.ts"
import { day, t, tIf } from "../words/language.ts"

interface Said {
  readonly outcome?: "delivered" | "gone" | "dead" | "expired" | "retrying"
  readonly status?: number
  readonly reason?: string
}

const saidText = ({ outcome, reason = "", status }: Said): string => {
  if (outcome === undefined) return t("testNothingYet")
  const why = tIf(`reason-${reason}`) ?? reason
  return t(`test-${outcome}`, { status: String(status ?? ""), reason: why })
}

const goodOutcomes: ReadonlyArray<Said["outcome"]> = ["delivered"]

const Row = ({ content, device }: { readonly content: Content; readonly device: Device }) => {
  const [said, show] = useState<Said>()
  const [problem, showProblem] = useState<unknown>()
  const isUnfinished = faultsOf(content).length > 0
  const send = async () => {
    show(undefined)
    showProblem(undefined)
    try {
      const { body, status } = await request<{ readonly data?: Said }>(
        `subscriptions/${device.id}/test`,
        { method: "POST", body: { data: content } }
      )
      show(status === 202 ? {} : (body.data ?? {}))
    } catch (cause) {
      showProblem(cause)
    }
  }
  const name = device.label ?? t("deviceUnnamed", { service: device.service })
  return (
    <li class="device">
      <div>
        <p>
          <b>{name}</b>
        </p>
        <p class="soft">{t("deviceStored", { day: day(device.storedAt) })}</p>
      </div>
      <Button
        onPress={send}
        name={t("testTo", { name })}
        off={isUnfinished ? t("testUnfinished") : undefined}
      >
        {t("testSend")}
      </Button>
      {said && (
        <Box kind={goodOutcomes.includes(said.outcome) ? "good" : "warning"}>{saidText(said)}</Box>
      )}
      {problem !== undefined && <ProblemBox problem={problemOf(problem)} />}
    </li>
  )
}

/** Sends what the preview shows. */
export const Test = ({ content }: { readonly content: Content | undefined }) => {
  const devices = useLoad(
    async (signal) => {
      const { body } = await request<{ readonly data: ReadonlyArray<object> }>(
        "subscriptions?_sort=-last_modified&_limit=20",
        { signal }
      )
      return body.data.map(deviceOf)
    },
    [session().user]
  )
  const isUnfinished = faultsOf(content).length > 0
  return (
    <section class="panel" aria-labelledby="test">
      <h2 id="test">{t("test")}</h2>
      <Awaited of={devices} waiting={<p class="soft">{t("oneMoment")}</p>}>
        {(all) =>
          all.length === 0 ? (
            <p class="soft">{t("testNoDevice", { name: session().name })}</p>
          ) : (
            <>
              <p class="soft">{t(isUnfinished ? "testUnfinished" : "testHint")}</p>
              <ul class="devices">
                {all.map((device) => (
                  <Row key={device.id} device={device} content={content ?? {}} />
                ))}
              </ul>
            </>
          )
        }
      </Awaited>
    </section>
  )
}
