import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const certificates = fileURLToPath(new URL('../../../src/core/base/net/certificates.ts', import.meta.url))

test('a machine without certificates, such as a minimal container, gets no line from Node on standard error', () => {
  const script = `import(${JSON.stringify(certificates)}).then(({ preloadAnchors }) => preloadAnchors())`
  const { status, stderr } = spawnSync(process.execPath, ['--eval', script], {
    env: { PATH: process.env['PATH'], SSL_CERT_DIR: '/nonexistent/certs', SSL_CERT_FILE: '/nonexistent/cert.pem' },
    encoding: 'utf8',
  })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
})
