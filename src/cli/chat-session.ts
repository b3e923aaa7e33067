// One conversation of `polylog chat`: sends messages, prints answers, and asks the person to decide about tool calls. A
// decision may also be made elsewhere; then the question is withdrawn here.

import type { ChatRequest } from '../../client/src/api.ts'
import type { PolylogClient } from '../../client/src/client.ts'
import { PolylogError } from '../../client/src/error.ts'
import { emptyRun, openRequests, type QuestionBlock, reduceRun, type ToolBlock } from '../../client/src/fold.ts'
import type { JsonValue } from '../../client/src/json.ts'
import type { Run } from '../../client/src/run.ts'
import { failureOfRequest } from './connection.ts'
import type { CliContext } from './context.ts'
import { CliError } from './exit-codes.ts'
import { ctrlC, ctrlD, type Keyboard } from './keyboard.ts'
import { printable, printableLine } from './output.ts'
import { RunPrinter } from './run-printer.ts'
import { type Styles, stylesOf } from './styles.ts'
import { connectionNotes } from './tail.ts'
import { isRecord } from '../kit/is-record.ts'

export type ChatSettings = {
  asJson: boolean
  agentId?: string
  model?: string
  /** The command that goes on with a run or a conversation. */
  resumeCommand(id: string): string
}

export type ChatSessionDependencies = {
  client: PolylogClient
  keyboard: Keyboard
  context: CliContext
  settings: ChatSettings
}

export class ChatSession {
  conversationId: string | undefined
  /** Why the last message got no good answer. */
  failure: CliError | undefined
  private readonly dependencies: ChatSessionDependencies
  private readonly styles: Styles
  /** The run whose cancel was requested. */
  private cancelling: string | undefined

  constructor(dependencies: ChatSessionDependencies) {
    this.dependencies = dependencies
    this.styles = stylesOf(dependencies.context)
  }

  /** `left`: the person left before the answer was complete. */
  async ask(message: string): Promise<'done' | 'left'> {
    const { client, settings, context } = this.dependencies
    const { agentId, model } = settings
    const request: ChatRequest = {
      input: message,
      ...(this.conversationId === undefined ? {} : { conversationId: this.conversationId }),
      ...(agentId === undefined ? {} : { agentId }),
      ...(model === undefined ? {} : { model }),
    }
    const leaving = new AbortController()
    try {
      const run = await client.chat(request, { signal: leaving.signal, onConnection: connectionNotes(context) })
      this.conversationId = run.conversationId ?? this.conversationId
      return await this.read(run, leaving, { showInput: false })
    } catch (error) {
      return this.failed(error)
    }
  }

  /** Reads a run that was started before, from its beginning. */
  async follow(runId: string): Promise<'done' | 'left'> {
    const { client, context } = this.dependencies
    const leaving = new AbortController()
    const run = client.attach(runId, { signal: leaving.signal, onConnection: connectionNotes(context) })
    try {
      return await this.read(run, leaving, { showInput: true })
    } catch (error) {
      return this.failed(error)
    }
  }

  private failed(error: unknown): 'done' {
    if (!(error instanceof PolylogError)) throw error
    const { exit, message, code } = failureOfRequest(error)
    this.failure = new CliError(exit, message, code)
    if (this.dependencies.keyboard.isTerminal) this.dependencies.context.output.line(this.styles.red(`✖ ${message}`))
    return 'done'
  }

  private async read(run: Run, leaving: AbortController, shown: { showInput: boolean }): Promise<'done' | 'left'> {
    const { keyboard, context, settings } = this.dependencies
    const printer = new RunPrinter(context.output, this.styles)
    /** The request that the person is asked about, and how to withdraw the question. */
    let asked: { id: string; withdrawn: AbortController } | undefined
    let state = emptyRun
    this.failure = undefined
    const handleKeys = () => keyboard.handleKeys((key) => this.handleKey(key, run.id, printer, leaving))
    handleKeys()
    try {
      for await (const frame of run) {
        state = reduceRun(state, frame)
        if (settings.asJson) context.output.json(frame)
        else printer.frame(frame, shown)
        await context.output.drained()
        if (frame.event === 'agent.end') break
        const open = openRequests(state)
        if (asked !== undefined && !open.some(({ id }) => id === asked?.id)) {
          asked.withdrawn.abort()
          asked = undefined
        }
        const [next] = open
        if (next === undefined || asked !== undefined) continue
        if (!keyboard.isTerminal) return this.cannotDecide(run.id)
        const withdrawn = new AbortController()
        asked = { id: next.id, withdrawn }
        printer.closeText()
        void this.decide(next, run.id, printer, leaving, withdrawn.signal)
          .catch((error: unknown) => printer.line(this.styles.red(`✖ ${printableLine(messageOf(error))}`)))
          .finally(() => {
            if (asked?.withdrawn === withdrawn) asked = undefined
            handleKeys()
          })
      }
    } catch (error) {
      if (!leaving.signal.aborted) throw error
      printer.closeText()
      return 'left'
    } finally {
      asked?.withdrawn.abort()
      keyboard.handleKeys(undefined)
    }
    printer.closeText()
    if (state.status === 'failed' || state.status === 'cancelled') {
      this.failure = new CliError('failed', state.error?.message ?? `The answer was ${state.status}.`, state.status)
    }
    return 'done'
  }

  private cannotDecide(runId: string): 'left' {
    this.failure = new CliError(
      'failed',
      `A tool call of run ${runId} waits for a decision, which needs a terminal: ${this.dependencies.settings.resumeCommand(runId)}`,
      'decision_needed',
    )
    return 'left'
  }

  /** The first Ctrl-C cancels the answer; one more leaves at once. */
  private handleKey(key: string, runId: string, printer: RunPrinter, leaving: AbortController): boolean {
    if (key === ctrlD) {
      leaving.abort()
      return true
    }
    if (key !== ctrlC) return false
    if (this.cancelling === runId) {
      leaving.abort()
      return true
    }
    this.cancelling = runId
    printer.line(this.styles.dim('(cancelling; Ctrl-C again leaves)'))
    this.dependencies.client.cancel(runId, { reason: 'Ctrl-C' }).catch((error: unknown) => {
      this.cancelling = undefined
      printer.line(this.styles.red(`✖ ${printableLine(messageOf(error))}`))
    })
    return true
  }

  private async decide(
    request: ToolBlock | QuestionBlock,
    runId: string,
    printer: RunPrinter,
    leaving: AbortController,
    withdrawn: AbortSignal,
  ): Promise<void> {
    const { client, keyboard, context } = this.dependencies
    if (request.type === 'question') {
      for (const [index, option] of request.options.entries()) context.output.line(`  ${index + 1}  ${labelOf(option)}`)
      keyboard.handleKeys(undefined)
      const line = await keyboard.readLine('answer> ', { signal: withdrawn })
      if (withdrawn.aborted) return
      if (line === null) return leaving.abort()
      await client.reply(request.id, line)
      return
    }
    const { confirmationId } = request
    if (confirmationId === undefined) return
    this.showCall(request, context)
    for (;;) {
      const key = await this.chooseKey(runId, printer, leaving, withdrawn)
      if (key === null) return
      if (key === 'a') {
        await client.confirm(confirmationId)
        return
      }
      keyboard.handleKeys(undefined)
      if (key === 'd') {
        const reason = await keyboard.readLine('reason (may be empty)> ', { signal: withdrawn })
        if (withdrawn.aborted) return
        if (reason === null) continue
        await client.reject(confirmationId, reason.trim() === '' ? {} : { reason: reason.trim() })
        return
      }
      const edited = await keyboard.readLine('arguments> ', {
        prefill: JSON.stringify(request.input ?? {}),
        signal: withdrawn,
      })
      if (withdrawn.aborted) return
      const payload = edited === null ? undefined : objectOf(edited)
      if (payload === undefined) {
        context.output.line(this.styles.red('The arguments have to be a JSON object. Press a, d or e.'))
        continue
      }
      await client.confirm(confirmationId, { payload })
      return
    }
  }

  /** Waits for a, d or e; null if the question is gone. */
  private async chooseKey(
    runId: string,
    printer: RunPrinter,
    leaving: AbortController,
    withdrawn: AbortSignal,
  ): Promise<'a' | 'd' | 'e' | null> {
    return await new Promise((resolve) => {
      if (withdrawn.aborted) resolve(null)
      const leave = () => resolve(null)
      withdrawn.addEventListener('abort', leave)
      leaving.signal.addEventListener('abort', leave)
      this.dependencies.keyboard.handleKeys((key) => {
        if (key === 'a' || key === 'd' || key === 'e') resolve(key)
        else this.handleKey(key, runId, printer, leaving)
        return true
      })
    })
  }

  private showCall({ name, input }: ToolBlock, { output }: CliContext): void {
    const { styles } = this
    for (const line of JSON.stringify(input ?? {}, null, 2).split('\n')) output.line(styles.dim(`  ${printable(line)}`))
    output.line(
      `  ${styles.bold('a')} approve ${printableLine(name)}, ${styles.bold('d')} deny, ${styles.bold('e')} edit the arguments`,
    )
  }
}

function objectOf(text: string): Record<string, JsonValue> | undefined {
  try {
    const value = JSON.parse(text) as unknown
    return isRecord(value) ? (value as Record<string, JsonValue>) : undefined
  } catch {
    return undefined
  }
}

function labelOf(option: JsonValue): string {
  return printableLine(typeof option === 'string' ? option : JSON.stringify(option))
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
