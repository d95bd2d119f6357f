/**
 * The least that Node can spend on many requests: a loop over node:net that parses nothing but where the answer ends.
 *
 *     node bench/fleet-loop.ts NUMBER-AT-ONCE PORT …
 */
import { connect } from 'node:net'

const [atOnce = 1, ...ports] = process.argv.slice(2).map(Number)
const ask = (): void => {
  const port = ports.pop()
  if (port === undefined) return
  const socket = connect(port, '127.0.0.1', () =>
    socket.write('GET /healthcheck HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n', 'latin1'),
  )
  socket.once('data', () => {
    socket.destroy()
    ask()
  })
}
for (let at = 0; at < atOnce; at += 1) ask()
