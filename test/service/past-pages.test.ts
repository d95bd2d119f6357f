import { join } from 'node:path'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import type { AdministrationContext } from '../../src/core/accounts/auth/index.ts'
import { administrationOver } from '../../src/core/service/accounts/administration.ts'
import { openData } from '../../src/core/store/index.ts'
import { actor, newUser } from '../support/store/data-fixture.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

afterEach(() => {
  vi.useRealTimers()
})

test('W11 the pages of who held a role at a time read the audit once, until nobody asks for 60 s', async () => {
  const data = await openData({ store: join(temporaryFolder(), 'store', 'svc.db'), create: true })
  onTestFinished(() => data.close())
  for (const name of ['Cy', 'ann', 'Ben'])
    await data.users.add(newUser(name, { roles: ['Ops'], permissions: [] }), actor())
  const reads = vi.spyOn(data.audit, 'ofRoles')
  const { roleHolders } = administrationOver({
    data: async () => data,
    providers: [],
  } as unknown as AdministrationContext)
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const At = new Date(data.clock.now())
  const by = { ...actor(), signal: new AbortController().signal }
  const page = async (After?: string, Role = 'Ops') => {
    const { Users = [], Total } = await roleHolders({ Role, At, Take: 1, After }, by)
    return [...Users.map(({ UserName }) => UserName), Total, reads.mock.calls.length]
  }
  expect(await page()).toEqual(['ann', 3, 1])
  expect(await page('ann')).toEqual(['Ben', undefined, 1])
  vi.advanceTimersByTime(59_000)
  // A page that is asked for before another question is answered from the past that was kept.
  expect(await Promise.all([page('Ben'), page(undefined, 'None')])).toEqual([
    ['Cy', undefined, expect.any(Number)],
    [0, 2],
  ])
  expect(await page('ann')).toEqual(['Ben', undefined, 3])
  vi.advanceTimersByTime(61_000)
  expect(await page('Ben')).toEqual(['Cy', undefined, 4])
  expect(await page('Cy')).toEqual([undefined, 4])
})
