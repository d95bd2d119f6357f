import { Fault } from '../core/errors.ts'

/**
 * A signal that aborts at the first SIGINT or SIGTERM, with the Fault that tells which. A second one
 * ends the process at once: whoever presses ctrl-C twice means it.
 */
export function interruption(): { readonly signal: AbortSignal; readonly release: () => void } {
  const controller = new AbortController()
  const heard = (name: 'SIGINT' | 'SIGTERM') => (): void => {
    if (controller.signal.aborted) {
      process.removeAllListeners(name)
      process.kill(process.pid, name)
      return
    }
    controller.abort(new Fault('Interrupted', name === 'SIGINT' ? 'Interrupted' : 'Ended by SIGTERM'))
  }
  const int = heard('SIGINT')
  const term = heard('SIGTERM')
  process.on('SIGINT', int)
  process.on('SIGTERM', term)
  return {
    signal: controller.signal,
    release: () => {
      process.off('SIGINT', int)
      process.off('SIGTERM', term)
    },
  }
}
