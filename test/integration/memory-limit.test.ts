// A process in a container with less memory than its roles need says so at its start.
import { assert, it } from "vitest"
import { startNats } from "../support/nats.ts"
import { startService } from "../support/service.ts"

/** The limit of a container, as Node.js tells it. */
const limitedTo = (mebibytes: number) => {
  const script = `process.constrainedMemory=()=>${mebibytes * 1024 ** 2}`
  return { NODE_OPTIONS: `--import=data:text/javascript,${script}` }
}

it("says at its start that its container has too little memory", { timeout: 60_000 }, async () => {
  await using nats = await startNats({ syncAlways: false })
  const options = { natsUrl: nats.url, roles: "gateway,projection,fanout,delivery,tally" }
  await using small = await startService({ ...options, env: limitedTo(200) })
  assert.match(small.output(), /"level":40,[^\n]*may have 200 MiB of memory, and [a-z,]+ needs 384/)
  const metrics = await (await fetch(`${small.metricsUrl()}/metrics`)).text()
  assert.match(metrics, /^bellcast_memory_limit_bytes 209715200$/m)
  await using enough = await startService({ ...options, env: limitedTo(512) })
  assert.notMatch(enough.output(), /MiB of memory/)
})
