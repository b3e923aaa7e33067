// A server that is killed again and again at one address, and what its clients share: its
// address, whether it is up, and how many frames all of them got.

import { type PolylogProcess, startPolylogProcess } from '../support/polylog-process.ts'
import type { Random } from '../support/random.ts'
import { FrameCount } from './frame-count.ts'
import type { TorturedServer } from './torture-client.ts'

export class KilledServer implements TorturedServer {
  readonly baseUrl: string
  kills = 0
  drains = 0
  readonly progress = new FrameCount()
  private server: PolylogProcess
  private up: Promise<void> = Promise.resolve()
  private readonly environment: Record<string, string>

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
    this.progress.add(count)
  }

  /** One death, after the clients have seen a random number of frames, and the next life. */
  async dieOnce(random: Random, framesMax: number): Promise<void> {
    await this.progress.more(random.between(1, framesMax))
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
}
