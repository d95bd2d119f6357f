import { type EngineContext, limits } from '../../../src/core/checks/engine/index.ts'

/** A fixture for the engine with a clock of its own choosing; nothing in it touches the machine. */
export function engineFixture(more: Partial<EngineContext> = {}): EngineContext {
  return {
    now: () => performance.now(),
    date: () => new Date(),
    resolve: async (host) => [host],
    inChild: async () => {
      throw new Error('no child processes in this fixture')
    },
    measureState: () => () => ({ ServerName: 'test', TotalRamInMb: 1024, AvailableRamInMb: 512, UsedCpuPercent: 1 }),
    limits: limits(),
    processorWaitMs: () => undefined,
    ...more,
  }
}
