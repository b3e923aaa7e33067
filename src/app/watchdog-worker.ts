// The watchdog's thread. It detects that the main thread is blocked, finds the run or
// request that blocks it, keeps this in a synced file while the block lasts, and kills a
// process that stays frozen. It only uses the main thread's heartbeat and the inspector.

import { rmSync, writeSync } from 'node:fs'
import { type Debugger, Session } from 'node:inspector'
import { parentPort, workerData } from 'node:worker_threads'
import type { Activity } from '../kit/activity.ts'
import { BlockWatch, type BlockLimits } from './block-watch.ts'
import { type Mark, markFileOf, writeWhole } from './death-record.ts'

export type WatchdogData = { heartbeat: SharedArrayBuffer; folder: string; life: string; limits: BlockLimits }
export type WatchdogMessage = { ms: number; activity: Activity | null; code?: string }

const { heartbeat, folder, life, limits } = workerData as WatchdogData
const beats = new Int32Array(heartbeat)
const watch = new BlockWatch(limits)
let blocks = 0
let culprit: { activity: Activity | null; code?: string } = { activity: null }

setInterval(tick, limits.tickMs)
parentPort?.on('message', () => process.exit(0))

function tick(): void {
  const beat = Atomics.load(beats, 0)
  const event = watch.tick(beat)
  if (event.is === 'blocked') {
    blocks += 1
    culprit = { activity: null }
    mark()
    askMainThread(beat)
  } else if (event.is === 'over') {
    rmSync(markFileOf(folder), { force: true })
    parentPort?.postMessage({ ms: event.ms, ...culprit } satisfies WatchdogMessage)
  } else if (event.is === 'frozen') {
    say(`the event loop was blocked for ${event.ms} ms; the process is ended so that it can be started again`)
    process.kill(process.pid, 'SIGKILL')
  }
}

function mark(): void {
  try {
    const value: Mark = { id: `${life}:${blocks}`, at: Date.now(), how: 'frozen', ...culprit }
    writeWhole(markFileOf(folder), value)
  } catch (error) {
    say(`the watchdog cannot write its mark: ${String(error)}`)
  }
}

/** Pauses the main thread with the debugger, reads its current activity, and resumes it. */
function askMainThread(beat: number): void {
  const session = new Session()
  try {
    session.connectToMainThread()
  } catch {
    return // without an inspector the block is reported without its cause
  }
  const urls = new Map<string, string>()
  session.on('Debugger.scriptParsed', ({ params }) => void urls.set(params.scriptId, params.url))
  session.on('Debugger.paused', ({ params }) => {
    const frame = params.callFrames[0]
    if (frame === undefined) {
      session.disconnect()
      return
    }
    const expression = 'globalThis[Symbol.for("polylog.activity")]?.()'
    session.post(
      'Debugger.evaluateOnCallFrame',
      { callFrameId: frame.callFrameId, expression, returnByValue: true, silent: true },
      (_error, answer) => {
        // If the heartbeat has moved, the block is over and the current activity is not its cause.
        if (Atomics.load(beats, 0) === beat) {
          culprit = {
            activity: activityIn(answer?.result.value),
            code: nameOf(frame, urls.get(frame.location.scriptId) ?? ''),
          }
          mark()
        }
        session.post('Debugger.resume', () => session.disconnect())
      },
    )
  })
  session.post('Debugger.enable', () => session.post('Debugger.pause'))
}

function nameOf(frame: Debugger.CallFrame, url: string): string {
  return `${frame.functionName || '(anonymous)'} ${url.split('/').slice(-3).join('/')}:${frame.location.lineNumber + 1}`
}

function activityIn(value: unknown): Activity | null {
  try {
    return JSON.parse(String(value)) as Activity | null
  } catch {
    return null
  }
}

/** Writes a log line directly to stderr, because the logger runs on the blocked main thread. */
function say(msg: string): void {
  const line = { level: 'fatal', time: new Date().toISOString(), ...culprit, msg }
  writeSync(2, `${JSON.stringify(line)}\n`)
}
