import { HealthCheckResponse, ServerType } from '../../core/protocol/index.ts'
import { definitionsOf } from '../../core/protocol/metadata/index.ts'
import { type Answer, flag, integer, listOf, objectOf, oneOf, optional, string } from '../render/document.ts'
import { errorShape } from '../render/errors.ts'

/** The protocol's own document; for several types, an array of these documents with their requests. */
export const healthAnswer: Answer = {
  schema: () => {
    const { ref, $defs } = definitionsOf(HealthCheckResponse)
    const result = objectOf({
      Target: string,
      ServerType: oneOf(...ServerType.values, 'all'),
      ExecutionMode: string,
      ExitCode: integer,
      // The server rehearses: its faults are scripted.
      Drill: optional(flag),
      Response: optional(ref),
      Error: optional(errorShape),
    })
    return { anyOf: [ref, objectOf({ Results: listOf(result) })], $defs }
  },
}
