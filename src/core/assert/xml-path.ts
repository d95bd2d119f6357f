import type { XmlElement } from './xml.ts'

type Step =
  | { readonly of: 'element'; readonly name: string; readonly begins: boolean; readonly index: number | undefined }
  | { readonly of: 'attribute'; readonly name: string }
/** What a path leads to: an element, or the value of an attribute. */
export type XmlNode = XmlElement | { readonly value: string }

const step = /^(?:@([\p{L}_][\p{L}\p{N}_.:-]*)|(\*|[\p{L}_][\p{L}\p{N}_.:-]*\*?)(?:\[(\d{1,9})\])?)$/u

/**
 * The steps of a path: `/VAST/Ad[0]/InLine/@id`, relative without the first slash. A name without an
 * index stands for every element so called, `*` for any, `Job_*` for all that begin so; indexes count
 * from 0, among the elements that the name stands for. Undefined when it cannot be read.
 */
export function parseXmlPath(path: string): readonly Step[] | undefined {
  const written = path.replace(/^\//, '')
  if (written === '.') return []
  const steps: Step[] = []
  for (const part of written.split('/')) {
    const [whole, attribute, name = '', index] = step.exec(part) ?? []
    if (whole === undefined || steps.at(-1)?.of === 'attribute') return undefined
    if (attribute !== undefined) steps.push({ of: 'attribute', name: attribute })
    else {
      const begins = name.endsWith('*')
      const found = index === undefined ? undefined : Number(index)
      steps.push({ of: 'element', name: begins ? name.slice(0, -1) : name, begins, index: found })
    }
  }
  return steps
}

/** Everything that the steps lead to, in the document's order. */
export function selectXml(from: XmlElement, steps: readonly Step[]): readonly XmlNode[] {
  let nodes: readonly XmlNode[] = [from]
  for (const next of steps) {
    nodes = nodes.flatMap((node): readonly XmlNode[] => {
      if ('value' in node) return []
      if (next.of === 'attribute') {
        const value = node.attributes.get(next.name)
        return value === undefined ? [] : [{ value }]
      }
      const named = node.children.filter(({ name }) => isCalled(name, next.name, next.begins))
      return next.index === undefined ? named : named.slice(next.index, next.index + 1)
    })
  }
  return nodes
}

/** With its prefix or without: `vmap:AdBreak` is also `AdBreak`. */
const isCalled = (name: string, wanted: string, begins: boolean): boolean =>
  [name, name.slice(name.indexOf(':') + 1)].some((form) => (begins ? form.startsWith(wanted) : form === wanted))

export const xmlText = (node: XmlNode): string => ('value' in node ? node.value : node.text)

/** The document above its root, so that `/VAST` is a step like any other. */
export const above = (root: XmlElement): XmlElement => ({ name: '', attributes: new Map(), children: [root], text: '' })
