import { type AST, RegExpParser } from '@eslint-community/regexpp'
import type { Hostile } from './growth.ts'

/** The units that hostile peers repeat, whatever their client is. */
export const hostileUnits = [
  ' ',
  '\t',
  '\n',
  '\r',
  '\r\n',
  ' \n',
  '\0',
  '\x1b',
  '\x1b[',
  '\x1b]0;',
  '\u2028',
  '\u200b',
  '"',
  "'",
  '\\',
  '\\"',
  '\\\\',
  '"\\',
  '""',
  ',',
  ':',
  ';',
  '=',
  '.',
  '-',
  '/',
  '//',
  '://',
  '://a@',
  '*',
  '/*',
  '%',
  '#',
  '&',
  '&#',
  '<',
  '<a ',
  '<!--',
  '>',
  '(',
  ')',
  '[',
  ']',
  '{',
  '}',
  '[]',
  '{"a":',
  '$',
  '\x24{',
  '@',
  '!',
  '0',
  '1.',
  'a',
  'A',
  'aA',
  'a ',
  ' a',
  'a.',
  'é',
  'e\u0301',
  '漢',
  '😀',
] as const

const ends = ['', '\0', '!', 'x', ' x\n'] as const
const mismatch = '\0'

/** Characters of which a class gets its examples: the first that fits leads on, and others are repeated too. */
const alphabet = [
  ...'a0 \t\n"\\\'A-._/:=,;@',
  ...Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)),
  ...'\x85\x9b\xa0\xadé\u0301\u0660\u1160\u200b\u2028\u202e\u3000。漢\ufeff\ud800😀\u{e0001}🇦',
]
const maxExamples = 6
/** Pairs grow with the square of the parts. */
const maxPaired = 7
const maxLeads = 4

const distinct = (texts: readonly string[]): readonly string[] => [...new Set(texts)]
const joined = (nodes: readonly AST.Element[], text: (node: AST.Element) => string): string => nodes.map(text).join('')

/**
 * Texts that make a regular expression work hard: every repeatable part of it repeated, behind the shortest text that leads
 * there and before what does not match; that together with its lead again and again, so that every start scans on; every
 * character, class and pair of its parts repeated; almost whole matches; and what hostile peers repeat anyway.
 */
export function hostileTextsFor(source: string, flags: string): readonly Hostile[] {
  const unicode = flags.includes('u')
  const pattern = new RegExpParser().parsePattern(source, 0, source.length, {
    unicode,
    unicodeSets: flags.includes('v'),
  })
  const examplesOf = (node: AST.CharacterClass | AST.CharacterSet): readonly string[] => {
    const one = new RegExp(`^${node.raw}$`, flags.replace(/[gym]/g, ''))
    return distinct(alphabet.filter((text) => one.test(text))).slice(0, maxExamples)
  }
  const parts = new Set<string>()
  const texts = new Map<string, Hostile>()
  const add = (lead: string, unit: string, end: string): void => {
    if (unit !== '') texts.set(JSON.stringify([lead, unit, end]), { lead, unit, end })
  }

  /** Texts that a node matches, as far as lookarounds do not matter: the shortest first. */
  const examples = (node: AST.Element | AST.Alternative): readonly string[] => {
    switch (node.type) {
      case 'Alternative':
        return distinct([joined(node.elements, shortest), joined(node.elements, longer)])
      case 'Group':
      case 'CapturingGroup':
        return distinct(node.alternatives.flatMap(examples))
      case 'Quantifier':
        return [shortest(node.element).repeat(Math.min(node.min, 1_000))]
      case 'Character':
        return [String.fromCodePoint(node.value)]
      case 'CharacterSet':
      case 'CharacterClass':
        return examplesOf(node)
      case 'Backreference':
        return [node.resolved].flat().map(shortest)
      default:
        return ['']
    }
  }
  const shortest = (node: AST.Element | AST.Alternative): string => examples(node)[0] ?? ''
  /** With what may be left out. */
  const longer = (node: AST.Element): string =>
    node.type === 'Quantifier' && node.min === 0
      ? shortest(node.element)
      : node.type === 'Group' || node.type === 'CapturingGroup'
        ? joined(node.alternatives[0]?.elements ?? [], longer)
        : shortest(node)

  const visit = (node: AST.Element | AST.Alternative, leads: readonly string[], follow: string): void => {
    switch (node.type) {
      case 'Alternative':
        node.elements.forEach((one, index) => {
          const before = node.elements.slice(0, index)
          const tails = [joined(before, shortest), joined(before, longer)]
          const all = leads.flatMap((lead) => tails.map((tail) => lead + tail))
          visit(one, distinct(all).slice(0, maxLeads), joined(node.elements.slice(index + 1), shortest) + follow)
        })
        break
      case 'Group':
      case 'CapturingGroup':
        for (const one of node.alternatives) visit(one, leads, follow)
        break
      case 'Assertion':
        if (node.kind === 'lookahead' || node.kind === 'lookbehind')
          for (const one of node.alternatives) visit(one, leads, follow)
        break
      case 'Quantifier':
        visit(node.element, leads, follow)
        if (node.max > 1) for (const lead of leads) repeat(examples(node.element), lead, follow)
        break
      case 'Character':
        parts.add(shortest(node))
        break
      case 'CharacterSet':
      case 'CharacterClass':
        for (const one of examplesOf(node)) parts.add(one)
        break
    }
  }
  const repeat = (bodies: readonly string[], lead: string, follow: string): void => {
    for (const body of bodies) {
      for (const end of ends) add(lead, body, end)
      add(lead, body, follow)
      add(lead, body, follow + mismatch)
      add(lead + body, body, follow.slice(0, -1) + mismatch)
      // A character before the lead keeps an anchor from matching.
      add(mismatch + lead, body, mismatch + follow)
      add('', lead + body, mismatch)
    }
    add('', lead, mismatch)
    if (flags.includes('m')) for (const line of ['\n', '\r', '\u2028']) add('', lead + line, mismatch)
  }
  for (const alternative of pattern.alternatives) {
    visit(alternative, [''], '')
    for (const whole of examples(alternative)) {
      add('', whole, '')
      add('', whole, mismatch)
      add('', whole.slice(0, -1), mismatch)
      add('', whole.slice(1), mismatch)
      add(whole.slice(0, -1), whole.slice(-1), mismatch)
    }
  }
  for (const one of parts) {
    for (const end of ends) add('', one, end)
  }
  const paired = [...parts].slice(0, maxPaired)
  for (const one of paired) for (const other of paired) if (other !== one) add('', one + other, mismatch)
  for (const unit of hostileUnits) for (const end of ['', mismatch]) add('', unit, end)
  return [...texts.values()]
}
