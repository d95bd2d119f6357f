import type { AdminOperation, AuditLogEntry, KeyEntry, Request, Response, RoleHolder, UserEntry } from '../index.ts'
import type { Uncapitalized } from './facts.ts'

/** The problem with a value: its field, and a sentence that begins with the field in quotes. */
export type ValueProblem = { readonly FieldName: string; readonly Message: string }

/** The administrator, for the audit. */
export type AdminActor = {
  /** `local:alice`, or the name of an Admin who is signed in. */
  readonly who: string
  readonly userId?: string | undefined
  readonly address?: string | undefined
  readonly correlationId: string
  readonly reason?: string | undefined
}
/** A caller of an operation. `session`: of one over HTTP, the session or the key. */
export type AdminCaller = AdminActor & { readonly session?: string | undefined; readonly signal: AbortSignal }
/**
 * The operations of administration, for a caller who has been authorized. Faults name the fields that they concern. An
 * unknown user or key is NotFound; a taken name, or removing the last Admin, is Conflict.
 */
export type Administration = {
  readonly [O in AdminOperation]: (request: Request<O>, by: AdminCaller) => Promise<Response<O>>
}

/** An entry of an answer under the names of documents. `Given`: the fields that every entry has. */
type Facts<Entry, Given extends keyof Entry> = Uncapitalized<
  { readonly [Name in Given]-?: Exclude<Entry[Name], undefined> } & {
    readonly [Name in Exclude<keyof Entry, Given>]: Entry[Name]
  }
>
export type UserFacts = Facts<
  UserEntry,
  'Id' | 'UserName' | 'Disabled' | 'HasPassword' | 'MustChangePassword' | 'CreatedAt' | 'Roles' | 'Permissions'
> & { readonly digest?: 'none' | 'valid' | 'not for Admin' | undefined }
export type KeyFacts = Facts<KeyEntry, 'Name' | 'UserName' | 'CreatedAt'>
export type AuditFacts = Facts<AuditLogEntry, 'Id' | 'At' | 'Event' | 'Who' | 'CorrelationId'>
/** One who held a role at a time. */
export type PastHolder = Facts<Pick<RoleHolder, 'UserName' | 'Disabled' | 'EndsAt'>, 'UserName' | 'Disabled'>
