import type { HashCost } from '../accounts/auth/index.ts'
import type { RefusalStore } from '../checks/engine/index.ts'
import type { Config } from '../config/index.ts'
import type { ServerType } from '../protocol/index.ts'
import type { Family } from '../protocol/service/family.ts'
import type { Administration, Runtime, ServeOptions } from '../protocol/service/service.ts'
import type { Data, KeeperLog, UsedStores } from '../store/index.ts'

/**
 * A contribution of a feature to the composition: `serve.ts` lists the parts, and `open.ts` calls each of these functions for
 * all of them, in the order of the list. Where nothing else is said, functions are called in `svc serve` only.
 */
export type Part = {
  /** Opens what must work before the server listens. Parts open one after the other. */
  readonly open?: (() => Promise<unknown>) | undefined
  /** Loads what requests would load on first use, so that none of them fails for lack of files. Parts load together. */
  readonly preload?: (() => Promise<unknown>) | undefined
  /** Begins what works beside the requests. Called when all parts are loaded. */
  readonly start?: (() => Promise<void>) | undefined
  /**
   * Does what comes before all other use of an open store. Parts do so one after the other: when all of them have started, or
   * as soon as PostgreSQL answers if it did not at the start. Called again later if it rejects while the server runs.
   */
  readonly firstUse?: ((store: Data) => Promise<unknown>) | undefined
  /** Begins what needs the server itself. Called when it answers requests. */
  readonly answers?: (() => void) | undefined
  /**
   * Prepares for another configuration of a running server, and changes nothing yet. Rejects with a Fault if the part
   * cannot use it. The function that it resolves with puts it into force; it is called once all parts are prepared, and
   * must not throw.
   */
  readonly reload?: ((config: Config) => Promise<() => void>) | undefined
  /** Rejects with a Fault while requests cannot succeed. */
  readonly ready?: ((signal: AbortSignal) => Promise<void>) | undefined
  /**
   * The families that /metrics shows of it, after those of the parts before. `limitMs`: the time that it may take to find
   * them. Never rejects.
   */
  readonly metrics?: ((limitMs: number) => Promise<readonly Family[]>) | undefined
  /** Cancels work in progress and prevents new work. Called in every command. Safe to call twice. */
  readonly cancel?: (() => void) | undefined
  /** Called in every command, after `cancel`. Safe to call twice. */
  readonly close?: (() => Promise<void>) | undefined
}

/** A private file of this account, in the state folder. Each function rejects if its owner or mode is wrong. */
export type PrivateFile = {
  /** For messages of the log. */
  readonly path: string
  /** Undefined: there is none. */
  readonly read: () => Promise<string | undefined>
  /** Adds text at the end. Resolves once the disk has it. */
  readonly append: (text: string) => Promise<void>
  readonly remove: () => Promise<void>
}

/** The accounts of a store that is about to be used. */
export type OwnAccounts = Pick<Runtime, 'anyAdmin'> & {
  readonly any: () => Promise<boolean>
  readonly administration: () => Promise<Pick<Administration, 'addUser'>>
}

export type OpenOptions = {
  readonly version: string
  readonly config: Config
  /** The embedded store's file or `postgres://…`. Undefined: no store (`serve --only health`). */
  readonly store: string | undefined
  /** May contain SVC_STORE_PASSWORD_FILE. Defaults to the environment of the process. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** How long to wait for the lock of an embedded store, in milliseconds. Absent: as long as a request of a server may. */
  readonly patienceMs?: number | undefined
  /** True in `svc serve`: callers share runs, and results are cached for a while. */
  readonly shared: boolean
  /** In `svc serve`: its name among the nodes that share a PostgreSQL store. Default: the host name. */
  readonly node?: string | undefined
  readonly details: ServeOptions['details']
  /** Checks nothing but what svc.yaml configures: without one, svc does not check itself either (K10). */
  readonly requireConfig?: boolean | undefined
  /**
   * Whether the monitors are those of a rehearsal (`rehearsedConfig`): whatever is planned beside them is marked as theirs,
   * and no port of this machine is tried.
   */
  readonly rehearses?: boolean | undefined
  /** Where refused sign-ins outlive this process. Absent: it forgets them. */
  readonly refusals?: RefusalStore | undefined
  /** Where the answers of registries are kept without a store. Absent: in this process alone. */
  readonly rdapAnswers?: RefusalStore | undefined
  /**
   * Tries a monitor now, for the message of one that must not sign in. `type` is given if several types have a monitor
   * of this name.
   */
  readonly tryNow?: ((monitor: string, type: ServerType | undefined) => Promise<string>) | undefined
  /** The stores in files that are not made again once they are missing. Absent: any store is made. */
  readonly usedStores?: UsedStores | undefined
  /** In `svc serve`: the file of what a node sends without the store. Absent: it ends with the process. */
  readonly sentFile?: ((node: string) => PrivateFile) | undefined
  /** In `svc serve`: prepares the accounts of the store before anybody can sign in. Rejects if nobody may. */
  readonly firstUse?: ((accounts: OwnAccounts) => Promise<void>) | undefined
  /** In `svc serve`: what happens to the store beside the requests. */
  readonly log?: KeeperLog | undefined
  /** The cost of a hash of a password. Only tests give one: svc itself always uses that of P1. */
  readonly hashCost?: HashCost | undefined
}
