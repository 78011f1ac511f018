// What goes wrong, and how it ends.

import { setTimeout as pause } from "node:timers/promises"
import { jetstream } from "@nats-io/jetstream"
import { headers } from "@nats-io/transport-node"
import { memoryGroup } from "../support/cgroup.ts"
import { basic, call, join, publish, publishAt } from "../support/client.ts"
import { wrongClock } from "../support/clock.ts"
import { startNatsProxy } from "../support/nats-proxy.ts"
import { createToken, runCli } from "../support/run-cli.ts"
import type { UserAgent } from "../support/user-agent.ts"
import type { hosts, Member, Rig } from "./rig.ts"

/** Makes it happen. Returns how to end it. */
export type Cause = (rig: Rig) => Promise<() => PromiseLike<unknown>>

/** Repeats work until the returned function is called. */
const repeatedly = (everyMillis: number, work: () => Promise<unknown>) => {
  const ending = new AbortController()
  const running = (async () => {
    while (!ending.signal.aborted) {
      await work().catch(() => undefined)
      await pause(everyMillis, undefined, { signal: ending.signal }).catch(() => undefined)
    }
  })()
  return async () => {
    ending.abort()
    await running
  }
}

/** Subscribers at one push service, each with a script. */
const subscribed = async (
  rig: Rig,
  at: keyof typeof hosts,
  count: number,
  ...script: ReadonlyArray<string>
): Promise<ReadonlyArray<UserAgent>> => {
  const agents = Array.from({ length: count }, () => rig.push[at].subscribe({ script }))
  const subscriptions = agents.map(({ subscription }) => subscription)
  await join([rig.url()], at, subscriptions, 8, at)
  return agents
}

/** A push service that answers by a script, with a broadcast each few seconds. */
export const answering =
  (at: keyof typeof hosts, count: number, ...script: ReadonlyArray<string>): Cause =>
  async (rig) => {
    const agents = await subscribed(rig, at, count, ...script)
    const stop = repeatedly(10_000, () => publish(rig.url(), at, { n: 1 }))
    return async () => {
      await stop()
      const well = rig.push[at].subscribe().nextAnswer
      for (const agent of agents) agent.answerBy(well)
      const [{ subscription }] = [rig.push[at].subscribe()]
      await join([rig.url()], at, [subscription], 1, `${at}-well`)
      await publish(rig.url(), at, { n: 2 })
    }
  }

/** A refusing push service, while one worker after the other is restarted. */
export const refusedBesideRestarts: Cause = async (rig) => {
  const end = await answering("refusingLong", 40, "403")(rig)
  const workers = [rig.members["worker-1"], rig.members["worker-2"]] as const
  let n = 0
  const stop = repeatedly(100_000, async () => {
    const worker = workers[n++ % 2]!
    await worker.kill()
    await worker.start()
  })
  return async () => {
    await stop()
    await end()
  }
}

export const killed =
  (...names: ReadonlyArray<keyof Rig["members"]>): Cause =>
  async ({ members }) => {
    for (const name of names) await members[name].kill()
    return async () => {
      for (const name of names) await members[name].start()
    }
  }

export const serversLost =
  (...numbers: ReadonlyArray<number>): Cause =>
  async ({ nats }) => {
    for (const n of numbers) await nats.kill(n)
    return async () => {
      for (const n of numbers) await nats.begin(n)
    }
  }

/** The disks are full; then they have space again and each server is restarted in turn. */
export const disksFull =
  (...numbers: ReadonlyArray<number>): Cause =>
  async ({ disks, nats, url }) => {
    for (const n of numbers) await disks[n]!.fill(64)
    // Without writes nobody would notice.
    const stop = repeatedly(100, () =>
      publish(url(), "steady", { text: "x".repeat(3_000) }).then(() => undefined)
    )
    return async () => {
      await stop()
      for (const n of numbers) {
        await disks[n]!.empty()
        await nats.kill(n)
        await nats.begin(n)
        await pause(5_000)
      }
    }
  }

/** A stream whose limit is such that it is full to a share. */
export const filled =
  (stream: string, share: number): Cause =>
  async ({ admin }) => {
    await using client = await admin()
    const { config, state } = await client.jsm.streams.info(stream)
    const max_bytes = Math.ceil(state.bytes / share)
    await client.jsm.streams.update(stream, { max_bytes })
    return async () => {
      await using again = await admin()
      await again.jsm.streams.update(stream, { max_bytes: config.max_bytes })
    }
  }

const residentBytes = async (member: Member): Promise<number> => {
  const text = await (await fetch(`http://${member.address}/metrics`)).text()
  return Number(/^process_resident_memory_bytes (\S+)$/m.exec(text)?.[1])
}

/** A life is so long that Prometheus sees it. */
const lifeMillis = 20_000

/** Restarts a process that is killed for lack of memory, as a supervisor does. */
export const outOfMemory: Cause = async (rig) => {
  const group = memoryGroup()
  const worker = await rig.add("small", "delivery", group.env)
  const live = async () => {
    group.free()
    await worker.member.start()
    await pause(lifeMillis)
    group.limit(1024 ** 2)
    // Work makes it grow.
    const isGone = () => residentBytes(worker.member).then(Number.isNaN, () => true)
    while (!(await isGone())) {
      const work = Array.from({ length: 20 }, () =>
        publish(rig.url(), "steady", { text: "x".repeat(3_000) })
      )
      await Promise.allSettled(work)
    }
    await worker.member.kill()
  }
  const stop = repeatedly(0, live)
  return async () => {
    let isOver = false
    const stopped = stop().then(() => {
      isOver = true
    })
    // The life that is under way may be at its start.
    while (!isOver) {
      await worker.member.kill()
      await Promise.race([stopped, pause(1_000)])
    }
    await worker[Symbol.asyncDispose]()
    group.remove()
  }
}

const cli = async ({ urls }: Rig, ...args: ReadonlyArray<string>) => {
  const all = [...args, "--nats", urls, "--inbox-prefix", "_INBOX_bellcast"]
  const { code, stderr } = await runCli(all)
  if (code !== 0) throw new Error(stderr)
}

export const tokenEnds: Cause = async (rig) => {
  const flags = ["--channel", "steady", "--inbox-prefix", "_INBOX_bellcast"]
  await createToken(rig.urls, "shop", ...flags)
  return () => cli(rig, "token", "revoke", "shop")
}

export const clockWrong: Cause = async ({ add }) => {
  const process = await add("clock", "fanout", wrongClock(60_000))
  return () => process[Symbol.asyncDispose]()
}

export const memoryShort: Cause = async ({ add }) => {
  const group = memoryGroup()
  const { member, [Symbol.asyncDispose]: end } = await add("large", "projection", group.env)
  group.limitTo(Math.ceil((await residentBytes(member)) * 1.03))
  return async () => {
    await end()
    group.remove()
  }
}

export const cutOff: Cause = async ({ add, nats }) => {
  const proxy = await startNatsProxy(`nats://127.0.0.1:${nats.ports[0]}`)
  const { port } = new URL(proxy.url)
  const process = await add("cut", "gateway", {}, `nats://bellcast:word@127.0.0.1:${port}`)
  await proxy[Symbol.asyncDispose]()
  return () => process[Symbol.asyncDispose]()
}

export const providerAway: Cause = async ({ add }) => {
  const process = await add("login", "gateway", {
    BELLCAST_AUTH_POLICIES: "openid",
    BELLCAST_AUTH_OPENID_ISSUER: "http://127.0.0.1:9",
    BELLCAST_AUTH_OPENID_AUDIENCE: "bellcast"
  })
  return () => process[Symbol.asyncDispose]()
}

/** The tally stops at such a plan until somebody deletes it: no later version comes. */
export const laterMessage: Cause = async ({ admin }) => {
  await using client = await admin()
  const typed = headers()
  typed.set("Bellcast-Type", "plan/99")
  const { seq, stream } = await jetstream(client.nc).publish("bellcast.plan.steady.1", "{}", {
    headers: typed
  })
  return async () => {
    await using again = await admin()
    await again.jsm.streams.deleteMessage(stream, seq)
  }
}

/** Messages that are no broadcasts, by a publisher of NATS. */
export const garbage: Cause = async ({ admin }) => {
  await using client = await admin()
  for (let n = 0; n < 20; n++)
    await client.nc.request("bellcast.cmd.broadcast.billing.steady", `no JSON ${n}`, {
      timeout: 10_000
    })
  return async () => undefined
}

export const deletedConsumer: Cause = async ({ admin }) => {
  await using client = await admin()
  await client.jsm.consumers.delete("BELLCAST_WORK", "limited")
  return async () => undefined
}

/** Somebody changes a consumer again and again. */
export const foughtConsumer: Cause = async ({ admin }) => {
  const client = await admin()
  let n = 0
  const stop = repeatedly(500, () =>
    client.jsm.consumers.update("BELLCAST_LOG", "states", { max_ack_pending: 1_000 + (n++ % 9) })
  )
  return async () => {
    await stop()
    await client[Symbol.asyncDispose]()
  }
}

/** More streams of events than a gateway serves: the next requests get 503. */
export const serverErrors: Cause = async (rig) => {
  const { url } = rig.members["gateway-1"].service
  // One that waits: the stream of events of a finished one ends at once.
  const at = new Date(Date.now() + 3_600_000).toISOString()
  const id = await publishAt(rig.url(), "/channels/steady", { data: { n: 1 }, at })
  const ending = new AbortController()
  // 256 in all, four of a user.
  for (let n = 0; n < 256; n++) {
    const headers = { authorization: basic(`events${n % 64}`), accept: "text/event-stream" }
    void fetch(`${url}/broadcasts/${id}/events`, { headers, signal: ending.signal }).catch(
      () => undefined
    )
  }
  const stop = repeatedly(200, () => call(url, "GET", `/broadcasts/${id}/events`, "publisher"))
  return async () => {
    await stop()
    ending.abort()
  }
}

/** 30,000 pushes of 9 s: two workers with 512 under way each take four minutes. */
export const slowPushes: Cause = async (rig) => {
  const agents = await subscribed(rig, "slow", 300, "slow 9000 201")
  for (let n = 0; n < 100; n++) await publish(rig.url(), "slow", { n })
  return async () => {
    const well = rig.push.slow.subscribe().nextAnswer
    for (const agent of agents) agent.answerBy(well)
  }
}
