import { notChecked, type Result } from '../engine/index.ts'

/** What lets an account see the processes of others. */
export const seesAllProcesses =
  'the account of the processes, or the group of the option gid= with which /proc is mounted'

/** The result of a check that needs processes which `option` of /proc hides from this account. */
export const hiddenBy = <const Name extends string>(check: Name, option: string): Result<Name> =>
  notChecked(
    check,
    'permission',
    `/proc is mounted with ${option}, so that this account sees only its own processes: ${seesAllProcesses}`,
  )
