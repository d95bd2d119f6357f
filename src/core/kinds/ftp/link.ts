import type { Socket } from 'node:net'
import type { CheckContext } from '../../engine/index.ts'
import type { Chain } from '../../net/chain.ts'
import type { PeerAddress } from '../../net/peer-address.ts'
import type { Hide } from '../../net/text.ts'
import type { Control } from './control.ts'

/** A control connection, up to the sign-in or beyond it. */
export type Link = {
  readonly control: Control
  readonly target: PeerAddress
  readonly context: CheckContext
  readonly hide: Hide
  readonly keep: Keep
  /** Addresses of data connections beside the control connection's own. */
  readonly dataHosts: readonly string[]
  /** With TLS. */
  readonly tls: LinkTls | undefined
}

/** Has a socket destroyed with the session, and at the deadline. */
export type Keep = <S extends Socket>(socket: S) => S

/** The encryption of the control connection, and what a data connection needs to be a part of it. */
export type LinkTls = {
  readonly host: string
  readonly chain: Chain
  /** The newest session to resume. */
  readonly session: () => Buffer | undefined
}

/** Milliseconds for one answer: one that does not come leaves time for the rest. */
export const wait = (context: CheckContext): number => Math.max(1, Math.min(5_000, context.msLeft() / 2))
