import { Fault } from '../../base/errors.ts'
import type { Drill, DrillResult } from '../../protocol/index.ts'
import type { Drills } from '../local.ts'
import type { DrillPart, ShownDrill } from './drill.ts'

const results: Readonly<Record<ShownDrill['result'], DrillResult>> = {
  proven: 'Proven',
  'not proven': 'NotProven',
  failed: 'Failed',
  waiting: 'Waiting',
}

/** Drills as the interface describes them. */
export const drillAnswers = ({ begin, show }: DrillPart): Drills => ({
  start: async ({ Through = [] }, by) => ({ Drill: drillOf(await begin(Through, by)) }),
  get: async ({ Id }) => {
    const drill = await show(Id)
    if (!drill) {
      const message = Id === undefined ? 'There was no drill yet' : 'There is no such drill'
      throw new Fault('NotFound', message, { hints: ['To start one: svc drill'] })
    }
    return { Drill: drillOf(drill) }
  },
})

const drillOf = ({ id, by, through, beganAt, endedAt, result, hops }: ShownDrill): Drill => ({
  Id: id,
  By: by,
  Through: through,
  BeganAt: new Date(beganAt),
  ...(endedAt === undefined ? {} : { EndedAt: new Date(endedAt) }),
  Result: results[result],
  Hops: hops.map(({ receiver, hop, at, result: of, ms, message }) => ({
    ...(receiver === undefined ? {} : { Receiver: receiver }),
    Hop: hop,
    ...(at === undefined ? {} : { Place: at }),
    Result: results[of],
    ...(ms === undefined ? {} : { Duration: ms }),
    Message: message,
  })),
})
