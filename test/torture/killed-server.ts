// A server that is killed again and again at one address, and what its clients share: its
// address, whether it is up, and how many frames all of them got. Kills are due after a number
// of frames, not after a time, so that a slow machine gets as many as a fast one.

import { setTimeout as wait } from 'node:timers/promises'
import { type PolylogProcess, startPolylogProcess } from '../support/polylog-process.ts'
import type { Random } from '../support/random.ts'

/** If the clients see nothing for so long, the server is killed all the same: they may all be waiting for a person. */
const quietMs = 1500

export class KilledServer {
  readonly baseUrl: string
  kills = 0
  drains = 0
  frames = 0
  private server: PolylogProcess
  private up: Promise<void> = Promise.resolve()
  private readonly environment: Record<string, string>
  private wake: (() => void) | undefined

  private constructor(server: PolylogProcess, environment: Record<string, string>) {
    this.server = server
    this.baseUrl = server.baseUrl
    this.environment = environment
  }

  static async start(environment: Record<string, string>): Promise<KilledServer> {
    const server = await startPolylogProcess(environment)
    // Every restart uses the port of the first start, as a restarted service does.
    return new KilledServer(server, { ...environment, PORT: new URL(server.baseUrl).port })
  }

  /** Resolves when the server answers, as far as its killer knows. */
  isUp(): Promise<void> {
    return this.up
  }

  sawFrames(count: number): void {
    this.frames += count
    this.wake?.()
  }

  /** One death, after the clients have seen a random number of frames, and the next life. */
  async dieOnce(random: Random, framesMax: number): Promise<void> {
    await this.untilFrames(this.frames + random.between(1, framesMax))
    this.up = (async () => {
      if (random.chance(0.15)) {
        this.drains += 1
        await this.server.stop()
      } else {
        this.kills += 1
        await this.server.kill()
      }
      // Some kills come before the server listens.
      if (random.chance(0.1)) await this.dieWhileStarting(random.between(50, 700))
      this.server = await this.server.restartProcess(this.environment)
    })()
    await this.up
  }

  log(): string {
    return this.server.log()
  }

  async dispose(): Promise<void> {
    await this.up
    await this.server.dispose()
  }

  private async dieWhileStarting(afterMs: number): Promise<void> {
    this.kills += 1
    await this.server.restartAndKill(this.environment, afterMs)
  }

  private async untilFrames(goal: number): Promise<void> {
    for (;;) {
      if (this.frames >= goal) return
      const before = this.frames
      await Promise.race([new Promise<void>((resolve) => (this.wake = resolve)), wait(quietMs)])
      if (this.frames === before) return
    }
  }
}
