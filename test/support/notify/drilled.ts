import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Config } from '../../../src/core/config/index.ts'
import { type DrillPart, drillPart, type ShownDrill } from '../../../src/core/service/drill/drill.ts'
import type { DrillSpans } from '../../../src/core/service/drill/drill-run.ts'
import { type Data, openData } from '../../../src/core/store/index.ts'
import { load } from '../../config/given.ts'
import { until } from '../suite/until.ts'

/** Shorter than the real ones. A receiver that folds gets the end a minute after the begin. */
export const shortSpans: DrillSpans = { confirmMs: 5_000, faultMs: 15_000, endMs: 75_000 }

export type Drilled = {
  readonly part: DrillPart
  readonly data: Data
  readonly folder: string
  readonly logs: readonly string[]
  /** Drills to the end. */
  readonly drill: (...through: readonly string[]) => Promise<ShownDrill>
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

/** Drills of a svc.yaml with a real store. `prepare` gets the folder of the store before it is made. */
export async function drilled(
  yaml: string | Config,
  {
    env = {},
    spans = shortSpans,
    prepare = () => {},
    cleanUp = () => {},
    programs,
  }: {
    readonly env?: Readonly<Record<string, string>>
    readonly spans?: DrillSpans
    readonly prepare?: (folder: string) => void
    /** Gets that folder when the store is closed. */
    readonly cleanUp?: (folder: string) => void
    readonly programs?: readonly string[]
  } = {},
): Promise<Drilled> {
  const root = mkdtempSync(join(tmpdir(), 'svc-drill-'))
  const folder = join(root, 'store')
  mkdirSync(folder, { mode: 0o700 })
  prepare(folder)
  const data = await openData({ store: join(folder, 'svc.db'), create: true })
  const logs: string[] = []
  const loaded = typeof yaml === 'string' ? await load(yaml, env) : yaml
  const config = programs === undefined ? loaded : { ...loaded, exec: { allow: programs } }
  const store = async () => data.drills
  const part = drillPart({ config, version: '1', store, spans, log: ({ msg }) => void logs.push(msg) })
  return {
    part,
    data,
    folder,
    logs,
    drill: async (...through) => {
      const { id } = await part.begin(through, 'tester')
      let drill: ShownDrill | undefined
      await until(
        async () => {
          drill = await part.show(id)
          return drill?.endedAt !== undefined
        },
        240_000,
        500,
      )
      if (drill === undefined) throw new Error('there is no drill')
      return drill
    },
    [Symbol.asyncDispose]: async () => {
      await part.close?.()
      await data.close()
      cleanUp(folder)
      rmSync(root, { recursive: true, force: true })
    },
  }
}
