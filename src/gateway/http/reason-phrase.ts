// Reason phrases of HTTP statuses, for the status line.
import { STATUS_CODES } from "node:http"

/** Node.js 24 has "Payload Too Large" for 413, the name before RFC 9110. */
const renamed: Readonly<Record<number, string>> = { 413: "Content Too Large" }

/** The reason phrase of RFC 9110 section 15, or of the RFC that defines the status. */
export const reasonPhrase = (status: number): string =>
  renamed[status] ?? STATUS_CODES[status] ?? ""
