import { count } from '../../base/format.ts'
import { atMost, checksOn, fail, type latencySetting } from '../engine/index.ts'
import type { TalkingConnection } from './conversation.ts'
import { type DialogueEnding, dialogueSettings, faultOf } from './dialogue-settings.ts'

/** Loads the part that talks. */
export const loadTalk = () => import('./talk.ts')

const check = checksOn<TalkingConnection>()

/** `latency` is the threshold of the kind. */
export const dialogueCheck = (latency: ReturnType<typeof latencySetting>) =>
  check({
    depth: 'Basic',
    results: { dialogue: 'Each step of `dialogue` or `protocol` gets its answer, all of them in time' },
    settings: { latency, ...dialogueSettings },
    when: ['dialogue', 'protocol'],
    gate: true,
    async observe(connection, settings, context) {
      const { converse } = await loadTalk()
      const since = context.now()
      const ending: DialogueEnding = await converse(connection, settings, context)
      return { ...ending, ms: context.now() - since, address: connection.address }
    },
    evaluate: ({ ended, step, steps, message, ms: value, address }, { latency: threshold }) => {
      const what = `${address} answered as expected in ${count(steps, 'step')} in`
      if (ended === 'met') return atMost({ check: 'dialogue', what, value, unit: 'duration', threshold })
      const rest = step === steps ? [] : [`not reached: step ${step + 1}${step + 1 === steps ? '' : ` to ${steps}`}`]
      return fail('dialogue', faultOf[ended], `${address} ${message} (step ${step} of ${steps})`, { details: rest })
    },
  })
