import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { makeNonce, nonceMadeAt, readParameters, userNameOf } from '../../../src/core/accounts/auth/digest/proof.ts'
import { digestResponse, hashed } from '../../../src/core/accounts/auth/digest/secret.ts'
import { codePoints } from '../../support/suite/code-points.ts'

describe('the header Authorization: Digest', () => {
  const name = fc.stringMatching(/^[a-z][a-z0-9*-]{0,20}$/)
  const value = fc.string({ unit: fc.mapToConstant({ num: 95, build: (n) => String.fromCharCode(n + 0x20) }) })

  test('A12 every parameter in quotes is read as it was written', () => {
    fc.assert(
      fc.property(fc.dictionary(name, value, { minKeys: 1, maxKeys: 12 }), (all) => {
        const quoted = Object.entries(all).map(([key, text]) => `${key}="${text.replace(/["\\]/g, '\\$&')}"`)
        expect(readParameters(quoted.join(', '))).toEqual(new Map(Object.entries(all)))
      }),
    )
  })

  test('A12 no text makes the reader throw, and what it reads is bounded', () => {
    fc.assert(
      fc.property(fc.string({ unit: codePoints, maxLength: 300 }), (text) => {
        expect(readParameters(text)?.size ?? 0).toBeLessThanOrEqual(20)
      }),
    )
  })

  test.each([
    ['nothing', ''],
    ['a parameter twice', 'nc=1, nc=2'],
    ['a parameter twice in another letter case', 'nc=1, NC=2'],
    ['no value', 'nc='],
    ['no name', '="x"'],
    ['an open quote', 'username="Ann'],
    ['text after a quote', 'username="Ann"x'],
    ['a space instead of a comma', 'nc=1 qop=auth'],
    ['a comma at the end', 'nc=1,'],
    ['a line break', 'username="Ann\r\nX: y"'],
    ['a line break after a backslash', 'username="Ann\\\ny"'],
    ['a null character', 'username="Ann\0"'],
    ['more than 20 parameters', Array.from({ length: 21 }, (_, n) => `p${n}=1`).join()],
  ])('A12 %s is not read', (_, text) => {
    expect(readParameters(text)).toBeUndefined()
  })

  test.each([
    [{ username: 'Ann' }, 'Ann'],
    [{ username: 'J\xc3\xa4s\xc3\xb8n' }, 'Jäsøn'],
    [{ username: 'J\xe4s' }, undefined],
    [{ 'username*': "UTF-8''J%C3%A4s%C3%B8n%20Doe" }, 'Jäsøn Doe'],
    [{ 'username*': "utf-8'en'Ann" }, 'Ann'],
    [{ 'username*': "ISO-8859-1''J%E4s" }, undefined],
    [{ 'username*': "UTF-8''J%E4s" }, undefined],
    [{ 'username*': "UTF-8''100%" }, undefined],
    [{ username: 'Ann', 'username*': "UTF-8''Ann" }, undefined],
    [{}, undefined],
  ])('A12 the user name of %j is %j', (parameters, expected) => {
    expect(userNameOf(new Map(Object.entries(parameters)))).toBe(expected)
  })
})

describe('digests', () => {
  const proof = {
    method: 'GET',
    uri: '/dir/index.html',
    nonce: '7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v',
    nc: '00000001',
    cnonce: 'f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ',
  }

  test.each([
    ['SHA-256', '753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1'],
    ['MD5', '8ca523f5e9506fed4657c9700eebdbec'],
  ] as const)('A12 the response of the example in RFC 7616, 3.9.1 is right (%s)', (algorithm, response) => {
    const secret = hashed(algorithm, 'Mufasa:http-auth@example.org:Circle of Life')
    expect(digestResponse(algorithm, secret, proof)).toBe(response)
  })
})

describe('nonces', () => {
  const key = '11'.repeat(32)

  test('A12 a nonce tells its store when it was made', () => {
    expect(nonceMadeAt(key, makeNonce(key, 1_800_000_000_123))).toBe(1_800_000_000_123)
    expect(makeNonce(key, 1)).not.toBe(makeNonce(key, 1))
  })

  test('A12 a nonce of another store, or with any other character, is not recognised', () => {
    const nonce = makeNonce(key, 1_800_000_000_123)
    expect(nonceMadeAt('22'.repeat(32), nonce)).toBeUndefined()
    for (let at = 0; at < nonce.length; at += 1) {
      for (const other of 'AQgw_') {
        if (other === nonce[at]) continue
        expect(nonceMadeAt(key, nonce.slice(0, at) + other + nonce.slice(at + 1))).toBeUndefined()
      }
    }
    expect(nonceMadeAt(key, `${nonce}A`)).toBeUndefined()
    expect(nonceMadeAt(key, `${nonce}=`)).toBeUndefined()
  })
})
