import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { operations } from '../../../src/core/protocol/index.ts'
import { languages } from '../../../src/core/protocol/metadata/index.ts'
import { type Accounts, password, startAccounts } from '../../server/accounts.ts'
import { ask } from '../../server/site.ts'
import { temporaryFolder } from '../../support/suite/temporary-folder.ts'
import { farMs } from '../../support/suite/until.ts'

const folder = temporaryFolder()
const dtos = join(folder, 'dtos.ts')
let site: Accounts
let text = ''
beforeAll(async () => {
  site = await startAccounts()
  text = (await ask(site.port, '/types/typescript')).text
  writeFileSync(dtos, text)
})
afterAll(() => site.close())

async function run(args: readonly string[]): Promise<{ code: number | null; out: string }> {
  const child = spawn(process.execPath, args, { cwd: folder, timeout: farMs })
  let out = ''
  child.stdout.on('data', (chunk) => {
    out += String(chunk)
  })
  child.stderr.on('data', (chunk) => {
    out += String(chunk)
  })
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, out }
}
const tsc = (...args: string[]) =>
  run([new URL('../../../node_modules/typescript/bin/tsc', import.meta.url).pathname, ...args])

test('R6 it compiles under tsc --strict, also where only erasable syntax is allowed, and its types refuse a wrong request', async () => {
  const typed = (
    line: string,
  ): string => `import { ExecutionMode, HealthCheckRequest, HealthCheckResponse, type IReturn } from './dtos.js'
const request = new HealthCheckRequest({ ExecutionMode: ExecutionMode.Advanced, ServerType: 'Sql' })
const returns: IReturn<HealthCheckResponse> = request
export const told: 'Success' | 'Failure' | undefined = returns.createResponse().Status
${line}
`
  writeFileSync(join(folder, 'use.ts'), typed(''))
  writeFileSync(join(folder, 'wrong.ts'), typed("request.ServerType = 'Nope'"))
  const strict = [
    '--strict',
    '--noEmit',
    '--noImplicitOverride',
    '--exactOptionalPropertyTypes',
    '--erasableSyntaxOnly',
  ]
  const { out } = await tsc(...strict, '--module', 'nodenext', dtos, 'use.ts', 'wrong.ts')
  expect(out.match(/^\S.*error TS.*/gm)).toEqual([expect.stringMatching(/^wrong\.ts.*"Nope"/)])
})

test('R6 R3 the unmodified client works with them, alone and in batches', async () => {
  const child = new URL('client-child.ts', import.meta.url).pathname
  const { code, out } = await run([child, dtos, site.server.url, password])
  expect([code, out.slice(0, 1)]).toEqual([0, '{'])
  expect(JSON.parse(out)).toEqual({
    got: 'Success',
    posted: 'Success',
    requests: 'Success',
    failed: 'HealthCheckFailed',
    all: [['One'], ['One', 'Two']],
    ended: { errorCode: 'NotFound', message: 'nobody', errors: [], meta: { autoBatchIndex: '1' } },
    holder: ['One', 'Two', 'Three', 'Five'],
  })
})

test('R6 it contains the block that typescript-ref keeps, with the address to request again', () => {
  expect(text).toContain('Options:')
  // What the tool reads: lines of `Key: value` up to the end of the comment.
  const lines = text.slice(text.indexOf('Options:'), text.indexOf('*/')).split('\n')
  expect(lines).toContain(`BaseUrl: ${site.server.url}`)
  expect(text).toContain('export class HealthCheckRequest implements IReturn<HealthCheckResponse> {')
})

test('R6 each operation and each of its fields is present', () => {
  const described = {
    base: 'http://localhost',
    pages: [],
    reports: [],
    jsonp: true,
    basic: false,
    names: 'PascalCase' as const,
  }
  const { typescript } = languages
  const made = typescript.file(described, typescript.read([]), new Date('2026-11-20T12:00:00Z'))
  expect(made.split('\n')[1]).toBe('Date: 2026-11-20 12:00:00')
  for (const { name, request, response } of Object.values(operations)) {
    for (const { name: type, fields } of [request, response]) {
      const body = made.split(`export class ${type} `)[1]?.split('\n}\n')[0] ?? ''
      for (const field of Object.keys(fields))
        expect([type, body]).toEqual([type, expect.stringContaining(`public ${field}?: `)])
    }
    expect(made).toContain(`return '${name}'`)
  }
})

test('R6 the declarations compile under tsc --strict and need no import', async () => {
  const use = join(folder, 'declared-use.ts')
  writeFileSync(join(folder, 'dtos.d.ts'), (await ask(site.port, '/types/typescript.d')).text)
  const typed = (mode: string): string => `/// <reference path="./dtos.d.ts" />
const request: dtos.HealthCheckRequest = { ExecutionMode: '${mode}', ServerType: 'Sql' }
export const answer = (response: dtos.HealthCheckResponse): number | undefined =>
  response.Status === 'Failure' && request.ServerType !== undefined ? response.FailedMonitorCount : undefined
`
  writeFileSync(use, typed('Basic'))
  writeFileSync(join(folder, 'declared-wrong.ts'), typed('Nope'))
  const { out } = await tsc('--strict', '--noEmit', use, 'declared-wrong.ts')
  expect(out.match(/^\S.*error TS.*/gm)).toEqual([expect.stringMatching(/^declared-wrong\.ts.*"Nope"/)])
})
