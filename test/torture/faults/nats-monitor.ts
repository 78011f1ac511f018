// Reads the health and the leaders of nats-servers from their monitoring, which works when clients
// cannot connect.
import type { NatsServer } from "./fault.ts"

/** `/jsz`: only what is read here. */
interface Replica {
  readonly name: string
  readonly current?: boolean
  readonly offline?: boolean
}
interface Raft {
  readonly leader?: string
  readonly replicas?: ReadonlyArray<Replica>
}
interface StreamDetail {
  readonly name: string
  readonly cluster?: Raft
  readonly consumer_detail?: ReadonlyArray<{ readonly cluster?: Raft }>
}
interface Jsz {
  readonly meta_cluster?: { readonly leader?: string; readonly cluster_size: number }
  readonly account_details?: ReadonlyArray<{
    readonly stream_detail?: ReadonlyArray<StreamDetail>
  }>
}

/** Undefined: no answer, or one that says no. A frozen server takes connections and is silent. */
const get = async <A>({ monitorUrl }: NatsServer, path: string): Promise<A | undefined> => {
  try {
    const response = await fetch(`${monitorUrl}${path}`, { signal: AbortSignal.timeout(2_000) })
    if (response.ok) return (await response.json()) as A
    await response.body?.cancel()
    return undefined
  } catch {
    return undefined
  }
}

const streamsOf = (jsz: Jsz): ReadonlyArray<StreamDetail> =>
  (jsz.account_details ?? []).flatMap(({ stream_detail = [] }) => stream_detail)

/** What the leader reports of its replicas; the others report less. */
const isSettled = (server: string, raft: Raft | undefined): boolean => {
  // A stream without replicas has no leader to name.
  if (raft === undefined) return true
  if (raft.leader === undefined || raft.leader === "") return false
  if (raft.leader !== server) return true
  return (raft.replicas ?? []).every(({ current, offline }) => current === true && !offline)
}

const isHealthyOne = async (server: NatsServer, size: number): Promise<boolean> => {
  if (server.pid === undefined) return false
  const health = await get<{ readonly status: string }>(server, "/healthz")
  if (health?.status !== "ok") return false
  const jsz = await get<Jsz>(server, "/jsz?streams=true&consumers=true")
  if (jsz === undefined) return false
  if (size > 1 && (jsz.meta_cluster?.leader ?? "") === "") return false
  return streamsOf(jsz).every(
    ({ cluster, consumer_detail = [] }) =>
      isSettled(server.name, cluster) &&
      consumer_detail.every((consumer) => isSettled(server.name, consumer.cluster))
  )
}

/** Every server runs, every stream and consumer has a leader, and no replica is behind. */
export const areHealthy = async (servers: ReadonlyArray<NatsServer>): Promise<boolean> => {
  const healthy = await Promise.all(servers.map((server) => isHealthyOne(server, servers.length)))
  return healthy.every(Boolean)
}

/** The first answer that names one: servers in a minority may name a leader of before. */
const mostNamed = (names: ReadonlyArray<string | undefined>): string | undefined => {
  const named = names.filter((name) => name !== undefined && name !== "")
  const count = (name: string | undefined) => named.filter((other) => other === name).length
  return named.toSorted((one, other) => count(other) - count(one))[0]
}

/** Leads the cluster itself: which streams there are and where. Undefined: nobody, or a single. */
export const metaLeader = async (
  servers: ReadonlyArray<NatsServer>
): Promise<NatsServer | undefined> => {
  const answers = await Promise.all(servers.map((server) => get<Jsz>(server, "/jsz")))
  const name = mostNamed(answers.map((answer) => answer?.meta_cluster?.leader))
  return servers.find((server) => server.name === name)
}

/** Undefined: the stream has no leader, or no replicas. */
export const streamLeader = async (
  servers: ReadonlyArray<NatsServer>,
  stream: string
): Promise<NatsServer | undefined> => {
  const answers = await Promise.all(servers.map((server) => get<Jsz>(server, "/jsz?streams=true")))
  const leaders = answers.map((answer) =>
    answer === undefined
      ? undefined
      : streamsOf(answer).find(({ name }) => name === stream)?.cluster?.leader
  )
  const name = mostNamed(leaders)
  return servers.find((server) => server.name === name)
}
