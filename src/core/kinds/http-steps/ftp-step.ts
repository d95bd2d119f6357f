import { type CheckContext, fail, type Result } from '../../engine/index.ts'
import { hostPort } from '../../net/connect.ts'
import { readSettings, Secret } from '../../settings/index.ts'
import ftp, { portOf } from '../ftp/index.ts'
import type { FtpStep } from './settings.ts'
import type { StepValues } from './values.ts'

/** Signs in at an FTP server and lists a folder within `ms`, as the ftp kind does in Standard: the worst result speaks. */
export async function runFtpStep(
  name: string,
  step: FtpStep,
  values: StepValues,
  context: CheckContext,
  ms: number,
): Promise<Result> {
  const ends = context.now() + ms
  const { username, password, ...plain } = step
  const secret = values.fill(password, String)
  const settings = {
    ...readSettings(ftp.settings, { host: step.host }, { env: {}, folder: '' }).values,
    ...plain,
    username: values.fill(username, String),
    password: new Secret('a value of this run', () => Promise.resolve(secret)),
  }
  const during: CheckContext = {
    ...context,
    mode: 'Standard',
    msLeft: () => Math.max(1, Math.floor(ends - context.now())),
    // A deadline names the step of this sequence, not that of the ftp kind.
    step: () => {},
  }
  const results: Result[] = []
  for await (const some of ftp.run(settings, during)) results.push(...[some].flat())
  return worstOf(name, results, hostPort(step.host, portOf(settings)), values)
}

function worstOf(name: string, results: readonly Result[], address: string, { hide }: StepValues): Result {
  const worst =
    results.find(({ status }) => status === 'failed') ??
    results.find(({ status }) => status === 'warning') ??
    results.findLast(({ status }) => status === 'ok')
  if (!worst) return fail('step', 'internal', `${name}: looked at nothing`, { address })
  const signIn = results.find(({ check }) => check === 'sign-in')
  const before = worst.status === 'ok' && signIn ? `${signIn.message}; ` : ''
  const details = results.filter((one) => one !== worst && one.status !== 'ok').map(({ message }) => message)
  return {
    ...worst,
    check: 'step',
    message: hide(`${name}: ${before}${worst.message}`),
    details: [...(worst.details ?? []), ...details].map((one) => hide(one)),
  }
}
