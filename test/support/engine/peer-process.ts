import type { PeerProcess } from '../../../src/core/protocol/service/service.ts'

/** A process of this machine that nothing is known of, except for what a test sets. */
export const peerProcess = (facts: Partial<PeerProcess> = {}): PeerProcess => ({
  account: async () => undefined,
  isOwn: async () => false,
  reads: () => false,
  ...facts,
})
/** A process that may read the details of health. */
export const localReader = peerProcess({ reads: () => true })
