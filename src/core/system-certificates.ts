import { existsSync } from 'node:fs'

/**
 * The certificates that the operating system trusts, as PEM. Empty on a machine without any, such as a minimal container:
 * there, Node would print a line of its own to standard error. Node reads the list once and keeps it.
 */
export function systemCertificates(): readonly string[] {
  const { getCACertificates } = process.getBuiltinModule('node:tls')
  const hasFiles =
    process.platform === 'win32' ||
    process.platform === 'darwin' ||
    existsSync(process.env['SSL_CERT_DIR'] ?? '/etc/ssl/certs') ||
    existsSync(process.env['SSL_CERT_FILE'] ?? '/etc/ssl/cert.pem')
  return hasFiles ? getCACertificates('system') : []
}
