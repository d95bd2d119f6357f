import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { classify } from '../../../src/core/checks/engine/classify.ts'

test('an unexpected error of a file names the file and says what is wrong with it, without a code', async () => {
  const error: unknown = await readFile('/nowhere/orders.pem').catch((thrown: unknown) => thrown)
  expect(classify(error, '10.0.0.9:5432', 3)).toEqual({
    fault: 'internal',
    message: '/nowhere/orders.pem does not exist',
    details: ['ENOENT'],
  })
})

test('an error of a connection keeps its meaning, also one with a path', async () => {
  const error: unknown = await new Promise((resolve) => connect({ port: 1, host: '127.0.0.1' }).once('error', resolve))
  expect(classify(error, '127.0.0.1:1', 3)).toMatchObject({
    fault: 'refused',
    message: expect.stringContaining('refused'),
  })
})
