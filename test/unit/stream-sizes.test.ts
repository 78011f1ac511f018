// How large streams are made where there is little storage, and when the limit of one changes.
import { assert, describe, it } from "vitest"
import { storageBytes } from "#embedded/limits.ts"
import {
  declaredBytes,
  existingBytesMax,
  isNoStorage,
  leastBytes,
  loweredBytesMax,
  newBytesMax,
  shares
} from "#nats/admin/ensure-streams.ts"

const mebibyte = 1024 ** 2

describe("a new stream", () => {
  it("gets its declared size, a share of it, or what the operator set", () => {
    assert.equal(newBytesMax("BELLCAST_LOG", 1), 4096 * mebibyte)
    assert.equal(newBytesMax("BELLCAST_LOG", 1 / 8), 512 * mebibyte)
    assert.equal(newBytesMax("BELLCAST_LOG", 1 / 8, 70_000), 70_000)
  })

  it("is tried in falling shares, from all to 235 MiB for everything", () => {
    assert.equal(shares[0], 1)
    assert.deepEqual(
      shares,
      shares.toSorted((one, other) => other - one)
    )
    assert.equal(Object.keys(declaredBytes).length, 9)
    assert.equal(leastBytes({}), 235 * mebibyte)
    assert.equal(leastBytes({ BELLCAST_LOG: 10 * mebibyte }), 181 * mebibyte)
  })

  it("that two starts create ends at the lower limit, and holds what it has", () => {
    assert.equal(loweredBytesMax({ bytesMax: 400, bytes: 10 }, 200), 200)
    assert.equal(loweredBytesMax({ bytesMax: 100, bytes: 10 }, 200), 100)
    assert.equal(loweredBytesMax({ bytesMax: 400, bytes: 300 }, 200), 300)
    assert.equal(loweredBytesMax({ bytesMax: -1, bytes: 10 }, 200), 200)
  })
})

describe("a stream that exists", () => {
  it("keeps its limit unless the operator set one", () => {
    assert.equal(existingBytesMax({ bytesMax: 9_000, bytes: 10 }), 9_000)
    assert.equal(existingBytesMax({ bytesMax: 9_000, bytes: 10 }, 500), 500)
  })

  it("never gets a limit below what it holds", () => {
    assert.equal(existingBytesMax({ bytesMax: 9_000, bytes: 600 }, 500), 600)
  })
})

it("tells too little storage from servers that are offline", () => {
  const refusal = (code: number, message: string) => isNoStorage({ code, message })
  assert.isTrue(refusal(10047, "insufficient storage resources available"))
  assert.isTrue(refusal(10122, "stream max bytes exceeds account limit max stream bytes"))
  assert.isTrue(refusal(10005, "no suitable peers for placement, insufficient storage"))
  assert.isFalse(refusal(10005, "no suitable peers for placement, peer offline"))
  assert.isFalse(refusal(10058, "stream name already in use with a different configuration"))
})

it("gives the embedded server three quarters of the disk, and never less than is reserved", () => {
  const disk = { freeBytes: 1_000, usedBytes: 600, reservedBytes: 900 }
  assert.equal(storageBytes(disk), 1_200)
  assert.equal(storageBytes({ ...disk, reservedBytes: 5_000 }), 5_000)
})
