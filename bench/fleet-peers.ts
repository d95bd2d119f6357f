/**
 * Many servers on loopback in one process, each with a port of its own, that answer any request after a time.
 *
 *     node bench/fleet-peers.ts COUNT MILLISECONDS
 *
 * Sends the ports to its parent. It parses nothing, so that the programs that ask are what is measured.
 */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'

const [count, ms] = process.argv.slice(2).map(Number) as [number, number]
const results = [{ MonitoringName: 'status', Status: 'Success', StatusMessage: '200 in 43 ms' }]
const body = JSON.stringify({
  Status: 'Success',
  StatusMessage: 'App is healthy',
  FailedMonitorCount: 0,
  MonitorSummaries: [{ MonitorName: 'http shop', Status: 'Success', Results: results }],
})
const answer = [
  'HTTP/1.1 200 OK',
  'Content-Type: application/json',
  `Content-Length: ${body.length}`,
  'Connection: close',
  '',
  body,
].join('\r\n')

const serve = (socket: Socket): void => {
  socket.on('error', () => {})
  socket.once('data', () => setTimeout(() => socket.end(answer), ms))
}
const ports: number[] = []
for (let at = 0; at < count; at += 1) {
  const server = createServer(serve).listen(0, '127.0.0.1', 1_024)
  await once(server, 'listening')
  ports.push((server.address() as AddressInfo).port)
}
process.send?.(ports)
