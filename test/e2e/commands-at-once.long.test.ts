import { execFile } from 'node:child_process'
import { beforeEach, expect, test } from 'vitest'
import type { Home } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'

let home: Home
beforeEach(() => {
  home = temporaryHome()
})

const commands = 100

/** Without the deadline of `home.svc`: a hundred starts take long on a busy machine. */
const svc = (...args: readonly string[]): Promise<string> =>
  new Promise((resolve) => {
    execFile(process.execPath, [home.program, ...args], { env: home.env }, (error, _, stderr) =>
      resolve(error === null ? '' : `${error.code} ${stderr}`),
    )
  })

test(`W13 ${commands} commands that change one store at the same time all succeed, and no change is lost`, async () => {
  expect((await home.run(['users', 'add', 'ann', '--no-password'])).code).toBe(0)
  const numbers = Array.from({ length: commands }, (_, at) => at)
  const all = await Promise.all(numbers.map((at) => svc('roles', 'assign', 'ann', '--role', `r${at}`)))
  expect(all.filter((failure) => failure !== '')).toEqual([])
  const { stdout } = await home.run(['roles', 'show', 'ann', '--json'])
  const { AllRoles } = JSON.parse(stdout) as { AllRoles: readonly string[] }
  expect(AllRoles.toSorted()).toEqual(numbers.map((at) => `r${at}`).toSorted())
}, 240_000)
