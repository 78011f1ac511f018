// Every counter of a process begins at 0, with each combination of its labels. Prometheus sees no
// increase in a series that begins at 1: an alert would miss the first event of the process.
import { afterAll, assert, beforeAll, it } from "vitest"
import { call } from "../support/client.ts"
import { spansOf, textOf } from "../support/documents.ts"
import { startNats } from "../support/nats.ts"
import { type Service, startService } from "../support/service.ts"

/**
 * The counters whose series cannot be listed, each with the one that alerts use in its place; none:
 * a total that NATS counts.
 */
const exceptions: Readonly<Record<string, string | undefined>> = {
  bellcast_http_requests_total: "bellcast_http_responses_total",
  bellcast_stream_messages_total: undefined
}

const counters = textOf("src/telemetry/README.md")
  .split("\n")
  .filter((line) => /^\| `bellcast_\w+` \| counter \|/.test(line))
  .map((line) => line.split("|").slice(1, 4))
  .map(([name, , labels]) => ({ name: spansOf(name!)[0]!, labels: [...spansOf(labels!)] }))

let nats: Awaited<ReturnType<typeof startNats>>
let service: Service
let text = ""

beforeAll(async () => {
  nats = await startNats()
  service = await startService({
    natsUrl: nats.url,
    env: { BELLCAST_AUTH_POLICIES: "basicauth,token", BELLCAST_PUSH_HOSTS: "push.example.org" }
  })
  text = String((await call(service.metricsUrl(), "GET", "/metrics")).body)
})

afterAll(async () => {
  await service?.[Symbol.asyncDispose]()
  await nats?.[Symbol.asyncDispose]()
})

/** The series of a metric: its labels, and its value. */
const seriesOf = (name: string) =>
  text
    .split("\n")
    .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
    .map((line) => ({
      labels: Object.fromEntries(
        [...line.matchAll(/(\w+)="([^"]*)"/g)].map(([, label, value]) => [label!, value!])
      ),
      value: Number(line.split(" ").at(-1))
    }))

it("shows every counter from 0 on, with each combination of its labels", () => {
  assert.isAbove(counters.length, 5)
  for (const { labels, name } of counters) {
    if (name in exceptions) continue
    const series = seriesOf(name)
    assert.isNotEmpty(series, name)
    const values = labels.map((label) => new Set(series.map((each) => each.labels[label])))
    const combinations = values.reduce((product, { size }) => product * size, 1)
    assert.lengthOf(series, combinations, name)
    for (const each of series) {
      assert.equal(each.value, 0, name)
      assert.sameMembers(Object.keys(each.labels), labels, name)
    }
  }
})

it("shows another counter from 0 on in place of one that cannot be", () => {
  for (const other of Object.values(exceptions))
    if (other !== undefined) assert.isNotEmpty(seriesOf(other))
})

it("knows labels that only the settings have", () => {
  const labelsOf = (name: string, label: string) =>
    new Set(seriesOf(name).map(({ labels }) => labels[label]))
  assert.includeMembers(
    [...labelsOf("bellcast_pushes_total", "host")],
    ["push.example.org", "*.push.apple.com", "other"]
  )
  assert.sameMembers(
    [...labelsOf("bellcast_authentications_total", "policy")],
    ["basicauth", "token"]
  )
})
