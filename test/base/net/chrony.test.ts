import { describe, expect, test } from 'vitest'
import { readTracking, trackingRequest } from '../../../src/core/base/net/chrony.ts'

const sequence = Uint8Array.of(1, 2, 3, 4)
type Fields = { readonly leap?: number; readonly stratum?: number; readonly family?: number; readonly id?: string }

/** A reply as chronyd 4.3 sends it. */
function reply({ leap = 0, stratum = 3, family = 1, id = 'c0000207' }: Fields = {}): Buffer {
  const packet = Buffer.alloc(104)
  packet.set([6, 2, 0, 0, 0, 33, 0, 5])
  packet.set(sequence, 16)
  packet.write(id, 28, 'hex')
  packet.set(family === 1 ? [192, 0, 2, 7] : [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7], 32)
  packet.writeUInt16BE(family, 48)
  packet.writeUInt16BE(stratum, 52)
  packet.writeUInt16BE(leap, 54)
  packet.writeUInt32BE(1_800_000_000, 60)
  packet.writeUInt32BE(500_000_000, 64)
  // -0.25 s, 0.5 s and 0.125 s: a coefficient of 2^24 - 1 and less, with exponents.
  packet.writeInt32BE((1 << 25) | ((1 << 25) - (1 << 22)), 68)
  packet.writeInt32BE((1 << 25) | (1 << 23), 92)
  packet.writeInt32BE((0 << 25) | (1 << 22), 96)
  return packet
}

describe('H35 the state of chrony', () => {
  test('a request is as long as its reply and carries the sequence number', () => {
    const request = trackingRequest(sequence)
    expect([request.length, request[0], request[1], request.readUInt16BE(4)]).toEqual([104, 6, 1, 33])
    expect([...request.subarray(8, 12)]).toEqual([1, 2, 3, 4])
  })
  test('a reply is read with its source, the date of the last correction and the largest error', () => {
    expect(readTracking(reply(), sequence)).toEqual({
      isSynchronized: true,
      source: '192.0.2.7',
      stratum: 3,
      correctedAt: 1_800_000_000_500,
      maxError: (0.25 + 0.5 / 2 + 0.125) * 1_000,
    })
  })
  test.each([
    ['an address of IPv6', { family: 2 }, '2001:db8::7'],
    ['a reference clock', { family: 0, id: '50505300' }, 'PPS'],
    ['the clock of the machine itself', { family: 0, id: '7f7f0101' }, undefined],
  ])('its source is %s', (_, fields, source) => {
    expect(readTracking(reply(fields), sequence)).toMatchObject({ source })
  })
  test.each([
    ['the leap status "not synchronised"', { leap: 3 }],
    ['stratum 0', { stratum: 0 }],
    ['stratum 16', { stratum: 16 }],
  ])('%s is a clock that is not synchronized', (_, fields) => {
    expect(readTracking(reply(fields), sequence)).toMatchObject({ isSynchronized: false })
  })
  test('a reply to another request is nobody’s answer', () => {
    expect(readTracking(reply(), Uint8Array.of(9, 9, 9, 9))).toBeUndefined()
  })
  test.each([
    ['nothing', () => Buffer.alloc(0)],
    ['a part', () => reply().subarray(0, 103)],
    ['a request', () => Buffer.from(reply()).fill(1, 1, 2)],
    ['another version', () => Buffer.from(reply()).fill(5, 0, 1)],
    ['another command', () => Buffer.from(reply()).fill(34, 5, 6)],
    ['a refusal', () => Buffer.from(reply()).fill(2, 9, 10)],
  ])('%s is unreadable', (_, packet) => {
    expect(readTracking(packet(), sequence)).toBe('unreadable')
  })
})
