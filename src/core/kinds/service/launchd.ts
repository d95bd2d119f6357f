import type { ServiceState } from './state.ts'

export const launchctl = '/bin/launchctl'
export const launchctlArgs = (service: string): readonly string[] => ['print', `system/${service}`]

/** Reads what `launchctl print system/LABEL` prints. Undefined when it is something else. */
export function parseLaunchd(text: string): ServiceState | undefined {
  if (/^(?:Could not find service|Bad request)/m.test(text)) return { is: 'absent', words: 'not found' }
  // Of the service itself: what belongs to a part of it stands further in.
  const lines = text.split('\n')
  const value = (name: string): string | undefined => {
    const begin = `\t${name} = `
    return lines
      .find((line) => line.startsWith(begin) && line.length > begin.length)
      ?.slice(begin.length)
      .trim()
  }
  const state = value('state')
  if (state === undefined) return undefined
  const [pid, runs] = [value('pid'), value('runs')].map((one) =>
    one && /^\d{1,10}$/.test(one) ? Number(one) : undefined,
  )
  const exit = value('last exit code')
  const code = exit === undefined ? undefined : /^-?\d{1,10}/.exec(exit)?.[0]
  const wrong = state !== 'running' && code !== undefined && code !== '0'
  return {
    is: state === 'running' ? 'running' : wrong ? 'failed' : 'stopped',
    words: state.slice(0, 64),
    pid,
    // The first start is none again.
    restarts: runs === undefined ? undefined : Math.max(0, runs - 1),
    why: wrong ? `exit code ${code}` : undefined,
  }
}
