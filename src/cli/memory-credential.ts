import type { CredentialSource } from '../core/client/index.ts'
import type { Service } from '../core/service.ts'
import { localCall } from './session.ts'
import { credentialOf, isToken, type Kept } from './token-store.ts'

/** A sign-in that is stored nowhere: this process alone has it, and renews it. */
export function memoryCredential(first: Kept, service: () => Pick<Service, 'getAccessToken'>): CredentialSource {
  let kept = first
  return {
    always: false,
    current: async () => credentialOf(kept),
    renew: async (_, signal) => {
      if (kept.rt === undefined) return undefined
      const { accessToken, refreshToken } = await service().getAccessToken({ RefreshToken: kept.rt }, localCall(signal))
      if (!isToken(accessToken)) return undefined
      kept = { at: accessToken, rt: isToken(refreshToken) ? refreshToken : kept.rt }
      return credentialOf(kept)
    },
  }
}
