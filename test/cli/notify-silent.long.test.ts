import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryHome } from '../support/program/temporary-home.ts'

test('M6 a receiver that accepts the connection and never answers: exit code 7, with the time that svc waited', async () => {
  const sockets = new Set<Socket>()
  const silent = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
  })
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const { port } = silent.address() as { readonly port: number }
  const home = temporaryHome()
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    silent.close()
  })

  const config = `notify: [{name: chat, webhook: {url: "http://127.0.0.1:${port}/"}}]\n`
  writeFileSync(join(home.folder, 'svc.yaml'), config, { mode: 0o600 })
  const { code, stdout } = await home.run(['notify', 'test'], { columns: 200 })
  expect([code, stdout]).toEqual([7, expect.stringContaining(`http://127.0.0.1:${port} did not answer within 10 s`)])
})
