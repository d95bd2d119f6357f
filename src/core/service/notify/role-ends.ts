import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import { humanTime } from '../../base/zone.ts'
import type { Config } from '../../config/index.ts'
import type { Data, EndingGrant, KeeperLog } from '../../store/index.ts'
import { isFor, type Notice, type Receiver, type ReceiverConfig } from '../../watch/notify/index.ts'
import type { Part } from '../part.ts'
import { openFor } from './open-receiver.ts'

/** How often svc looks for due notices and resends those that failed. Milliseconds. */
const everyMs = 30_000
/** Milliseconds for one message. */
const maxSendMs = 20_000

/**
 * The subject of the notices, in place of a monitor. Receivers that `only:` limits to types, monitors or tags get none.
 */
const monitor = 'roles'

type Opened = { readonly config: ReceiverConfig; readonly receiver: Receiver }
/** A notice that this node sends, and the names of the receivers that have not accepted it. */
type Pending = { readonly grant: EndingGrant; readonly receivers: Set<string>; accepted: boolean }

/**
 * Notifies the receivers of `notify:` that a role ends soon (O8), once for each end, whichever nodes serve the store.
 * `store/grants.ts` decides when. If a node is killed while a receiver does not answer, its notice is lost.
 */
export function roleEndsPart({
  config,
  version,
  data,
  now = Date.now,
  log = () => {},
}: {
  readonly config: Config
  readonly version: string
  readonly data: () => Promise<Data>
  /** The time that people read. */
  readonly now?: (() => number) | undefined
  readonly log?: KeeperLog | undefined
}): Part {
  const server = config.serve.name ?? hostname()
  const { url, timezone } = config.serve
  const pending = new Map<string, Pending>()
  const stopping = new AbortController()
  let receivers: readonly Opened[] = []
  let timer: NodeJS.Timeout | undefined
  let work = Promise.resolve()
  let fault: string | undefined

  const opened = async ({ notify = [], exec: programs }: Config): Promise<readonly Opened[]> =>
    await Promise.all(
      notify
        .filter(({ only }) => isFor(only, { monitor, tags: [], level: 'warning' }))
        .map(async (one) => ({
          config: one,
          receiver: await openFor({ server, url, version, programs, now, log }, one),
        })),
    )

  const claim = async (store: Data): Promise<void> => {
    for (const grant of await store.users.noticesDue()) {
      if (!(await store.users.claimNotice(grant))) continue
      const names = new Set(receivers.map(({ config: { name } }) => name))
      pending.set(`${grant.seq} ${grant.endsAt}`, { grant, receivers: names, accepted: false })
    }
  }

  const send = async (one: Pending): Promise<void> => {
    const notice = noticeOf(one.grant, { server, url, timezone, now: now() })
    for (const { config: own, receiver } of receivers) {
      if (!one.receivers.has(own.name) || stopping.signal.aborted) continue
      const limit = AbortSignal.any([stopping.signal, AbortSignal.timeout(maxSendMs)])
      const delivery = await receiver.send([notice], limit)
      if (delivery.what === 'later') continue
      one.receivers.delete(own.name)
      if (delivery.what === 'accepted') one.accepted = true
      else
        log({ level: 'warn', msg: `receiver ${own.name} refuses the notice of a role that ends: ${delivery.message}` })
    }
  }

  const look = async (): Promise<void> => {
    if (receivers.length === 0) return
    try {
      const store = await data()
      await claim(store)
      for (const [key, one] of pending) {
        if (one.grant.endsAt > store.clock.now()) await send(one)
        const names = receivers.map(({ config: { name } }) => name)
        const waits = names.some((name) => one.receivers.has(name))
        if (!waits || one.grant.endsAt <= store.clock.now()) pending.delete(key)
      }
      fault = undefined
    } catch (error) {
      // Failures of the store are reported elsewhere.
      const message = error instanceof Error ? error.message : String(error)
      if (message !== fault) log({ level: 'warn', msg: `roles that end soon cannot be looked up: ${message}` })
      fault = message
    }
  }
  const tick = (): void => {
    work = work.then(look)
  }
  return {
    start: async () => {
      receivers = await opened(config)
    },
    answers: () => {
      timer = setInterval(tick, everyMs)
      timer.unref()
      tick()
    },
    reload: async (next) => {
      const others = await opened(next)
      return () => {
        const before = receivers
        receivers = others
        for (const { receiver } of before) void receiver.close()
      }
    },
    cancel: () => {
      clearInterval(timer)
      stopping.abort()
    },
    close: async () => {
      await work
      // Another node, or the next process, sends notices that no receiver has accepted.
      const store = pending.size > 0 ? await data().catch(() => undefined) : undefined
      for (const { grant, accepted } of pending.values()) {
        if (!accepted) await store?.users.returnNotice(grant).catch(() => undefined)
      }
      pending.clear()
      for (const { receiver } of receivers) await receiver.close()
      receivers = []
    },
  }
}

function noticeOf(
  { seq, kind, name, userName, endsAt, grantedBy, reason }: EndingGrant,
  {
    server,
    url,
    timezone,
    now,
  }: {
    readonly server: string
    readonly url: string | undefined
    readonly timezone: string | undefined
    readonly now: number
  },
): Notice {
  const end = humanTime(endsAt, { zone: timezone, to: 'minute' })
  const why = reason === undefined ? '' : `: ${reason}`
  const by = grantedBy === undefined ? '' : ` (granted by ${grantedBy}${why})`
  const id = createHash('sha256').update(`${server} ${seq} ${endsAt}`).digest('hex').slice(0, 16)
  return {
    subject: { server, monitor, check: `${kind} ${name} of ${userName} ends soon` },
    id,
    what: 'begin',
    level: 'warning',
    incident: id,
    beganAt: now,
    observedAt: now,
    text: `${userName} loses the ${kind} "${name}" at ${end}${by}. To keep it for longer: svc roles extend`,
    victims: { count: 0, names: [] },
    tags: [],
    url,
    timezone,
  }
}
