import { type AddressTurn, type CheckContext, type Connection, checksOn } from '../../engine/index.ts'
import { discoveryUrl, type OidcSession } from './endpoint.ts'
import type { KeySet } from './keys.ts'
import {
  type OidcAnswer,
  type OidcJson,
  type OidcProvider,
  object,
  providerAt,
  type SharedSettings,
} from './provider.ts'
import type { Tokens } from './token.ts'

/**
 * A provider at one address, of which the discovery document has been asked for. Every request has a connection of
 * its own: what the checks share is what they have learned of the provider.
 */
export class OidcConnection implements Connection, OidcSession {
  readonly address: string
  readonly provider: OidcProvider
  readonly settings: SharedSettings
  /** The answer to the request for the discovery document. */
  readonly answer: OidcAnswer
  /** The discovery document; empty where the answer holds none. */
  readonly document: OidcJson
  /** False where the answer holds no discovery document: nothing else can be asked for then. */
  readonly usable: boolean
  /** Once they have been read. */
  keys: KeySet | undefined
  /** What the client got by its own credentials; undefined as long as it has not got it. */
  clientTokens: Tokens | undefined
  /** The newest refresh token that came along with a token. */
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

/** Asks for the discovery document. Throws ProbeError, or what a socket throws. */
export async function openOidc(
  at: AddressTurn,
  settings: SharedSettings,
  context: CheckContext,
): Promise<OidcConnection> {
  const provider = await providerAt(settings, at, context)
  return new OidcConnection(provider, settings, await provider.ask(discoveryUrl(settings)))
}

/** The JSON object of a 200; undefined for any other answer. */
export function documentOf({ status, body }: OidcAnswer): OidcJson | undefined {
  const isObject = 'json' in body && typeof body.json === 'object' && body.json !== null && !Array.isArray(body.json)
  return status === 200 && isObject ? object(body.json) : undefined
}
