import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { Fault } from '../../src/core/base/errors.ts'
import { cert, key } from './certificate.ts'
import { startSite } from './site.ts'

/** A self-signed certificate with an RSA key of 512 bits, made with openssl. */
const short = {
  cert: `-----BEGIN CERTIFICATE-----
MIIBbzCCARmgAwIBAgIUCBQHsUJ8uNrQG8KH5fD9tOKyL+swDQYJKoZIhvcNAQEL
BQAwDDEKMAgGA1UEAwwBeDAeFw0yNjExMjMxODI1NDdaFw0yNjExMjYxODI1NDda
MAwxCjAIBgNVBAMMAXgwXDANBgkqhkiG9w0BAQEFAANLADBIAkEAsrDNOsfuCr2k
Vb5OCmZmF7XpD/VhvcLNCVsFJ/o8QryaxCEpeZAck9lZ00hABMx9BvWIN8sOuha9
AE5J651LaQIDAQABo1MwUTAdBgNVHQ4EFgQUEB3ACxwepknSLoeEU9zvzJfWCvcw
HwYDVR0jBBgwFoAUEB3ACxwepknSLoeEU9zvzJfWCvcwDwYDVR0TAQH/BAUwAwEB
/zANBgkqhkiG9w0BAQsFAANBAH7JJz+QKT7KmT1D6pdR6iST1XU5AmI5yelW3utT
HgD0qzRmx9PtU8A1UywGUwuAtNjtRziu6M1NzfFeCSnc8kI=
-----END CERTIFICATE-----`,
  key: `-----BEGIN PRIVATE KEY-----
MIIBVQIBADANBgkqhkiG9w0BAQEFAASCAT8wggE7AgEAAkEAsrDNOsfuCr2kVb5O
CmZmF7XpD/VhvcLNCVsFJ/o8QryaxCEpeZAck9lZ00hABMx9BvWIN8sOuha9AE5J
651LaQIDAQABAkEAmSJzfwB/u6yx/NlOQBNpQsCerxJ3ZQxgcrgSPyRwKC/TL7me
lTZWJ0iUXO4hPyo9cnn/G9snF+XCXKcdPUxGAQIhANsrZC78hzorbyev9G8liVfk
lmJLb5uTqUd7Vz1IehIRAiEA0LgFbFYawUW5eLoGPuX0tPKRrk+RNBa+b807MXJJ
S9kCIBBQJH7S0QXlYbqkgB8dviFKpF7gmogL75egeJfZIyzhAiBt7Y4Fqi/7PVLb
L/bcJ9dDekKaMRQEADqavdgASfYquQIhAKYu+SWpRjCQtmGqcpf1RNfJKvw5+Ukr
QQvj3HBJXRTm
-----END PRIVATE KEY-----`,
}
const other = generateKeyPairSync('ec', {
  namedCurve: 'P-256',
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
}).privateKey
const locked = generateKeyPairSync('ec', {
  namedCurve: 'P-256',
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem', cipher: 'aes-128-cbc', passphrase: 'secret' },
}).privateKey

test.each([
  [
    'no certificate',
    { cert: 'garbage', key },
    '--tls-cert contains no certificate in PEM format (-----BEGIN CERTIFICATE-----)',
  ],
  [
    'an empty certificate',
    { cert: '\n', key },
    '--tls-cert is empty: no certificate in PEM format (-----BEGIN CERTIFICATE-----)',
  ],
  [
    'a key as the certificate',
    { cert: key, key },
    '--tls-cert contains no certificate in PEM format (-----BEGIN CERTIFICATE-----)',
  ],
  ['no key', { cert, key: cert }, '--tls-key contains no private key in PEM format (-----BEGIN PRIVATE KEY-----)'],
  [
    'the key of another certificate',
    { cert, key: other },
    'the key of --tls-key does not belong to the first certificate of --tls-cert',
  ],
  [
    'an encrypted key',
    { cert, key: locked },
    'the key of --tls-key is encrypted, and svc has no passphrase for it: openssl pkey -in FILE -out KEY',
  ],
  ['a key that is too short', short, 'the key is too short to be secure: an RSA key needs 2048 bits'],
])('svc serve says in words, without the text of OpenSSL, that it got %s', async (_, tls, words) => {
  const error = await startSite({ tls }).then(
    () => expect.fail('it started'),
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(Fault)
  expect((error as Fault).message).toBe(`The certificate cannot be used: ${words}`)
})
