import { fail, type Result } from '../../engine/index.ts'
import { count, said } from '../../net/text.ts'
import { grant } from './faults.ts'

/** Not a silent green: what this account may not see may be just what is wrong. */
export const hiddenFrom = (url: string, check: string, n: number, one: string): Result =>
  fail(check, 'data', `${count(n, one)} ${n === 1 ? 'is' : 'are'} hidden from this account`, {
    details: [grant(said(decodeURIComponent(new URL(url).username), 64))],
  })
