// Buckets of this process, with the same operations: what the streams are folded into before the
// result is compared with the server. They hold as much as the streams, so they are in a temporary
// file of SQLite, with a bounded part of it in memory. The file has no name: nothing is left of it
// after a `kill -9`.
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { type BucketName, bucketNames } from "#streams/buckets.ts"
import { AppendConflict, unavailable } from "../connection/errors.ts"
import type { Buckets } from "./bucket.ts"

/** The JSON of an entry and its revision, which means nothing on the server. */
export interface TextEntry {
  readonly text: string
  readonly revision: number
}

export interface DiskBuckets {
  readonly buckets: Buckets["Service"]
  /** An entry, or `meta`. */
  readonly entry: (bucket: BucketName, key: string) => TextEntry | undefined
  /** Writes a text in the place of `former`, which the key has, and returns its revision. */
  readonly set: (
    bucket: BucketName,
    key: string,
    text: string,
    former: TextEntry | undefined
  ) => number
  /**
   * The next entries after a revision, in the order in which they were written, with `meta`; none:
   * there are no more. An entry that is written meanwhile may come twice.
   */
  readonly after: (
    bucket: BucketName,
    revision: number
  ) => ReadonlyArray<TextEntry & { readonly key: string }>
  /** The highest revision so far, of all buckets. */
  readonly last: () => number
}

/** The temporary file has no room, or there is no folder for it. Ends what folds. */
export class NoScratch extends Data.TaggedError("NoScratch")<{ readonly message: string }> {}

/** Kibibytes of the file that are in memory. */
const cacheKibibytes = 24 * 1024
/** Entries, and characters of their texts, that are read at once. */
const readAtOnce = 500
const charactersAtOnce = 4 * 1024 ** 2

/** The bucket is read by key only. */
const notHere = Effect.fail(unavailable("read a bucket of a file")(new Error("not supported")))

/** Opens empty buckets, until the scope closes. */
export const makeDiskBuckets = Effect.gen(function* () {
  const db = yield* Effect.acquireRelease(Effect.sync(openFile), (file) =>
    Effect.sync(() => file.close())
  )
  const tables = new Map(bucketNames.map((name) => [name, makeTable(db, name)] as const))
  db.exec("BEGIN")
  let last = 0
  const table = (bucket: BucketName) => tables.get(bucket)!

  const set: DiskBuckets["set"] = (bucket, key, text, former) => {
    const { insert, remove } = table(bucket)
    if (former !== undefined) remove(former.revision)
    insert(++last, key, text)
    return last
  }

  const putText: Buckets["Service"]["putText"] = (bucket, key, text, revision) =>
    Effect.suspend(() => {
      const former = table(bucket).entry(key)
      return (former?.revision ?? 0) === revision
        ? Effect.succeed(set(bucket, key, text, former))
        : Effect.fail(new AppendConflict({ subject: key }))
    })

  const buckets: Buckets["Service"] = {
    revision: () => Effect.succeed(0),
    // The types of keys and values hold at compile time only: see values.ts.
    get: (bucket, key) =>
      Effect.sync(() => {
        const found = table(bucket).entry(key)
        if (found === undefined) return undefined
        const { revision, text } = found
        return { key, value: JSON.parse(text), revision, bytes: text.length }
      }),
    put: (bucket, key, value, revision) => putText(bucket, key, JSON.stringify(value), revision),
    putText,
    remove: (bucket, revision) => Effect.sync(() => table(bucket).remove(revision)),
    getMany: () => notHere,
    changes: () => notHere
  }
  const made: DiskBuckets = {
    buckets,
    entry: (bucket, key) => table(bucket).entry(key),
    set,
    after: (bucket, revision) => table(bucket).after(revision),
    last: () => last
  }
  return made
})

type Database = InstanceType<typeof import("node:sqlite")["DatabaseSync"]>

/**
 * Opens a temporary file, which SQLite deletes at once: in `SQLITE_TMPDIR`, `TMPDIR`, /var/tmp,
 * /usr/tmp or /tmp, the first that it may write to. Nobody needs the file after a crash, so it has
 * no journal, and one transaction that never ends: pages are written when memory has no room.
 */
const openFile = (): Database => {
  const db = new (sqlite().DatabaseSync)("")
  db.exec(`PRAGMA journal_mode = OFF; PRAGMA cache_size = -${cacheKibibytes}`)
  return db
}

/**
 * The module of Node.js, loaded by those that fold only. Node 22 warns that it is experimental:
 * operators can do nothing about that.
 */
const sqlite = (): typeof import("node:sqlite") => {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return process.getBuiltinModule("node:sqlite")
  } finally {
    process.emitWarning = emitWarning
  }
}

/**
 * The entries of a bucket in the order of their revisions: a new text is written at the end of the
 * file, wherever its key is.
 */
const makeTable = (db: Database, name: BucketName) => {
  db.exec(
    `CREATE TABLE ${name} (revision INTEGER PRIMARY KEY, key TEXT NOT NULL, text TEXT NOT NULL);` +
      `CREATE UNIQUE INDEX ${name}_key ON ${name} (key)`
  )
  const get = db.prepare(`SELECT revision, text FROM ${name} WHERE key = ?`)
  const next = db.prepare(
    `SELECT revision, key, text FROM ${name} WHERE revision > ? ORDER BY revision`
  )
  const insert = db.prepare(`INSERT INTO ${name} (revision, key, text) VALUES (?, ?, ?)`)
  const remove = db.prepare(`DELETE FROM ${name} WHERE revision = ?`)
  return {
    entry: (key: string) => scratch(() => get.get(key) as TextEntry | undefined),
    after: (revision: number) => scratch(() => firstOf(next.iterate(revision))),
    insert: (revision: number, key: string, text: string) =>
      void scratch(() => insert.run(revision, key, text)),
    remove: (revision: number) => void scratch(() => remove.run(revision))
  }
}

/** The first rows, as many as are read at once. */
const firstOf = (rows: Iterable<unknown>): ReturnType<DiskBuckets["after"]> => {
  const found: Array<ReturnType<DiskBuckets["after"]>[number]> = []
  let characters = 0
  for (const row of rows as Iterable<(typeof found)[number]>) {
    found.push(row)
    characters += row.text.length
    if (found.length === readAtOnce || characters >= charactersAtOnce) break
  }
  return found
}

/** Runs an operation of SQLite. Throws NoScratch, as a defect, where the disk is full. */
const scratch = <A>(run: () => A): A => {
  try {
    return run()
  } catch (error) {
    throw new NoScratch({
      message:
        `a temporary file failed (${(error as Error).message}): it needs about ` +
        "twice the size of the buckets in the folder that TMPDIR names, or in /var/tmp"
    })
  }
}
