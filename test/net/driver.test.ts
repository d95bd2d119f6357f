import { expect, test } from 'vitest'
import { optionalDriver } from '../../src/core/net/driver.ts'
import { ProbeError } from '../../src/core/probe-error.ts'

// A name that no tool resolves before the test runs.
const absent = ['no', 'such', 'driver'].join('-')

test('a driver that is not installed is named, with the way out', async () => {
  const asked = optionalDriver(absent, () => import(absent))
  await expect(asked).rejects.toBeInstanceOf(ProbeError)
  await expect(asked).rejects.toThrow(/the driver no-such-driver is not installed: run npm install no-such-driver/)
})

test('a driver that is there but misses something of its own is not called absent', async () => {
  const asked = optionalDriver('driver', () => import(absent))
  await expect(asked).rejects.not.toBeInstanceOf(ProbeError)
})
