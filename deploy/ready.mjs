// Exits with 0 when `svc serve` on this machine answers /readyz with 200, else with 1 and a reason.
//
//   node ready.mjs 8790            the port
//   node ready.mjs /run/svc/port   the file that `svc serve --port-file` writes
//   node ready.mjs 8790 --wait 60  tries again for up to 60 seconds; then a server that answers /livez with 200
//                                  suffices: it watches without its store, and systemd ends what fails here
//
// systemd starts it after the service, and a container engine as health check. No certificate is verified: the
// connection goes to this machine, sends nothing secret, and the name in the certificate is not 127.0.0.1.
import { readFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import { setTimeout as pause } from 'node:timers/promises'

const [place = '8790', flag, seconds = '0'] = process.argv.slice(2)
const until = Date.now() + (flag === '--wait' ? Number(seconds) * 1000 : 0)

/** What is wrong, or undefined when the server answers this path with 200. */
async function problem(path = '/readyz') {
  let port = place
  if (!/^\d+$/.test(place)) {
    try {
      port = readFileSync(place, 'utf8').trim()
    } catch (error) {
      return `svc serve does not listen yet (${place} ${error.code === 'ENOENT' ? 'does not exist' : 'is not readable'})`
    }
  }
  const plain = await request(http, 'http', port, path)
  // A server with TLS answers plain HTTP with 400, or closes the connection.
  return plain === undefined ? undefined : (await request(https, 'https', port, path)) === undefined ? undefined : plain
}

function request(client, scheme, port, path) {
  return new Promise((resolve) => {
    const options = { timeout: 3000, rejectUnauthorized: false, agent: false }
    const call = client.get(`${scheme}://127.0.0.1:${port}${path}`, options, (response) => {
      response.resume()
      resolve(response.statusCode === 200 ? undefined : `${path} answers ${response.statusCode}`)
    })
    call.on('timeout', () => call.destroy(new Error('no answer within 3 s')))
    call.on('error', (error) => resolve(`port ${port}: ${error.message}`))
  })
}

let reason = await problem()
while (reason !== undefined && Date.now() < until) {
  await pause(200)
  reason = await problem()
}
if (reason !== undefined) {
  process.stderr.write(`not ready: ${reason}\n`)
  const lives = flag === '--wait' && (await problem('/livez')) === undefined
  process.exitCode = lives ? 0 : 1
}
