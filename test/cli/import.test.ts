import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { documentOf } from '../support/program/documents.ts'
import type { Home } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'

let home: Home
let source: string
beforeEach(() => {
  home = temporaryHome()
  source = join(home.folder, 'gatus.json')
  const endpoints = [
    { name: 'shop', url: 'tcp://127.0.0.1:1', headers: { 'X-Token': 'hunter2' } },
    { name: 'chat', url: 'wss://127.0.0.1:1' },
  ]
  writeFileSync(source, JSON.stringify({ endpoints: [{ ...endpoints[0], url: 'http://127.0.0.1:1/' }, endpoints[1]] }))
})
const written = (): string => join(home.folder, 'svc.yaml')

describe('svc import', () => {
  test('C22 writes svc.yaml, which is valid, and says what each entry became, and no secret', async () => {
    const { code, stdout, stderr } = await home.run(['import', source])
    expect([code, stdout]).toEqual([0, `${written()} is written and valid: 2 entries of ${source}\n`])
    expect(stderr).toContain('endpoint "shop": http shop\n')
    expect(stderr).toContain('endpoint "chat": no monitor\n  not expressed: url: svc does not speak WebSocket\n')
    expect(stderr).toContain('Set SHOP_X_TOKEN: X-Token of shop\n')
    const text = readFileSync(written(), 'utf8')
    expect(text).toContain('      token:\n        env: SHOP_X_TOKEN\n')
    expect(`${text}${stderr}${stdout}`).not.toContain('hunter2')
    if (process.platform !== 'win32') expect(statSync(written()).mode & 0o777).toBe(0o600)
    expect((await home.run(['monitors', 'validate'])).code).toBe(0)
  })

  test('C22 overwrites no file, and names the way out', async () => {
    writeFileSync(written(), 'types: {}\n', { mode: 0o600 })
    const { code, stderr } = await home.run(['import', source])
    expect([code, stderr]).toEqual([
      12,
      expect.stringContaining(`${written()} exists, and svc import never overwrites a file`),
    ])
    expect(stderr).toContain('svc import FILE --output -')
    expect(readFileSync(written(), 'utf8')).toBe('types: {}\n')
  })

  test('prints the file with --output -, and writes none', async () => {
    writeFileSync(written(), 'types: {}\n', { mode: 0o600 })
    const { code, stdout } = await home.run(['import', source, '--output', '-'])
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^# yaml-language-server: .*\n# Proposed by svc import on /),
    ])
    expect(readFileSync(written(), 'utf8')).toBe('types: {}\n')
  })

  test('says in its document what each entry became', async () => {
    const { stdout } = await home.run(['import', source, '--json'])
    const { file, secrets, entries } = documentOf('import', stdout) as Record<string, unknown>
    expect([file, secrets]).toEqual([written(), ['SHOP_X_TOKEN: X-Token of shop']])
    expect(entries).toEqual([
      { entry: 'endpoint "shop"', monitors: ['http shop'], notes: [] },
      { entry: 'endpoint "chat"', monitors: [], notes: ['not expressed: url: svc does not speak WebSocket'] },
    ])
  })

  test.each([
    [['import'], 2, 'FILE is missing'],
    [['import', 'nowhere.yaml'], 12, 'nowhere.yaml cannot be read'],
    [['import', 'nowhere.yaml', '--from', 'gatos'], 2, 'gatus'],
  ])('%j is refused with exit code %i', async (args, code, message) => {
    const result = await home.run(args)
    expect([result.code, result.stderr]).toEqual([code, expect.stringContaining(message)])
  })
})
