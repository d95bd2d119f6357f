import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import { http, type Peer, type PeerOptions, peer, replies } from '../support/faults/faults.ts'
import { type Certificates, makeCertificates } from '../support/servers/certs.ts'
import { bodies } from './recorded.ts'

const answer = http(200, bodies.healthy, { 'Content-Type': 'application/json' })
export const serve = (tls: NonNullable<PeerOptions['tls']>): Promise<Peer> => peer(replies(answer), { tls })
export const at = (server: Peer, host = '127.0.0.1'): string => `https://${host}:${server.port}`

/** Certificates, the file of their authority and a folder for the tests of a file. */
export let made: Certificates
export let caFile = ''
export let folder = ''
export function withCertificates(): void {
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'svc-tls-'))
    made = makeCertificates()
    caFile = made.caFile
  })
  afterAll(() => {
    made.remove()
    rmSync(folder, { recursive: true, force: true })
  })
}
