import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type ServeEnd, serveEnds } from '../support/program/serve-ends.ts'
import { svcHome } from '../support/program/svc.ts'

type Made = Exclude<ServeEnd['by'], { readonly test: string }>
const made = serveEnds.flatMap(({ way, exit, by }) => (typeof by === 'function' ? [[way, exit, by] as const] : []))

describe('W16 svc serve ends by itself', () => {
  test.concurrent.each<readonly [string, ServeEnd['exit'], Made]>(made)('W16 %s: exit code %s', async (_, exit, by) => {
    const home = svcHome()
    try {
      const { args = ['--port', '0'], env = {}, yaml = '{}\n', says } = by(home.folder)
      writeFileSync(join(home.folder, 'svc.yaml'), yaml, { mode: 0o600 })
      const { code, stderr } = await home.svc(['serve', ...args], { env })
      expect({ code, stderr }).toEqual({ code: exit === 'signal' ? null : exit, stderr: expect.stringMatching(says) })
    } finally {
      home.remove()
    }
  })
})
