import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { file, folder } from './given.ts'

const config = new URL('../../src/core/config/index.ts', import.meta.url).href

/** Runs a script in a Node of its own; what it loaded beside our files. */
async function loads(script: string, args: readonly string[]): Promise<string[]> {
  const code = `
    import { registerHooks } from 'node:module'
    const seen = new Set()
    registerHooks({
      resolve(specifier, context, next) {
        const found = next(specifier, context)
        const [, name] = /\\/node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(found.url) ?? []
        if (name !== undefined) seen.add(name)
        else if (/^node:(http|https|http2|tls)$/.test(found.url)) seen.add(found.url)
        else if (/\\/core\\/checks\\/kinds\\/(?!index)|\\/config\\/(profile|placeholders|schema)/.test(found.url)) seen.add(found.url.replace(/.*\\/(?:kinds|config)\\//, ''))
        return found
      },
    })
    const { loadConfig, configSchema } = await import(${JSON.stringify(config)})
    const [home] = process.argv.slice(1)
    const options = { env: { SVC_HOME: home }, platform: process.platform, home }
    ${script}
    process.stdout.write(JSON.stringify([...seen].sort()))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', code, ...args])
  return JSON.parse(stdout) as string[]
}

test('without a svc.yaml no YAML parser and no kind is loaded', async () => {
  expect(await loads('await loadConfig(options)', [await folder()])).toEqual([])
})

test('a svc.yaml loads its parser and the kinds that it names', async () => {
  const home = await folder()
  await file(join(home, 'svc.yaml'), 'types: {Sql: [{kind: tcp, host: h, port: 1}]}')
  expect(await loads('await loadConfig(options)', [home])).toEqual(['tcp.ts', 'yaml'])
})

test('the reader of profiles is loaded where a profile is used or defined', async () => {
  const reading = ['placeholders.ts', 'profile-use.ts', 'profiles.ts']
  const home = await folder()
  await file(join(home, 'svc.yaml'), 'types: {XcodeC: [{profile: carbon, host: h}]}')
  expect(await loads('await loadConfig(options)', [home])).toEqual(expect.arrayContaining(reading))
  const other = await folder()
  await file(join(other, 'svc.yaml'), 'profiles: {p: {monitors: [{kind: dns, name: a, query: h}]}}')
  expect(await loads('await loadConfig(options)', [other])).toEqual(expect.arrayContaining(['profiles.ts']))
})

test('no kind loads its driver before it observes', async () => {
  const loaded = await loads('await configSchema()', [await folder()])
  // The built-in profiles are files in YAML.
  expect(loaded.filter((name) => !name.endsWith('.ts'))).toEqual(['yaml'])
  expect(loaded.length).toBeGreaterThan(10)
})
