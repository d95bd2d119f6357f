/** The generations of ServiceStack servers that are in use. */
export type Generation = '5.8' | '6.9' | '8.1' | '10.1'
export const generations: readonly Generation[] = ['5.8', '6.9', '8.1', '10.1']

/** The differences between them: 5.8 as recorded, the others as their behaviour is known. */
export type Traits = {
  readonly names: 'Pascal' | 'camel'
  readonly dates: 'Date(ms)' | 'ISO'
  /** Where tokens are given: in the body, or in cookies alone. */
  readonly tokens: 'body' | 'cookies'
  /** The answer of AssignRoles to an anonymous caller, always with 401. */
  readonly stranger: readonly [code: string, message: string]
  /** The answer to a caller without Admin, always with 403. */
  readonly powerless: readonly [code: string, message: string]
  /** The status of a failed validation. */
  readonly validation: 400 | 500
  /** `DELETE /auth` is a route. */
  readonly deletes: boolean
  /** The body of a 404 that no route takes. */
  readonly lost: '404' | ''
  /** Successful answers have an empty ResponseStatus. */
  readonly emptyStatus: boolean
  /** A POST without a length is refused with 411. */
  readonly requiresLength: boolean
  /** Session cookies for everybody who asks anything. */
  readonly cookiesForAll: boolean
}
export const traits: Record<Generation, Traits> = {
  '5.8': {
    names: 'Pascal',
    dates: 'Date(ms)',
    tokens: 'body',
    stranger: ['Invalid Role', 'Invalid Role'],
    powerless: ['Invalid Role', 'Invalid Role'],
    validation: 400,
    deletes: true,
    lost: '404',
    emptyStatus: true,
    requiresLength: true,
    cookiesForAll: true,
  },
  '6.9': {
    names: 'Pascal',
    dates: 'Date(ms)',
    tokens: 'body',
    stranger: ['Unauthorized', 'Not Authenticated'],
    powerless: ['Forbidden', 'Invalid Role'],
    validation: 500,
    deletes: true,
    lost: '',
    emptyStatus: false,
    requiresLength: false,
    cookiesForAll: true,
  },
  '8.1': {
    names: 'camel',
    dates: 'Date(ms)',
    tokens: 'cookies',
    stranger: ['Unauthorized', 'Not Authenticated'],
    powerless: ['Forbidden', 'Invalid Role'],
    validation: 500,
    deletes: false,
    lost: '',
    emptyStatus: false,
    requiresLength: false,
    cookiesForAll: true,
  },
  '10.1': {
    names: 'camel',
    dates: 'ISO',
    tokens: 'cookies',
    stranger: ['Unauthorized', 'Not Authenticated'],
    powerless: ['Forbidden', 'Invalid Role'],
    validation: 500,
    deletes: false,
    lost: '',
    emptyStatus: false,
    requiresLength: false,
    cookiesForAll: false,
  },
}

/** The recorded spelling in that of another generation. Texts that look like a date are none of these answers'. */
export function inDialect(text: string, { names, dates }: Traits): string {
  const dated =
    dates === 'ISO'
      ? text.replace(/"\\\/Date\((\d+)[^)]*\)\\\/"/g, (_, ms: string) =>
          JSON.stringify(new Date(Number(ms)).toISOString()),
        )
      : text
  if (names === 'Pascal') return dated
  return dated.replace(/([{,])"([A-Z])(\w*)":/g, (_, before: string, first: string, rest: string) => {
    return `${before}"${first.toLowerCase()}${rest}":`
  })
}
