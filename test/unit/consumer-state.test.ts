// What is wrong with a durable consumer, and from where it starts again.

import { AckPolicy, type ConsumerConfig, DeliverPolicy } from "@nats-io/jetstream"
import { assert, describe, it } from "vitest"
import { consumerConfig } from "#nats/stream/info.ts"
import { editOf, grantedOf, startAgain } from "#nats/watch/consumers.ts"
import { streams } from "#streams/index.ts"

const spec = streams.work.consumers.deliver
/** As nats-server shows a consumer that is as declared: one filter has a field of its own. */
const declared = {
  ...consumerConfig(spec),
  filter_subjects: [...spec.filters] as Array<string>,
  deliver_policy: DeliverPolicy.All,
  max_waiting: 16_384,
  num_replicas: 0
} satisfies Partial<ConsumerConfig>

describe("a durable consumer", () => {
  it("is as declared with either form of the filter and either of our starts", () => {
    const { filter_subjects: _, ...others } = declared
    const startsLater = { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: 7 }
    assert.isUndefined(editOf(declared, spec))
    assert.isUndefined(editOf({ ...others, filter_subject: spec.filters[0]! }, spec))
    assert.isUndefined(editOf({ ...declared, ...startsLater }, spec))
    assert.isUndefined(editOf({ ...declared, backoff: [], max_batch: 0 }, spec))
  })

  it("is changed back when a limit differs, or a pull would fail", () => {
    const changes: ReadonlyArray<Partial<ConsumerConfig>> = [
      { ack_wait: 1_000_000_000 },
      { max_ack_pending: 1 },
      { backoff: [1_000_000_000] },
      { inactive_threshold: 5_000_000_000 },
      { max_batch: 1 },
      { max_bytes: 1 },
      { max_expires: 1_000_000 }
    ]
    for (const change of changes) {
      const edit = editOf({ ...declared, ...change }, spec)
      assert.deepEqual(edit?.fields, Object.keys(change))
      assert.isUndefined(
        editOf({ ...declared, ...change, ...consumerConfig(spec), ...edit!.update }, spec)
      )
    }
  })

  it("is as NATS made it by its own limits, and another value is still a change", () => {
    const limited = { ...declared, max_ack_pending: 500, max_batch: 100 }
    const granted = grantedOf(limited, spec)
    assert.deepEqual(granted, { max_ack_pending: 500, max_batch: 100 })
    assert.isUndefined(editOf(limited, spec, granted))
    assert.deepEqual(editOf({ ...limited, max_batch: 1 }, spec, granted)?.fields, ["max_batch"])
    assert.deepEqual(editOf({ ...limited, max_ack_pending: 1 }, spec, granted)?.fields, [
      "max_ack_pending"
    ])
    assert.deepEqual(grantedOf(declared, spec), {})
  })

  it("is made again when it acknowledges by itself, skips messages or gives them up", () => {
    const changes: ReadonlyArray<Partial<ConsumerConfig>> = [
      { ack_policy: AckPolicy.None },
      { deliver_policy: DeliverPolicy.New },
      { deliver_policy: DeliverPolicy.Last },
      { filter_subjects: ["bellcast.job.nothing"] },
      { headers_only: true },
      { max_deliver: 3 }
    ]
    for (const change of changes) {
      const edit = editOf({ ...declared, ...change }, spec)
      assert.deepEqual(edit, { fields: Object.keys(change), update: undefined })
    }
  })

  it("starts again behind what was acknowledged, in the same stream only", () => {
    const stream = { created: "yesterday", lastSeq: 50 }
    assert.equal(startAgain({ stream: "yesterday", seq: 20 }, stream), 21)
    assert.equal(startAgain(undefined, stream), 1)
    assert.equal(startAgain({ stream: "the day before", seq: 20 }, stream), 1)
    // The stream was restored from an older copy.
    assert.equal(startAgain({ stream: "yesterday", seq: 80 }, stream), 51)
  })
})
