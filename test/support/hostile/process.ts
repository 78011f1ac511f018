// What Linux tells of a process: open descriptors, resident memory, connections of a client.
import { readdirSync, readFileSync } from "node:fs"

/** Open files, sockets and pipes. */
export const descriptorsOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length

/** Resident memory in MiB: now (VmRSS), or the highest since the start (VmHWM). */
export const mebibytesOf = (pid: number, field: "VmRSS" | "VmHWM" = "VmRSS"): number => {
  const status = readFileSync(`/proc/${pid}/status`, "utf8")
  return Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1] ?? Number.NaN) / 1024
}

const established = "01"
const closeWait = "08"

const hexOf = (number: number, digits: number) =>
  number.toString(16).toUpperCase().padStart(digits, "0")

/** Connections of a local IPv4 address to a port of 127.0.0.1 that the server has not closed. */
export const connectionsOf = (address: string, port: number): number => {
  // Linux prints the address as a number in the byte order of the machine: little endian.
  const bytes = address.split(".").toReversed()
  const peer = `${bytes.map((byte) => hexOf(Number(byte), 2)).join("")}:`
  return readFileSync("/proc/net/tcp", "utf8")
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(
      ([, local = "", remote = "", state = ""]) =>
        local.endsWith(`:${hexOf(port, 4)}`) &&
        remote.startsWith(peer) &&
        (state === established || state === closeWait)
    ).length
}
