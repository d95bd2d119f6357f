import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Home, svcHome } from '../../support/program/svc.ts'
import { temporaryHome } from '../../support/program/temporary-home.ts'
import { httpPeer } from '../../support/simulated/http-peer.ts'
import { temporaryFolder } from '../../support/suite/temporary-folder.ts'

test('H11 svc health, run twice, signs in once with a rotated password, and at once with the corrected one', async () => {
  let valid = 'new'
  const attempts: string[] = []
  await using server = await httpPeer((request, response) => {
    const [, packed = ''] = (request.headers.authorization ?? '').split(' ')
    if (packed !== '') attempts.push(Buffer.from(packed, 'base64').toString())
    const accepted = Buffer.from(packed, 'base64').toString() === `svc:${valid}`
    response.writeHead(accepted ? 200 : 401, { 'Content-Type': 'text/plain' }).end('page')
  })
  const home: Home = temporaryHome()
  const secret = join(home.folder, 'secret')
  try {
    writeFileSync(secret, 'old password', { mode: 0o600 })
    const lines = ['a', 'b', 'c'].map(
      (name) => `{kind: http, name: ${name}, url: "${server.origin}/", username: svc, password: {file: ${secret}}}`,
    )
    const yaml = `types:\n  App: [${lines[0]}, ${lines[1]}]\n  Batch: [${lines[2]}]\n`
    writeFileSync(join(home.folder, 'svc.yaml'), yaml, { mode: 0o600 })
    const health = async () => {
      const ran = await home.svc(['health', '-m', 'Standard', '-o', 'ndjson'])
      const records = ran.stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, string>)
      return {
        code: ran.code,
        levels: records.filter(({ MonitorName }) => MonitorName?.startsWith('http')).map(({ Level }) => Level),
      }
    }
    const first = await health()
    expect([first.code, attempts.length]).toEqual([3, 1])
    expect(first.levels).toContain('not checked')
    expect(first.levels.filter((level) => level === 'fail').length).toBeGreaterThan(0)
    const second = await health()
    expect([second.code, attempts.length]).toEqual([3, 1])
    expect(second.levels.toSorted()).toEqual(['fail', 'not checked', 'not checked'])
    const file = join(home.folder, 'state', 'refused-sign-ins.json')
    expect([statSync(file).mode & 0o777, statSync(join(file, '..')).mode & 0o777]).toEqual([0o600, 0o700])
    expect(readFileSync(file, 'utf8')).not.toMatch(/old password|127\.0\.0\.1/)
    expect((await home.svc(['monitors', 'test', 'http a'])).code).toBe(3)
    expect(attempts.length).toBe(2)
    valid = 'corrected'
    writeFileSync(secret, valid, { mode: 0o600 })
    const mended = await health()
    expect([mended.code, new Set(mended.levels)]).toEqual([0, new Set(['ok'])])
    expect(attempts.slice(2)).toEqual(Array.from({ length: attempts.length - 2 }, () => 'svc:corrected'))
  } finally {
  }
}, 60_000)

test('the folder of the state is made with the first refusal, and not before', async () => {
  const folder = temporaryFolder()
  const home = svcHome(undefined, folder)
  await home.svc(['health', '-t', 'App', '-m', 'Basic'])
  expect(home.files().filter((name) => name.startsWith('state'))).toEqual([])
})
