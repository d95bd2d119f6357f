import { fail } from '../judge.ts'
import type { Finding } from '../monitor.ts'
import { count, said } from '../probe/text.ts'
import { grant } from './postgres-faults.ts'

/** Not a silent green: what this account may not see may be just what is wrong. */
export const hiddenFrom = (url: string, check: string, n: number, one: string): Finding =>
  fail(check, 'data', `${count(n, one)} ${n === 1 ? 'is' : 'are'} hidden from this account`, {
    details: [grant(said(decodeURIComponent(new URL(url).username), 64))],
  })
