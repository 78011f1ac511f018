// How many processes deliver, when the others begin and end, and what each may do.
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "vitest"
import { partOfChild, partOfParent } from "#children/group.ts"
import {
  againMillis,
  coresOfGroup,
  idleMillisMax,
  Load,
  processesFor
} from "#children/processes.ts"
import { makeFolder } from "../support/folder.ts"

const mebibyte = 1024 ** 2
const busy = { busy: 0.95, attempts: 2_000 }
const resting = { busy: 0.02, attempts: 0 }

describe("the number of processes that deliver", () => {
  it("is that of the cores, but each has memory, and there is at least one", () => {
    const of = (cores: number, mebibytes: number) =>
      processesFor({ cores, memoryBytes: mebibytes * mebibyte })
    assert.deepEqual([of(1, 8_192), of(2, 8_192), of(16, 65_536)], [1, 2, 16])
    assert.deepEqual([of(16, 384), of(16, 749), of(16, 1_099), of(16, 1_100)], [1, 1, 1, 2])
    assert.deepEqual([of(0.5, 8_192), of(1.9, 8_192)], [1, 1])
  })
})

describe("the cores of a control group", () => {
  const coresWith = async (files: Readonly<Record<string, string>>): Promise<number> => {
    await using folder = await makeFolder()
    for (const [path, text] of Object.entries(files)) {
      const file = join(folder.path, path)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, `${text}\n`)
    }
    return coresOfGroup(folder.path)
  }

  it("are those of the strictest of it and those above", async () => {
    const group = { "proc/self/cgroup": "0::/site/bellcast.service" }
    const [own, above] = ["bellcast.service/", ""].map(
      (each) => `sys/fs/cgroup/site/${each}cpu.max`
    )
    assert.equal(await coresWith(group), Number.POSITIVE_INFINITY)
    assert.equal(await coresWith({ ...group, [own!]: "max 100000" }), Number.POSITIVE_INFINITY)
    assert.equal(
      await coresWith({ ...group, [own!]: "400000 100000", [above!]: "150000 100000" }),
      1.5
    )
    assert.equal(await coresWith({ ...group, [own!]: "50000 100000", [above!]: "max 100000" }), 0.5)
  })

  it("are those of a container, whose root is its group", async () => {
    assert.equal(
      await coresWith({ "proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "200000 100000" }),
      2
    )
  })

  it("are read in version 1, too, also where the path is that of the machine", async () => {
    const group = { "proc/self/cgroup": "5:memory:/x\n4:cpu,cpuacct:/docker/1\n0::/" }
    const folder = "sys/fs/cgroup/cpu,cpuacct"
    const period = { [`${folder}/cpu.cfs_period_us`]: "100000" }
    const quota = (text: string) => ({ ...group, ...period, [`${folder}/cpu.cfs_quota_us`]: text })
    assert.equal(await coresWith(quota("300000")), 3)
    assert.equal(await coresWith(quota("-1")), Number.POSITIVE_INFINITY)
  })

  it("are any number where the system has no groups", async () => {
    assert.equal(await coresWith({}), Number.POSITIVE_INFINITY)
  })
})

describe("the parts of a bound", () => {
  it("are the bound together, and at least 1", () => {
    for (const whole of [4, 5, 64, 768, 117_440_512])
      for (const processes of [1, 2, 3, 4]) {
        const children = (processes - 1) * partOfChild(whole, processes)
        assert.equal(children + partOfParent(whole, processes), whole)
        assert.isAtLeast(partOfParent(whole, processes), partOfChild(whole, processes))
      }
    assert.deepEqual([partOfChild(1, 4), partOfParent(1, 4)], [1, 1])
  })
})

describe("the other processes", () => {
  it("begin when one is busy with pushes, and with nothing else", () => {
    const load = new Load()
    assert.isFalse(load.begins(resting, 0))
    assert.isFalse(load.begins({ busy: 1, attempts: 20 }, 1_000), "requests")
    assert.isFalse(load.begins({ busy: 0.3, attempts: 2_000 }, 2_000), "a distance")
    assert.isTrue(load.begins(busy, 3_000))
  })

  it("end five minutes after all together were half as busy as one can be", () => {
    const load = new Load()
    assert.isTrue(load.begins(busy, 0))
    const ends = (now: number, ...all: Parameters<Load["ends"]>[0]) => load.ends(all, now)
    assert.isFalse(ends(60_000, { busy: 0.3, attempts: 900 }, { busy: 0.3, attempts: 900 }))
    assert.isFalse(ends(60_000 + idleMillisMax - 1, resting, resting))
    assert.isTrue(ends(60_000 + idleMillisMax, resting, resting))
  })

  it("are kept by no small broadcasts, which one process sends beside all else", () => {
    const load = new Load()
    assert.isTrue(load.begins(busy, 0))
    const small = { busy: 0.1, attempts: 100 }
    for (let now = 1_000; now < idleMillisMax; now += 1_000)
      assert.isFalse(load.ends([small, small], now))
    assert.isTrue(load.ends([small, small], idleMillisMax))
  })

  it("are started again later with each death in a row", () => {
    assert.deepEqual([1, 2, 3, 4].map(againMillis), [1_000, 2_000, 4_000, 8_000])
  })
})
