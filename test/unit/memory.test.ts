// How much memory the embedded nats-server may use before Go collects more often.
import { assert, it } from "vitest"
import { goEnvironment, memoryLimitBytes } from "#embedded/limits.ts"

const mebibyte = 1024 ** 2
const unlimited = 2 ** 64

it.for([
  ["three fifths of the machine", 4096, 0, 2457],
  ["of the control group, where that is smaller", 16_384, 2048, 1228],
  ["of the machine, where the group has no limit", 4096, unlimited, 2457],
  ["never less than the minimum", 4096, 64, 256]
] as const)("is %s", ([, total, group, limit]) => {
  const bytes = memoryLimitBytes(total * mebibyte, group * mebibyte)
  assert.equal(Math.floor(bytes / mebibyte), limit)
})

it("stays as the environment has it", () => {
  const set = { A: "b", GOMEMLIMIT: "1GiB", GOGC: "off" }
  assert.deepEqual(goEnvironment(set), set)
  assert.match(goEnvironment({ A: "b" })["GOMEMLIMIT"] ?? "", /^\d+MiB$/)
  const unset = goEnvironment({ GOMEMLIMIT: "", GOGC: "" })
  assert.match(unset["GOMEMLIMIT"] ?? "", /^\d+MiB$/)
  assert.equal(unset["GOGC"], "50")
})
