// Runs a bundle (bundle.ts) as a CommonJS module, with the code that V8 compiled in an earlier
// process: every function that was called there. Node's compile cache has only what runs while a
// file is loaded. A start takes 0.25 s of CPU time with Node's cache, and 0.2 s with this code.
const { readFileSync, renameSync, writeFileSync } = require("node:fs")
const { createRequire } = require("node:module")
const { Script } = require("node:vm")

/** Writes the cache when the process ends. */
const keepOnExit = (script, cache) => {
  const first = script.createCachedData()
  process.once("exit", () => {
    const last = script.createCachedData()
    // A hash of V8's flags, of which src/memory/upkeep.ts has changed two. V8 takes a cache only if
    // it has the hash of the process that reads it.
    first.copy(last, 12, 12, 16)
    writeFileSync(`${cache}.part`, last)
    renameSync(`${cache}.part`, cache)
  })
}

/** The module of an operator's own policy. */
const importModule = (url) => import(url)

/**
 * `bundle` is a path without ".js". `filename` is the path that the code takes for its own. With
 * BELLCAST_TEST_CODE=write the process keeps what V8 compiles.
 */
module.exports = (bundle, filename) => {
  const cache = `${bundle}.code`
  const writesCache = process.env.BELLCAST_TEST_CODE === "write"
  const code = readFileSync(`${bundle}.js`, "latin1")
  const script = new Script(
    `(function (require, module, exports, __filename, importModule) {${code}\n})`,
    {
      filename: `${bundle}.js`,
      cachedData: writesCache ? undefined : readFileSync(cache)
    }
  )
  if (writesCache) keepOnExit(script, cache)
  // no-warnings.ts fails the run then.
  if (script.cachedDataRejected) process.emitWarning(`V8 does not take ${cache}`)
  const module = { exports: {} }
  script.runInThisContext()(createRequire(filename), module, module.exports, filename, importModule)
}
