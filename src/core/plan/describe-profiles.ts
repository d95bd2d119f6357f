import { loadProfile, type Parameter, profileNames } from '../profiles/index.ts'
import { ServerType } from '../protocol/index.ts'
import { plans } from './server-types.ts'

/** One row of `svc monitors profiles`. */
export type ProfileRow = {
  readonly name: string
  readonly title: string
  readonly doc: string
  /** The server types that it is taken to be for. */
  readonly types: readonly ServerType[]
  readonly parameters: readonly {
    readonly name: string
    readonly type: string
    /** As svc.yaml writes it, or undefined. */
    readonly default: string | undefined
    readonly required: boolean
    readonly doc: string
  }[]
  readonly monitors: readonly { readonly name: string; readonly kind: string; readonly depth: string }[]
}

/** Every profile that comes with svc. */
export const describeProfiles = (): Promise<readonly ProfileRow[]> =>
  Promise.all(
    profileNames.map(async (name) => {
      const { title, doc, parameters, monitors } = await loadProfile(name)
      return {
        name,
        title,
        doc,
        types: ServerType.values.filter((type) => plans[type].profile === name),
        parameters: Object.entries(parameters).map(([key, parameter]) => ({
          name: key,
          type: parameter.type === 'threshold' ? `threshold (${parameter.unit ?? 'ratio'})` : parameter.type,
          default: parameter.default === undefined ? undefined : written(parameter.default),
          required: parameter.required === true,
          doc: parameter.doc,
        })),
        monitors: monitors.map((monitor) => ({
          name: monitor.name,
          kind: monitor.kind,
          depth: typeof monitor['depth'] === 'string' ? monitor['depth'] : 'Basic',
        })),
      }
    }),
  )

/** `{warn: 5, limit: 10}`, as the file would. */
function written(usual: Parameter['default']): string {
  if (Array.isArray(usual)) return `[${usual.map(String).join(', ')}]`
  if (typeof usual !== 'object' || usual === null) return String(usual)
  return `{${Object.entries(usual)
    .map(([key, value]) => `${key}: ${String(value)}`)
    .join(', ')}}`
}
