// The disk of nats-server is full, and has space again.
import { join } from "node:path"
import { assert, it } from "vitest"
import { addressIn, folderAt } from "#embedded/folder.ts"
import { call, finished, publish, until } from "../support/client.ts"
import { smallDisk } from "../support/disk.ts"
import { keepBusy } from "../support/ports.ts"
import { startPushService } from "../support/push-service.ts"
import { type Service, secretEnvironment, startService } from "../support/service.ts"

it("loses nothing when the disk is full, says so, and works by itself with space again", {
  timeout: 120_000
}, async ({ skip }) => {
  await using disk = await smallDisk()
  if (disk === undefined) return skip("mounting a small tmpfs needs root")
  await using push = await startPushService()
  // The push of the first broadcast is tried again when the disk is full.
  const agent = push.subscribe({ script: ["503 retry-after 10", "201"] })
  const env = { BELLCAST_HEARTBEAT_TIMEOUT_SECONDS: "1" }
  // While nats-server is restarted, a service of another test could take the default port.
  using _default = await keepBusy(4222)
  await using own = await startService({
    env: { ...env, ...secretEnvironment, BELLCAST_DATA_DIR: disk.folder }
  })
  const { pid, url } = (await addressIn(folderAt(join(disk.folder, "nats"))))!
  // For this process, the nats-server is one of the operator.
  await using other = await startService({ natsUrl: url, roles: "gateway", env })
  const subscribe = async ({ url: base }: Service, user: string, data: object) =>
    (await call(base, "POST", "/subscriptions", user, { data })).status
  const heartbeat = ({ url: base }: Service) => call(base, "GET", "/__heartbeat__")
  assert.equal(await subscribe(own, "reader", agent.subscription), 201)
  assert.equal((await call(own.url, "PUT", "/channels/news/registration", "reader")).status, 202)
  const before = await publish(own.url, "news", { n: 0 })
  await until(
    () => call(own.url, "GET", `/channels/news/broadcasts/${before}`, "publisher"),
    ({ body }) => body.data?.retrying === 1
  )

  await disk.fill(64)
  const stored: Array<string> = []
  let next = 0
  const fill = async () => {
    const user = `user${next++}`
    const { subscription } = push.subscribe()
    const status = await subscribe(next % 2 === 0 ? own : other, user, subscription)
    if (status === 201) stored.push(user)
    else assert.oneOf(status, [503, 507])
  }
  const logs = () => own.output() + other.output()
  await until(
    async () => {
      await Promise.all([fill(), fill(), fill(), fill()])
      return logs()
    },
    (text) =>
      text.includes("is restarted when its disk has space again") &&
      other.output().includes("restart nats-server")
  )
  for (const { body, status } of await Promise.all([own, other].map(heartbeat)))
    assert.deepInclude({ ...body, status }, { storage: false, status: 503 })

  await disk.empty()
  await until(
    () => Promise.all([own, other].map(heartbeat)),
    (answers) => answers.every(({ status }) => status === 200)
  )
  assert.include(own.output(), "the embedded nats-server was restarted")
  assert.notEqual((await addressIn(folderAt(join(disk.folder, "nats"))))?.pid, pid)
  await until(
    () => subscribe(other, "late", push.subscribe().subscription),
    (status) => status === 201
  )
  for (const user of ["reader", ...stored])
    assert.lengthOf((await call(own.url, "GET", "/subscriptions", user)).body.data, 1, user)
  const counts = { accepted: 1, delivered: 1 }
  for (const broadcast of [before, await publish(own.url, "news", { n: 1 })])
    assert.deepInclude(await finished(own.url, "news", broadcast), counts)
  const received = agent.received.map(({ text }) => text)
  assert.includeMembers(received, ['{"n":0}', '{"n":1}'])
})
