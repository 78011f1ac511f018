// Faults of the service's own processes: killed, frozen, restarted.
import { setTimeout as sleep } from "node:timers/promises"
import type { Random } from "../random.ts"
import type { Context, Fault, Member, Planned, Shape } from "./fault.ts"

const memberOf = ({ fleet }: Context, name: string): Member =>
  fleet.find((one) => one.name === name)!

/** Only a process that delivers has pushes that may be sent again. */
const delivering = ({ members }: Shape, names: ReadonlyArray<string>): ReadonlyArray<string> =>
  names.filter((name) => members.find((one) => one.name === name)!.roles.includes("delivery"))

/** Longer than every lease (2 s), the time after which a worker counts as away and the ack wait. */
const freezeSeconds = [17, 22] as const

const killed = (shape: Shape, names: ReadonlyArray<string>, seconds: number): Planned => ({
  text: `kill -9 ${names.join(", ")}; start after ${seconds} s`,
  seconds,
  holds: names,
  begin: async (context) => {
    await Promise.all(names.map((name) => memberOf(context, name).kill()))
    return {
      mayRepeat: delivering(shape, names),
      end: async () => {
        for (const name of names) await memberOf(context, name).start()
      }
    }
  }
})

const names = ({ members }: Shape) => members.map(({ name }) => name)

/** One that delivers in half of the cases: there the promises are hardest to keep. */
const pickOne = (random: Random, shape: Shape): string =>
  random.pick(random.chance(0.5) ? delivering(shape, names(shape)) : names(shape))

const killOne: Fault = {
  name: "process killed",
  nodes: [1, 3],
  short: true,
  plan: (random, shape, secondsMax) =>
    killed(shape, [pickOne(random, shape)], Math.min(secondsMax, random.between(0, 6)))
}

const killSome: Fault = {
  name: "several processes killed",
  nodes: [1, 3],
  plan: (random, shape, secondsMax) => {
    const some = random.shuffle(names(shape)).slice(0, random.between(2, 4))
    return killed(shape, some, Math.min(secondsMax, random.between(1, 8)))
  }
}

const killAll: Fault = {
  name: "all processes killed",
  nodes: [1, 3],
  short: true,
  plan: (random, shape, secondsMax) =>
    killed(shape, names(shape), Math.min(secondsMax, random.between(1, 6)))
}

const freeze: Fault = {
  name: "process frozen",
  nodes: [1, 3],
  short: true,
  // Not cut short at the end of the cycle: a shorter freeze tries nothing.
  plan: (random, shape) => {
    const name = pickOne(random, shape)
    const seconds = random.between(...freezeSeconds)
    return {
      text: `SIGSTOP ${name} for ${seconds} s`,
      seconds,
      holds: [name],
      begin: async (context) => {
        const member = memberOf(context, name)
        member.freeze()
        return { mayRepeat: delivering(shape, [name]), end: async () => member.thaw() }
      }
    }
  }
}

/**
 * Much longer than a pull of messages (5 s): what arrives in that time is applied at waking, and
 * must be older than what the next holder of the lease has written since.
 */
const holderFreezeSeconds = 11

/**
 * The projectors are frozen in turn, three times. After the first one, every freeze hits the holder
 * of the lease, because the other was frozen before.
 */
const freezeHolders: Fault = {
  name: "lease holder frozen",
  nodes: [1, 3],
  plan: (random, shape) => {
    const projectors = shape.members.filter(({ roles }) => roles.includes("projection"))
    const order = random.shuffle(projectors.map(({ name }) => name))
    const turns = [...order, ...order]
      .slice(0, 3)
      .map((name) => [name, random.between(200, 1_000)] as const)
    const frozen = turns.map(([name]) => name)
    return {
      text: `SIGSTOP for ${holderFreezeSeconds} s, in turn: ${frozen.join(", ")}`,
      holds: order,
      seconds: turns.reduce((sum, [, millis]) => sum + holderFreezeSeconds + millis / 1_000, 0),
      begin: async (context) => {
        const all = async () => {
          for (const [name, pauseMillis] of turns) {
            const member = memberOf(context, name)
            member.freeze()
            await sleep(holderFreezeSeconds * 1_000)
            member.thaw()
            await sleep(pauseMillis)
          }
        }
        const done = all()
        return { mayRepeat: delivering(shape, frozen), end: () => done }
      }
    }
  }
}

const storm: Fault = {
  name: "restart storm",
  nodes: [1, 3],
  plan: (random, shape, secondsMax) => {
    const name = pickOne(random, shape)
    const pauses = Array.from({ length: random.between(3, 5) }, () => random.between(300, 4_000))
    return {
      text: `kill -9 and start ${name}, ${pauses.length} times`,
      seconds: Math.min(secondsMax, 1),
      holds: [name],
      begin: async (context) => {
        const member = memberOf(context, name)
        for (const pause of pauses) {
          await member.kill()
          await member.start()
          await sleep(pause)
        }
        return {
          mayRepeat: delivering(
            shape,
            pauses.map(() => name)
          ),
          end: async () => {}
        }
      }
    }
  }
}

const rolling: Fault = {
  name: "rolling restart",
  nodes: [1, 3],
  plan: (random, shape) => {
    const order = random.shuffle(names(shape))
    const pause = random.between(100, 1_500)
    return {
      text: `SIGTERM and start, one after the other: ${order.join(", ")}`,
      seconds: 0,
      holds: names(shape),
      begin: async (context) => {
        for (const name of order) {
          await memberOf(context, name).stop()
          await memberOf(context, name).start()
          await sleep(pause)
        }
        // SIGTERM drains. But NATS may be away meanwhile by another fault.
        return { mayRepeat: [], end: async () => {} }
      }
    }
  }
}

export const memberFaults: ReadonlyArray<Fault> = [
  killOne,
  killSome,
  killAll,
  freeze,
  freezeHolders,
  storm,
  rolling
]
