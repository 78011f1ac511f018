// Everything that a run starts: nats-servers, push services, the fleet, the rig's own connection,
// and the first audience.
import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import type { Look } from "./checks/check.ts"
import type { Context, NatsServers, Nodes } from "./faults/fault.ts"
import { startNatsServers } from "./faults/nats-servers.ts"
import { closedChannel, makeFleet } from "./fleet/fleet.ts"
import type { FleetMember } from "./fleet/member.ts"
import { thisProgram } from "./fleet/programs.ts"
import { type Changes, makeChanges } from "./load/changes.ts"
import { type Erase, makeErasures } from "./load/erasures.ts"
import { makeGateways } from "./load/gateways.ts"
import { makeGuests, type Visit } from "./load/guests.ts"
import { makeOperator } from "./load/operator.ts"
import { makePublish, type Publish } from "./load/publish.ts"
import { makeRedrive, type Redrive } from "./load/redrives.ts"
import { makeResumes, type Resumes } from "./load/resumes.ts"
import { makeStop } from "./load/states.ts"
import { type Model, makeModel } from "./model/model.ts"
import { makeRecorded, type Recorded } from "./model/recorded.ts"
import { connectRig, type RigClient } from "./nats/client.ts"
import { type PushServices, startPushServices } from "./push/services.ts"
import { makeVapidPair } from "./push/vapid.ts"
import type { Random } from "./random.ts"

export interface World extends Context, AsyncDisposable {
  readonly fleet: ReadonlyArray<FleetMember>
  readonly nats: NatsServers
  readonly client: RigClient
  readonly push: PushServices
  readonly model: Model
  readonly recorded: Recorded
  readonly changes: Changes
  readonly publish: Publish
  readonly guests: Visit
  readonly redrive: Redrive
  readonly resumes: Resumes
  /** Whether broadcasts may pause themselves and users be erased: a former commit may not. */
  readonly mayPause: boolean
  readonly erase: Erase
  readonly random: Random
  /** `BELLCAST_UNRECORDED_PUSHES_MAX`: what a killed process may send twice. */
  readonly permits: number
  /** Milliseconds between broadcasts and between changes, at least and at most. */
  readonly rates: readonly [readonly [number, number], readonly [number, number]]
  cycle: number
  readonly looking: () => Pick<
    Look,
    "model" | "recorded" | "client" | "gateways" | "fleet" | "push" | "natsUrl" | "serverPids"
  >
}

export interface WorldOptions {
  readonly nodes: Nodes
  readonly isShort: boolean
  readonly folder: string
  readonly program: string
  readonly random: Random
  readonly say: (text: string) => void
}

const channels = ["everyone", "some people", "Grüße.1", closedChannel, "*"]

/** Users of the first audience; each has one to four subscriptions. */
const usersOf = (random: Random, isShort: boolean) => (isShort ? 120 : random.between(200, 500))

/** A channel for everybody, others for every third, fifth, ... */
const channelsOf = (random: Random): ReadonlyArray<string> =>
  channels.filter((_, i) => (i === 0 ? random.chance(0.95) : random.chance(1 / (2 * i + 1))))

const startFleet = async (fleet: ReadonlyArray<FleetMember>) => {
  for (const member of fleet) await member.start()
  const deadline = performance.now() + 120_000
  while (!fleet.every((member) => member.isReady())) {
    if (performance.now() > deadline) {
      const missing = fleet.filter((member) => !member.isReady()).map(({ name }) => name)
      throw new Error(`not ready within 120 s: ${missing.join(", ")}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}

const fill = async (changes: Changes, random: Random, users: number) => {
  let left = users
  const arrivals = Array.from({ length: 12 }, async () => {
    while (left-- > 0) await changes.arrive(random.between(1, 4), channelsOf(random))
  })
  await Promise.all(arrivals)
}

export const startWorld = async (options: WorldOptions): Promise<World> => {
  const { folder, isShort, nodes, program, random, say } = options
  const natsFolder = join(folder, "nats")
  const fleetFolder = join(folder, "fleet")
  for (const each of [natsFolder, fleetFolder]) await mkdir(each, { recursive: true })
  const stack = new AsyncDisposableStack()
  try {
    const nats = stack.use(await startNatsServers({ nodes, folder: natsFolder }))
    const vapid = makeVapidPair()
    const model = makeModel(channels)
    const protocols = isShort ? (["h1", "h2"] as const) : (["h1", "h2", "h1", "h2"] as const)
    const push = stack.use(
      await startPushServices(model, vapid.publicKey, random.fork("endpoints"), protocols)
    )
    const permits = random.fork("permits").pick([64, 256, 768])
    const natsUrlOf = (name: string) => nats.urlFor(name)
    const fleet = await makeFleet({
      nodes,
      folder: fleetFolder,
      program,
      natsUrlOf,
      vapid,
      isShort,
      permits
    })
    stack.defer(async () => void (await Promise.all(fleet.map((member) => member.kill()))))
    await startFleet(fleet)
    const client = stack.use(await connectRig(nats.directUrl))
    const bases = fleet
      .filter(({ roles }) => roles.includes("gateway"))
      .map(({ port }) => `http://127.0.0.1:${port}/v1`)
    const gateways = makeGateways(bases, client, model)
    const recorded = makeRecorded(() => client)
    const operator = makeOperator(nats.directUrl)
    const own = random.fork("changes")
    const changes = makeChanges(model, gateways, push, operator, own, "t")
    const audience = random.fork("audience")
    await fill(changes, audience, usersOf(audience, isShort))
    const context = { nodes, nats, fleet, folder, say }
    const stop = makeStop(gateways, nats.directUrl, random.fork("stop"))
    const publishes = random.fork("publish")
    const cycle = () => world.cycle
    const publish = makePublish(model, gateways, client, publishes, () => world, stop)
    const redrives = random.fork("redrives")
    const world: World = {
      ...context,
      client,
      push,
      model,
      recorded,
      changes,
      publish,
      guests: makeGuests(model, operator, publish, random.fork("guests")),
      resumes: makeResumes(gateways, random.fork("resumes")),
      get mayPause() {
        return program === thisProgram || this.cycle > 1
      },
      erase: makeErasures(model, gateways, operator, random.fork("erasures"), cycle),
      redrive: makeRedrive(model, recorded, gateways, redrives, cycle, stop),
      random,
      permits,
      rates: isShort
        ? [
            [500, 1_500],
            [100, 400]
          ]
        : [
            [700, 2_200],
            [100, 500]
          ],
      cycle: 0,
      looking: () => ({
        model,
        recorded,
        client,
        gateways,
        fleet,
        push,
        natsUrl: nats.directUrl,
        serverPids: Object.fromEntries(nats.servers.map(({ name, pid }) => [name, pid]))
      }),
      [Symbol.asyncDispose]: () => stack.disposeAsync()
    }
    return world
  } catch (error) {
    await stack.disposeAsync()
    throw error
  }
}
