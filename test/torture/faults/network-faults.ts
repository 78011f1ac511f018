// What happens to connections: cut, frozen, one-way or slow, between a process of the service and
// NATS, and between the servers of a cluster.
import { setTimeout as sleep } from "node:timers/promises"
import type { Random } from "../random.ts"
import type { Fault, Ongoing } from "./fault.ts"
import type { Direction, TcpProxy } from "./tcp-proxy.ts"

interface Failure {
  readonly text: string
  /** Applied every second, so that reconnecting is part of it. */
  readonly again: boolean
  /** Only in one direction, which `apply` is given. */
  readonly isOneWay?: boolean
  readonly apply: (link: TcpProxy, direction: Direction) => void
}

/** The direction that fails on a link when only one does. */
interface Failing {
  readonly link: TcpProxy
  readonly direction: Direction
}

const pickFailure = (random: Random): Failure => {
  const delayMillis = random.pick([20, 200, 1_000])
  return random.pick<Failure>([
    { text: "cut", again: false, apply: (link) => link.cut() },
    { text: "reset once a second", again: true, apply: (link) => link.reset() },
    { text: "frozen", again: false, apply: (link) => link.freeze() },
    {
      text: "frozen one way",
      again: false,
      isOneWay: true,
      apply: (link, direction) => link.freeze(direction)
    },
    { text: `slow (${delayMillis} ms)`, again: false, apply: (link) => link.delay(delayMillis) }
  ])
}

const fail = (failure: Failure, links: ReadonlyArray<Failing>): Ongoing["end"] => {
  const apply = () => {
    for (const { link, direction } of links) failure.apply(link, direction)
  }
  apply()
  const timer = failure.again ? setInterval(apply, 1_000) : undefined
  return async () => {
    clearInterval(timer)
    for (const { link } of links) link.heal()
  }
}

const memberLinks: Fault = {
  name: "connections to NATS cut, frozen, one-way, slow",
  nodes: [1, 3],
  short: true,
  plan: (random, { members }, secondsMax) => {
    const count = random.between(1, Math.min(3, members.length))
    const names = random
      .shuffle(members)
      .slice(0, count)
      .map(({ name }) => name)
    const failure = pickFailure(random)
    const direction = random.pick<Direction>(["to server", "to client"])
    const oneWay = failure.isOneWay ? ` ${direction}` : ""
    return {
      text: `connections of ${names.join(", ")} ${failure.text}${oneWay}`,
      holds: names.map((name) => `links of ${name}`),
      seconds: Math.min(secondsMax, random.between(3, 30)),
      begin: async ({ nats }) => {
        const links = await Promise.all(names.map((name) => nats.linksOf(name)))
        const failing = links.flat().map((link) => ({ link, direction }))
        return { mayRepeat: names, end: fail(failure, failing) }
      }
    }
  }
}

/** Longer than a lease (2 s), so that another process takes it. */
const lateSeconds = 5

/**
 * Writes of every process that may hold a lease arrive late, one process after the other: when they
 * do, another holds the lease and has written newer values.
 */
const lateWrites: Fault = {
  name: "writes of lease holders late",
  nodes: [1, 3],
  short: true,
  plan: (random, { members }) => {
    const holders = members.filter(
      ({ roles }) => roles.includes("projection") || roles.includes("tally")
    )
    const names = random.shuffle(holders.map(({ name }) => name))
    return {
      text: `writes arrive ${lateSeconds} s late: ${names.join(", ")}, one after the other`,
      holds: names.map((name) => `links of ${name}`),
      seconds: 0,
      begin: async ({ nats }) => {
        for (const name of names) {
          const links = await nats.linksOf(name)
          for (const link of links) link.freeze("to server")
          await sleep(lateSeconds * 1_000)
          for (const link of links) link.heal()
        }
        return { mayRepeat: names, end: async () => {} }
      }
    }
  }
}

/** Pairs of servers, by index, that cannot talk to each other. */
const pickPairs = (random: Random) => {
  const [a, b, c] = random.shuffle([0, 1, 2]) as [number, number, number]
  return random.pick([
    {
      text: `server ${a + 1} alone`,
      pairs: [
        [a, b],
        [a, c]
      ] as const
    },
    { text: `between servers ${a + 1} and ${b + 1}`, pairs: [[a, b]] as const },
    {
      text: "every server alone",
      pairs: [
        [a, b],
        [a, c],
        [b, c]
      ] as const
    }
  ])
}

const routes: Fault = {
  name: "connections between nats-servers cut, frozen, one-way, slow",
  nodes: [3],
  plan: (random, _shape, secondsMax) => {
    const { text, pairs } = pickPairs(random)
    const failure = pickFailure(random)
    return {
      text: `routes ${failure.text}: ${text}`,
      holds: ["nats"],
      seconds: Math.min(secondsMax, random.between(5, 30)),
      begin: async ({ nats }) => {
        const name = (index: number) => nats.servers[index]!.name
        const links = pairs.flatMap(([one, other]) => {
          const [fromOne, fromOther] = nats.linksBetween(name(one), name(other))
          // Either server may have dialled: nothing from the first one arrives at the other.
          return [
            { link: fromOne, direction: "to server" as const },
            { link: fromOther, direction: "to client" as const }
          ]
        })
        return { mayRepeat: "all", end: fail(failure, links) }
      }
    }
  }
}

export const networkFaults: ReadonlyArray<Fault> = [memberLinks, lateWrites, routes]
