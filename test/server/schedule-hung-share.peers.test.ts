import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished, test } from 'vitest'
import { shareMissing, startShare } from '../support/faults/share.ts'
import { peerSuite } from '../support/suite/peer.ts'
import { maxMs, othersStayOnTime } from './scheduled-web.ts'

peerSuite(shareMissing, 'W1 a share that hangs, beside a schedule', () => {
  test(
    'W1 240 files on a share that hangs keep none of 760 other monitors waiting',
    async () => {
      const share = await startShare()
      onTestFinished(async () => {
        share.go()
        await share.remove()
      })
      const folder = join(share.point, 'in')
      mkdirSync(join(share.real, 'in'))
      await share.stop()
      await othersStayOnTime(
        Array.from(
          { length: 240 },
          (_, at) => `{kind: file-age, name: f${at}, path: '${join(folder, `file${at}`)}', age: {limit: 1h}}`,
        ),
        ([program = '', ...args]) => share.mounts.command(program, args).flat(),
      )
    },
    maxMs,
  )
})
