import { readdirSync } from 'node:fs'
import { describe, test } from 'vitest'
import { runScript } from './runner.ts'

const folder = new URL('./scripts/', import.meta.url).pathname

describe('the real binary, as its manual says', () => {
  for (const name of readdirSync(folder).sort()) {
    test(name.replace(/\.txt$/, '').replaceAll('-', ' '), { timeout: 120_000 }, () => runScript(`${folder}${name}`))
  }
})
