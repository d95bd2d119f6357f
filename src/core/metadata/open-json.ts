/** What stands wherever an OpenAPI document wants an object. */
export type Json = { readonly [key: string]: unknown }

/** A reference to one of the shared parts. */
export const pointTo = (kind: 'headers' | 'parameters' | 'responses', name: string): Json => ({
  $ref: `#/components/${kind}/${name}`,
})
