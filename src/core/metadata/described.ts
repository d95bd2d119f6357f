import type { NameStyle } from '../protocol/index.ts'

/** A page of the server itself, beside the operations. */
export type DescribedPage = {
  /** The first is the one to write down. */
  readonly paths: readonly string[]
  readonly summary: string
  readonly contentType: string
}

/** A form of health answers that is not the protocol's own (F5). */
export type DescribedReport = {
  readonly name: string
  /** Whether `?format=` asks for it by its name, or `Accept` by its type. */
  readonly by: 'format' | 'accept'
  readonly contentType: string
}

/** What a server says of itself when its interface is described; everything else is read off the protocol. */
export type Described = {
  /** Its address as the caller knows it, without a slash at the end. */
  readonly base: string
  readonly pages: readonly DescribedPage[]
  readonly reports: readonly DescribedReport[]
  readonly jsonp: boolean
  /** How members of JSON answers are spelled (N9). */
  readonly names: NameStyle
  /** Whether HTTP Basic counts (A9). */
  readonly basic: boolean
}

/** The version of the interface: it changes with what clients may rely on, and says nothing about the program. */
export const interfaceVersion = '1.0'
export const interfaceTitle = 'Application features service'
