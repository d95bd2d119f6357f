import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { seal, unseal } from '../../../src/core/accounts/auth/refresh.ts'
import { newToken, prefixes, readToken, type TokenKind } from '../../../src/core/accounts/auth/tokens.ts'

const kinds = Object.keys(prefixes) as TokenKind[]

describe('tokens', () => {
  test.each(kinds)('T1 a secret of kind %s has its prefix, 256 random bits and a checksum', (kind) => {
    const { text } = newToken(kind)
    const body = text.slice(prefixes[kind].length)
    expect(text.startsWith(prefixes[kind])).toBe(true)
    expect(Buffer.from(body.slice(0, 43), 'base64url')).toHaveLength(32)
    expect(body).toHaveLength(49)
    expect(new Set(Array.from({ length: 200 }, () => newToken(kind).text)).size).toBe(200)
  })

  test('T1 the store holds the SHA-256 of the whole text', () => {
    const { text, hash } = newToken('access')
    expect(hash).toBe(createHash('sha256').update(text).digest('hex'))
    expect(readToken('access', text)).toBe(hash)
  })

  test('T1 the checksum detects a changed character anywhere', () => {
    const { text } = newToken('key')
    for (let at = 0; at < text.length; at += 1) {
      const other = text[at] === 'A' ? 'B' : 'A'
      expect(readToken('key', text.slice(0, at) + other + text.slice(at + 1))).toBeUndefined()
    }
    expect(readToken('key', `${text}A`)).toBeUndefined()
    expect(readToken('key', text.slice(0, -1))).toBeUndefined()
    expect(readToken('key', ` ${text}`)).toBeUndefined()
  })

  test('T5 a secret of one kind is not valid as another', () => {
    for (const made of kinds) {
      for (const request of kinds) {
        const read = readToken(request, newToken(made).text)
        expect(read !== undefined).toBe(made === request)
      }
    }
  })

  test('T5 a body under another prefix is refused', () => {
    const { text } = newToken('refresh')
    expect(readToken('access', text.replace('svc_rt_', 'svc_at_'))).toBeUndefined()
  })
})

describe('the sealed successor', () => {
  const pair = { accessToken: 'the access token', refreshToken: 'the refresh token' }

  test('T4 only the token that was presented opens it', () => {
    const sealed = seal('svc_rt_presented', pair)
    expect(unseal('svc_rt_presented', sealed)).toEqual(pair)
    expect(() => unseal('svc_rt_another', sealed)).toThrow()
  })

  test('T4 it reveals nothing of the pair, and no two are alike', () => {
    const sealed = seal('svc_rt_presented', pair)
    expect(Buffer.from(sealed, 'base64url').toString('latin1')).not.toContain('token')
    expect(seal('svc_rt_presented', pair)).not.toBe(sealed)
  })

  test('T4 a changed byte is detected', () => {
    const bytes = Buffer.from(seal('svc_rt_presented', pair), 'base64url')
    for (let at = 0; at < bytes.length; at += 1) {
      const changed = Buffer.from(bytes)
      changed[at] = (changed[at] ?? 0) ^ 1
      expect(() => unseal('svc_rt_presented', changed.toString('base64url'))).toThrow()
    }
  })
})
