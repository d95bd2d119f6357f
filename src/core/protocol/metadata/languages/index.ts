/** The languages of `/types/{name}`: one file for each, and one line here. */
import { csharp } from './csharp.ts'
import { java } from './java.ts'
import { kotlin } from './kotlin.ts'
import type { Language } from './language.ts'
import { python } from './python.ts'
import { typescript } from './typescript.ts'
import { typescriptD } from './typescript-d.ts'

export type { Language } from './language.ts'

export const languages = {
  csharp,
  java,
  kotlin,
  python,
  typescript,
  'typescript.d': typescriptD,
} as const satisfies Record<string, Language>

export type LanguageName = keyof typeof languages
export const languageNames = Object.keys(languages) as readonly LanguageName[]
