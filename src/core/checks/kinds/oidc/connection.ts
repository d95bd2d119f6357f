import { type AddressTurn, type CheckContext, type Connection, checksOn } from '../../engine/index.ts'
import type { KeySet } from './keys.ts'
import {
  discoveryUrl,
  type OidcAnswer,
  type OidcJson,
  type OidcProvider,
  type OidcSession,
  object,
  providerAt,
  type SharedSettings,
} from './provider.ts'
import type { Tokens } from './token.ts'

/**
 * A provider at one address, after the request for its discovery document. Every request opens its own connection; the
 * checks share only what they have learned about the provider.
 */
export class OidcConnection implements Connection, OidcSession {
  readonly address: string
  readonly provider: OidcProvider
  readonly settings: SharedSettings
  /** The answer to the request for the discovery document. */
  readonly answer: OidcAnswer
  /** The discovery document; empty if the answer contains none. */
  readonly document: OidcJson
  /** False if the answer contains no discovery document: then no other request is possible. */
  readonly usable: boolean
  /** Undefined until the keys have been read. */
  keys: KeySet | undefined
  /** The tokens from the client's own credentials; undefined until they are granted. */
  clientTokens: Tokens | undefined
  /** Whether the provider has issued any token. */
  granted = false
  /** The most recent refresh token. */
  refreshToken: string | undefined

  constructor(provider: OidcProvider, settings: SharedSettings, answer: OidcAnswer) {
    const document = documentOf(answer)
    this.address = provider.address
    this.provider = provider
    this.settings = settings
    this.answer = answer
    this.document = document ?? {}
    this.usable = document !== undefined
  }

  /** Requests close their connections themselves. */
  close(): void {}
}

/** Gives the checks of oidc their types. */
export const onOidc = checksOn<OidcConnection>()

/** Requests the discovery document. Throws ProbeError, or a socket's error. */
export async function openOidc(
  at: AddressTurn,
  settings: SharedSettings,
  context: CheckContext,
): Promise<OidcConnection> {
  const provider = await providerAt(settings, at, context)
  return new OidcConnection(provider, settings, await provider.ask(discoveryUrl(settings)))
}

/** The JSON object of an answer with status 200; undefined for any other answer. */
export function documentOf({ status, body }: OidcAnswer): OidcJson | undefined {
  const isObject = 'json' in body && typeof body.json === 'object' && body.json !== null && !Array.isArray(body.json)
  return status === 200 && isObject ? object(body.json) : undefined
}
