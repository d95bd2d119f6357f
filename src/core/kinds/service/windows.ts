import type { ServiceState } from './state.ts'

export const scArgs = (service: string): readonly string[] => ['queryex', service]

/** The states by number: their names may be in any language. */
const states: Readonly<Record<number, readonly [ServiceState['is'], string]>> = {
  1: ['stopped', 'stopped'],
  2: ['changing', 'being started'],
  3: ['changing', 'being stopped'],
  4: ['running', 'running'],
  5: ['changing', 'being continued'],
  6: ['changing', 'being paused'],
  7: ['stopped', 'paused'],
}
/** `ERROR_SERVICE_NEVER_STARTED`: no error. */
const neverStarted = 1077

/** Reads what `sc.exe queryex` prints, in any language of Windows. Undefined when it is something else. */
export function parseWindows(text: string): ServiceState | undefined {
  // ERROR_SERVICE_DOES_NOT_EXIST
  if (/\b1060\b/.test(text.split(/\r?\n/, 1)[0] ?? '')) return { is: 'absent', words: 'not installed' }
  const values = text.split(/\r?\n/).flatMap((line) => {
    const colon = line.indexOf(':')
    const [label, value] = [line.slice(0, Math.max(0, colon)).trim(), line.slice(colon + 1).trim()]
    return /^\s/.test(line) && label !== '' && value !== '' ? [{ label, value }] : []
  })
  // The type comes first and the state second, whatever they are called.
  const state = /^(\d)\b/.exec(values[1]?.value ?? '')?.[1]
  const known = state === undefined ? undefined : states[Number(state)]
  if (!known) return undefined
  const [is, words] = known
  const figure = (name: string): number | undefined => {
    const found = values.find(({ label }) => label === name)?.value
    return found !== undefined && /^\d{1,10}\b/.test(found) ? Number.parseInt(found, 10) : undefined
  }
  const [exit = 0, own = 0] = [figure('WIN32_EXIT_CODE'), figure('SERVICE_EXIT_CODE')]
  // 1066: the service's own code says more.
  const code = exit === 1066 ? own : exit
  const wrong = is === 'stopped' && code !== 0 && code !== neverStarted
  return {
    is: wrong ? 'failed' : is,
    words,
    pid: figure('PID') || undefined,
    why: wrong ? `exit code ${code}` : undefined,
  }
}
