import { readdirSync } from 'node:fs'
import { describe, test } from 'vitest'
import { runScript } from './runner.ts'

const folder = new URL('./scripts/', import.meta.url).pathname

/** What a script proves, where that is a promise. */
const proves: Readonly<Record<string, string>> = {
  'first-admin':
    'P6 nobody is there by default, a container makes the first Admin once, and without one or TLS nobody else is answered',
}

/** Scripts of many starts, whose sentences the tests of `test/cli` prove too. */
const long = ['api', 'role-file', 'roles']

describe('the real binary, as its manual describes', () => {
  for (const name of readdirSync(folder).sort()) {
    const plain = name.replace(/\.txt$/, '')
    const options = { timeout: 120_000, tags: long.includes(plain) ? ['long'] : [] }
    test(proves[plain] ?? plain.replaceAll('-', ' '), options, () => runScript(`${folder}${name}`))
  }
})
