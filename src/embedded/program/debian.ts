// Fetches the Debian package of nats-server and unpacks it without root: apt runs with a sources
// list and state folders of its own.
import { existsSync } from "node:fs"
import { mkdir, readdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { type CommandOptions, install, outputOf, type Place } from "./install.ts"

/** Two names of the same file: .gpg until Debian 12, .pgp since. */
const keyrings = [
  "/usr/share/keyrings/debian-archive-keyring.pgp",
  "/usr/share/keyrings/debian-archive-keyring.gpg"
]

/** The first mirror of Debian proper among the indexes that apt has. */
const mirrorInIndexes = async (options: CommandOptions) => {
  const printed = await outputOf(
    "apt-get",
    ["indextargets", "--format", "$(ORIGIN) $(REPO_URI)", "Created-By: Packages"],
    options
  )
  return /^Debian ((?!.*security)\S+)$/m.exec(printed)?.[1]
}

/**
 * The first mirror in the sources, for fresh images where apt was never updated. No origin is known
 * there, so the URL must contain /debian.
 */
const mirrorInSources = async (options: CommandOptions) => {
  const printed = await outputOf("apt-get", ["update", "--print-uris"], options)
  return /^'((?!.*security)[^']*\/debian\/?)\/dists\//m.exec(printed)?.[1]
}

/**
 * Written to a file, as only a file can clear the machine's own hooks, pins and default release.
 * Hooks would change the system.
 */
const aptConfig = (folder: string) => `
#clear APT::Update;
#clear APT::Default-Release;
Dir::Etc::sourcelist "${folder}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State "${folder}";
Dir::State::lists "${folder}/lists";
Dir::State::status "${folder}/status";
Dir::Cache "${folder}";
Dir::Cache::archives "${folder}/archives";
Debug::NoLocking "1";
APT::Sandbox::User "";
Acquire::Retries "2";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::DEP-11-icons-small::DefaultEnabled "false";
Acquire::IndexTargets::deb::DEP-11-icons::DefaultEnabled "false";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
`

const prepare = async (folder: string, mirror: string, keyring: string): Promise<string> => {
  const config = join(folder, "apt.conf")
  await mkdir(join(folder, "lists", "partial"), { recursive: true })
  await mkdir(join(folder, "archives", "partial"), { recursive: true })
  await writeFile(join(folder, "status"), "")
  await writeFile(join(folder, "sources.list"), `deb [signed-by=${keyring}] ${mirror} sid main\n`)
  await writeFile(config, aptConfig(folder))
  return config
}

/** The path of a nats-server from Debian sid. Rejects with the reason. */
export const fromDebian = async (place: Place): Promise<string> => {
  const options = { ...place, timeoutMillis: 60_000 }
  await outputOf("apt-get", ["--version"], options)
  const keyring = keyrings.find(existsSync)
  if (keyring === undefined)
    throw new Error("no /usr/share/keyrings/debian-archive-keyring.* to check signatures with")
  const mirror =
    (await mirrorInIndexes(options)) ?? (await mirrorInSources(options).catch(() => undefined))
  if (mirror === undefined) throw new Error("apt is not set up for Debian")
  place.say("fetching nats-server from Debian ...")
  return install(place, async (folder) => {
    const config = await prepare(folder, mirror, keyring)
    await outputOf("apt-get", ["-c", config, "update", "--error-on=any"], options)
    // `apt-get download` writes into the current folder.
    await outputOf(
      "sh",
      ["-c", 'cd "$1" && exec apt-get -c "$2" download nats-server', "sh", folder, config],
      options
    )
    const archive = (await readdir(folder)).find((name) => name.endsWith(".deb"))
    if (archive === undefined) throw new Error("apt-get download left no package")
    await outputOf("dpkg", ["-x", join(folder, archive), join(folder, "unpacked")], options)
    return join(folder, "unpacked", "usr", "sbin", "nats-server")
  })
}
