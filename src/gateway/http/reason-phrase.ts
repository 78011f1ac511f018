// The words beside a status, the same on the status line and in the body of an error.
import { STATUS_CODES } from "node:http"

/** Node 24 says "Payload Too Large" for 413, the name before RFC 9110. */
const renamed: Readonly<Record<number, string>> = { 413: "Content Too Large" }

/** The reason phrase of RFC 9110 section 15, or of the RFC that defines the status. */
export const reasonPhrase = (status: number): string =>
  renamed[status] ?? STATUS_CODES[status] ?? ""
