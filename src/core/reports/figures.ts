import type { ServerState } from '../protocol/index.ts'
import { oneLine } from './text.ts'

export type MachineState = {
  readonly name: string
  readonly totalMb?: number
  readonly freeMb?: number
  /** Percent. */
  readonly cpu?: number
}

/** Reads a ServerState, leaving out what is no figure. */
export function readState(state: ServerState | undefined): MachineState | undefined {
  if (!state) return undefined
  const totalMb = figure(state.TotalRamInMb)
  const freeMb = figure(state.AvailableRamInMb)
  const cpu = figure(state.UsedCpuPercent)
  return {
    name: oneLine(state.ServerName ?? ''),
    ...(totalMb === undefined ? {} : { totalMb }),
    ...(freeMb === undefined ? {} : { freeMb }),
    ...(cpu === undefined ? {} : { cpu }),
  }
}

/** A figure that a server of this world can have; NaN, below nothing and absurdly large ones are none. */
export const figure = (value: number | undefined): number | undefined =>
  value !== undefined && value >= 0 && value <= 1e12 ? value : undefined
/** Dates of four-digit years, so that ISO 8601 has one shape. */
export const valid = (date: Date | undefined): Date | undefined =>
  date !== undefined && date.getTime() >= 0 && date.getTime() < 253_402_300_800_000 ? date : undefined
