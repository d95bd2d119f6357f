import type { CommandClass } from '../command/base.ts'
import type { JsonShape } from '../render/document.ts'

type Commands = Readonly<Record<string, () => Promise<CommandClass>>>

export type CommandAnswer = {
  /** As it is typed: `roles assign --from-file`. */
  readonly name: string
  readonly isList: boolean
  /** The JSON Schema of the document. */
  readonly schema: () => JsonShape
  /** The fields of a record in a pipe, in order. Undefined for commands that print no records. */
  readonly fields: readonly string[] | undefined
}

/** The answers that every command prints for scripts, in the order of the commands. */
export async function answersOf(commands: Commands): Promise<readonly CommandAnswer[]> {
  const perCommand = Object.entries(commands).map(async ([id, load]) => {
    const { answers } = await load()
    return await Promise.all(
      Object.entries(answers).map(async ([by, { load: loadAnswer, isList }]) => {
        const { schema, fields } = await loadAnswer()
        return { name: `${id.replaceAll(':', ' ')} ${by}`.trim(), isList, schema, fields }
      }),
    )
  })
  return (await Promise.all(perCommand)).flat()
}
