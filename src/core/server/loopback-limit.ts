import type { Socket } from 'node:net'
import type { PeerProcess } from '../protocol/service/service.ts'

/** A connection on loopback, as far as the limit on their number goes. */
export type LocalConnection = {
  /** Its account (uid). `unknown`: a search did not find it. `pending`: no search has looked for it yet. */
  readonly account: number | 'unknown' | 'pending'
  /** Nothing is to be done for it: it waits for its client. */
  readonly isIdle: boolean
  /** Nothing has arrived on it yet. */
  readonly isSilent: boolean
  /** Monotonic milliseconds. */
  readonly openedAt: number
}

export type LocalLimits = {
  /** The number of connections that may stay open. */
  readonly most: number
  /** Milliseconds that a silent connection may stay open once half of them are in use. */
  readonly silentMs: number
}

/** Whether so many connections are open that silent ones are closed and accounts matter. */
export const isCrowded = (open: number, { most }: Pick<LocalLimits, 'most'>): boolean => open >= most / 2

/**
 * The connections to close (S3), of all open ones, the oldest first: those that have been silent for too long, and of what
 * exceeds the limit, the oldest idle ones of the account that has the most idle ones at the time. Accounts that nobody knows
 * count as one. A connection that no search has looked for yet stays open up to twice the limit: a search is about to come.
 */
export function connectionsToClose<C extends LocalConnection>(
  open: readonly C[],
  { most, silentMs }: LocalLimits,
  now: number,
): readonly C[] {
  if (!isCrowded(open.length, { most })) return []
  const isOverdue = ({ isSilent, openedAt }: C): boolean => isSilent && now - openedAt >= silentMs
  const close = open.filter(isOverdue)
  const idle = new Map<number | 'unknown', C[]>()
  for (const one of open) {
    if (!one.isIdle || isOverdue(one)) continue
    const account = one.account === 'pending' ? 'unknown' : one.account
    const same = idle.get(account)
    if (same) same.push(one)
    else idle.set(account, [one])
  }
  while (open.length - close.length > most) {
    let largest: C[] = []
    for (const ones of idle.values()) if (ones.length > largest.length) largest = ones
    const [oldest] = largest
    if (oldest === undefined || (oldest.account === 'pending' && open.length <= 2 * most)) break
    largest.shift()
    close.push(oldest)
  }
  return close
}

type Rules = LocalLimits & {
  /** Milliseconds between two searches for accounts, at least. */
  readonly searchEveryMs: number
  readonly processOf: (socket: Socket) => Pick<PeerProcess, 'account' | 'isOwn'>
  /** Whether the limit does not apply to processes of the account of this server. */
  readonly exemptsOwn: boolean
  /** The bytes of the shortest beginning of a request: with fewer, a connection is silent. */
  readonly firstBytes: number
  /** A test of connections for something that the server has yet to do for them. */
  readonly busy: () => (socket: Socket) => boolean
  /** Called for every connection that this limit closes. */
  readonly refused: () => void
  /** Called instead for one that may still ask for no more than a probe. */
  readonly refuse: (socket: Socket) => void
}

type Entry = { readonly openedAt: number; account: LocalConnection['account']; isExempt: boolean }

/**
 * A 'connection' listener for the connections from loopback, all of which count as one address: it closes what
 * `connectionsToClose` decides. One search finds the accounts of all of them together.
 */
export function limitLocal(rules: Rules): (socket: Socket) => void {
  const entries = new Map<Socket, Entry>()
  let searchedAt = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | undefined
  let isSettling = false

  const counted = (): [Socket, Entry][] => [...entries].filter(([, { isExempt }]) => !isExempt)

  const settle = (): void => {
    isSettling = false
    const isBusy = rules.busy()
    const open = counted().map(([socket, { account, openedAt }]) => ({
      socket,
      account,
      openedAt,
      isIdle: !isBusy(socket),
      isSilent: socket.bytesRead < rules.firstBytes,
    }))
    const now = performance.now()
    for (const { socket, isSilent, openedAt } of connectionsToClose(open, rules, now)) {
      entries.delete(socket)
      if (isSilent && now - openedAt < rules.silentMs) rules.refuse(socket)
      else {
        rules.refused()
        socket.destroy()
      }
    }
  }

  const search = async (): Promise<void> => {
    searchedAt = performance.now()
    const missing = counted().filter(([, { account }]) => typeof account !== 'number')
    await Promise.all(
      missing.map(async ([socket, entry]) => {
        const process = rules.processOf(socket)
        entry.account = (await process.account()) ?? 'unknown'
        entry.isExempt = rules.exemptsOwn && entry.account !== 'unknown' && (await process.isOwn())
      }),
    )
    settle()
  }

  const watch = (): void => {
    clearTimeout(timer)
    timer = undefined
    if (!isCrowded(counted().length, rules)) return
    const due = searchedAt + rules.searchEveryMs - performance.now()
    if (due <= 0) void search()
    timer = setTimeout(watch, due <= 0 ? rules.searchEveryMs : due).unref()
  }

  return (socket) => {
    entries.set(socket, { openedAt: performance.now(), account: 'pending', isExempt: false })
    socket.once('close', () => entries.delete(socket))
    if (timer === undefined && isCrowded(entries.size, rules)) watch()
    if (entries.size <= rules.most || isSettling) return
    isSettling = true
    // Connections arrive many at a time, and the requests on them have been read by then.
    setImmediate(settle)
  }
}
