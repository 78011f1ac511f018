import { hash } from "node:crypto"
import { asciiJson } from "./json.ts"

/** SHA-256, in hex, of a value as a JSON text in ASCII. */
export const jsonHash = (value: unknown): string => hash("sha256", asciiJson(value), "hex")
