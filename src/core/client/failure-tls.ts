import type { FaultName } from '../errors.ts'
import { said } from './said.ts'
import { isTrustError } from './trust.ts'

/** A failure in words; `fault` is Unreachable unless said otherwise. */
export type Told = { readonly fault?: FaultName; readonly message: string; readonly hints: readonly string[] }

export const isTlsCode = (code: string): boolean =>
  code === 'EPROTO' || /^(?:ERR_TLS|ERR_SSL|CERT_|HOSTNAME_MISMATCH|INVALID_CA)/.test(code) || isTrustError(code)

/** What a TLS handshake that failed means. */
export function tellTls(code: string, error: Error, server: string): Told {
  const failed = (why: string, ...hints: readonly string[]): Told => ({
    message: `TLS with ${server} failed: ${why} (${code})`,
    hints,
  })
  if (isTrustError(code)) {
    const selfSigned = code === 'DEPTH_ZERO_SELF_SIGNED_CERT'
    return failed(
      selfSigned ? 'its certificate is signed by itself alone' : 'nobody here knows the issuer of its certificate',
      'If it is yours, name its authority: --ca-file FILE (PEM), or SVC_CA_FILE',
    )
  }
  switch (code) {
    case 'CERT_HAS_EXPIRED':
      return failed('its certificate has expired', 'Renew it; and is the clock of this machine right?')
    case 'CERT_NOT_YET_VALID':
      return failed('its certificate is not valid yet', 'Is the clock of this machine right?')
    case 'ERR_TLS_CERT_ALTNAME_INVALID': {
      const { reason } = error as { reason?: unknown }
      return failed(
        `its certificate is for another name: ${said(typeof reason === 'string' ? reason : error.message, 200)}`,
        'Use a name that the certificate holds as --server.',
      )
    }
    default:
  }
  if (/wrong version number|packet length too long|WRONG_VERSION|PACKET_LENGTH/.test(`${code} ${error.message}`)) {
    return failed('that port does not speak TLS', 'Is it plain http? Then --server http://…')
  }
  if (
    /alert certificate required|bad certificate|CERTIFICATE_REQUIRED|BAD_CERTIFICATE/.test(`${code} ${error.message}`)
  ) {
    return failed('it wants a certificate of the caller', 'Certificates of callers are not supported.')
  }
  return failed(said(error.message, 160), 'TLS 1.2 or newer is spoken here.')
}
