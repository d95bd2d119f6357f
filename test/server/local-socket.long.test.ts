import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { startServeProcess } from '../support/program/serve-process.ts'
import { suiteWith } from '../support/suite/peer.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

const missing = process.platform === 'win32' ? 'Windows has no such sockets' : undefined

suiteWith(missing, 'serve.socket of the built program', () => {
  test('S9 S11 svc.yaml names the socket, a start after a kill replaces it, and a stop removes it', async () => {
    const folder = temporaryFolder()
    const socketPath = join(folder, 'svc.sock')
    const yaml = `serve:\n  socket: ${socketPath}\n  trustLocal: false\n`
    const metrics = async (): Promise<string> => {
      const sent = request({ socketPath, path: '/metrics', headers: { host: 'localhost' }, agent: false }).end()
      const [response] = await once(sent, 'response')
      return await text(response)
    }
    const figures = 'svc_build_info'
    {
      await using killed = await startServeProcess(yaml)
      expect(await metrics()).toContain(figures)
      expect(await (await fetch(`http://127.0.0.1:${killed.port}/metrics`)).text()).not.toContain(figures)
      await expect(startServeProcess(yaml)).rejects.toThrow(`serve.socket: ${socketPath} is in use by another process`)
    }
    expect(existsSync(socketPath)).toBe(true)
    await using stopped = await startServeProcess(yaml)
    expect(await metrics()).toContain(figures)
    stopped.signal('SIGTERM')
    expect(await stopped.ended).toBe(0)
    expect(existsSync(socketPath)).toBe(false)
  })
})
