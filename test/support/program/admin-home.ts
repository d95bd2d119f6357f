import { expect } from 'vitest'
import { type Home, svcHome } from './svc.ts'

export const password = 'violet-harbour-42'

/** A home whose store has the Admin ann. */
export async function homeWithAdmin(): Promise<Home> {
  const home = svcHome()
  const ran = await home.run(['users', 'add', 'ann', '--role', 'Admin', '--password-stdin'], { stdin: password })
  expect(ran).toMatchObject({ code: 0 })
  return home
}

export async function userNames(home: Home): Promise<readonly string[]> {
  const { stdout } = await home.run(['users', 'list', '--json'])
  return (JSON.parse(stdout) as { users: { userName: string }[] }).users.map(({ userName }) => userName)
}
