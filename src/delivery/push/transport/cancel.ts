// Cancels the HTTP/2 streams of pushes that are given up. undici calls `stream.close()` and then
// destroys the stream. Without a code Node.js holds RST_STREAM back until the body is sent, and a
// destroyed stream sends neither. nghttp2 goes on asking for the body, gets 0 bytes each time, and
// makes empty DATA frames without end: the process hangs and grows by 300 MB a second (seen with
// Node.js 22.19 and 24.21, undici 8.12). A push service causes that by keeping its window shut for
// longer than a time-out, and so does a freeze of the process while it sends. With the code CANCEL
// Node.js sends RST_STREAM at once.
import { subscribe } from "node:diagnostics_channel"
import { type ClientHttp2Stream, constants } from "node:http2"

subscribe("http2.client.stream.created", (message) => {
  const { stream } = message as { readonly stream: ClientHttp2Stream }
  const close = stream.close.bind(stream)
  stream.close = (code = constants.NGHTTP2_CANCEL, done) => close(code, done)
})
