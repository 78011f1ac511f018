// How many copies of a stream are current, as its leader says.
import { assert, describe, it } from "vitest"
import type { Look } from "#nats/watch/streams.ts"
import { copiesOf, type LastCurrent } from "#nats/watch/streams.ts"

type Cluster = NonNullable<Parameters<typeof lookAt>[0]>

const lookAt = (
  cluster:
    | {
        readonly leader?: string
        readonly replicas?: ReadonlyArray<{
          readonly name: string
          readonly current: boolean
          readonly offline?: boolean
        }>
      }
    | undefined,
  ended: number,
  replicas = 3
): Look => ({
  began: ended,
  ended,
  streams: new Map([
    [
      "BELLCAST_LOG",
      {
        created: "",
        ts: "",
        config: { max_bytes: 1, num_replicas: replicas },
        state: { messages: 0, bytes: 0, first_seq: 1, first_ts: "", last_seq: 0 },
        ...(cluster && { cluster })
      }
    ]
  ])
})

const peers = (...current: ReadonlyArray<boolean>): Cluster => ({
  leader: "a",
  replicas: current.map((each, n) => ({ name: "bc"[n]!, current: each }))
})

describe("the copies of a stream", () => {
  it("are those of the leader and of the servers that are current", () => {
    const [all] = copiesOf(lookAt(peers(true, true), 0), new Map())
    assert.deepEqual(all, { stream: "BELLCAST_LOG", current: 3, wanted: 3, behind: [] })
    const [two] = copiesOf(lookAt(peers(true, false), 0), new Map())
    assert.deepInclude(two, { current: 2, behind: ["c"] })
  })

  it("count one that is behind for moments, and none that stays behind", () => {
    const last: LastCurrent = new Map()
    copiesOf(lookAt(peers(true, true), 0), last)
    assert.equal(copiesOf(lookAt(peers(true, false), 29_000), last)[0]!.current, 3)
    assert.equal(copiesOf(lookAt(peers(true, false), 31_000), last)[0]!.current, 2)
    assert.equal(copiesOf(lookAt(peers(true, true), 32_000), last)[0]!.current, 3)
  })

  it("are fewer without a leader, and where a server is offline", () => {
    const { replicas } = peers(true, true)
    assert.equal(copiesOf(lookAt({ replicas: replicas! }, 0), new Map())[0]!.current, 2)
    const offline = [replicas![0]!, { name: "c", current: true, offline: true }]
    const cluster = { leader: "a", replicas: offline }
    assert.equal(copiesOf(lookAt(cluster, 0), new Map())[0]!.current, 2)
  })

  it("are one with one server, which may be fewer than wanted", () => {
    const [one] = copiesOf(lookAt(undefined, 0, 1), new Map())
    assert.deepEqual(one, { stream: "BELLCAST_LOG", current: 1, wanted: 1, behind: [] })
  })
})
