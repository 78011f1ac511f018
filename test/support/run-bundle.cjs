// Runs a bundle (bundle.ts) as a CommonJS module, with the code that V8 compiled for an earlier
// process: all that ran until that ended. Node's compile cache has only what runs while a file is
// loaded. A start takes 0.19 s of CPU time with it and 0.25 s with Node's; 20 pushes 0.10 and 0.15.
const { readFileSync, renameSync, writeFileSync } = require("node:fs")
const { createRequire } = require("node:module")
const { Script } = require("node:vm")

/** Writes the cache when the process ends. */
const keepOnExit = (script, cache) => {
  const first = script.createCachedData()
  process.once("exit", () => {
    const last = script.createCachedData()
    // A hash of V8's flags, of which the service has changed some: else V8 would not take the cache.
    first.copy(last, 12, 12, 16)
    writeFileSync(`${cache}.part`, last)
    renameSync(`${cache}.part`, cache)
  })
}

/** For policies of an operator. */
const importModule = (url) => import(url)

/**
 * `bundle` is a path without ".js". `filename` is the path that the code takes for its own. With
 * BELLCAST_TEST_CODE=write the process keeps what V8 compiles.
 */
module.exports = (bundle, filename) => {
  const cache = `${bundle}.code`
  const isFirst = process.env.BELLCAST_TEST_CODE === "write"
  const code = readFileSync(`${bundle}.js`, "latin1")
  const script = new Script(
    `(function (require, module, exports, __filename, importModule) {${code}\n})`,
    {
      filename: `${bundle}.js`,
      cachedData: isFirst ? undefined : readFileSync(cache)
    }
  )
  if (isFirst) keepOnExit(script, cache)
  // no-warnings.ts fails the run then.
  if (script.cachedDataRejected) process.emitWarning(`V8 does not take ${cache}`)
  const module = { exports: {} }
  script.runInThisContext()(createRequire(filename), module, module.exports, filename, importModule)
}
