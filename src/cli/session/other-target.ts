import { Fault } from '../../core/base/errors.ts'
import type { ProcessEnvironment } from '../io/io.ts'
import { chooseTarget } from '../settings/target.ts'
import { readSettings, shownUrl } from './session.ts'

/**
 * The server at which commands with a target act by default, as `prod (https://…)` or its URL; undefined when that is
 * this machine. A mistake in the settings or variables counts as none: it must not prevent work on this machine.
 */
export async function otherTarget(env: ProcessEnvironment): Promise<string | undefined> {
  try {
    const target = await chooseTarget({}, env, () => readSettings(env))
    if (target.kind === 'local') return undefined
    const url = shownUrl(target.url)
    return target.profile ? `${target.profile.name} (${url})` : url
  } catch (error) {
    if (error instanceof Fault) return undefined
    throw error
  }
}

/** Which commands a current profile affects, for the commands that change it. */
export const profileScope: readonly string[] = [
  'At this server: health, history, impact, silence, ack, nodes, doctor, heartbeat, drill, roles, users, keys, audit, heartbeats, sessions, api, whoami, passwd, logout.',
  'On this machine: secrets, monitors, notify, serve, profile, config.',
  'With --local, health, history, impact, silence, ack, nodes, heartbeat, drill, roles, users, keys, audit, heartbeats and sessions act on this machine; audit export, backup and restore always do.',
]
