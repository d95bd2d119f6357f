import { expect, test } from 'vitest'
import { optionalDriver } from '../../src/core/net/driver.ts'
import { ProbeError } from '../../src/core/probe-error.ts'

// A name that no tool resolves before the test runs.
const absent = ['no', 'such', 'driver'].join('-')

test('a driver that is not installed is named, with a remedy', async () => {
  const driver = optionalDriver(absent, () => import(absent))
  await expect(driver).rejects.toBeInstanceOf(ProbeError)
  await expect(driver).rejects.toThrow(/the driver no-such-driver is not installed: run npm install no-such-driver/)
})

test('a driver that is installed but lacks a dependency is not reported as absent', async () => {
  const driver = optionalDriver('driver', () => import(absent))
  await expect(driver).rejects.not.toBeInstanceOf(ProbeError)
})
