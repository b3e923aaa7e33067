// `polylog chat`: a conversation in the terminal. Answers appear as they come and survive a restart of the server; tool
// calls that need a decision are decided by a key. The server keeps everything, so leaving loses nothing.

import type { Command } from 'commander'
import { PolylogError } from '../../client/src/error.ts'
import { ChatSession, type ChatSettings } from './chat-session.ts'
import { addConnectionOptions, type ConnectionFlags, connectTo, type ServerConnection } from './connection.ts'
import type { CliContext } from './context.ts'
import { CliError } from './exit-codes.ts'
import { Keyboard } from './keyboard.ts'
import { printable } from './output.ts'

type ChatFlags = ConnectionFlags & { resume?: string; agent?: string; model?: string }

/** How often a message is sent again while the server restarts. */
const requestRetries = 8
const shownMessages = 10

export function registerChat(program: Command, context: CliContext): void {
  addConnectionOptions(program.command('chat'))
    .description('talk to an agent in the terminal')
    .argument('[message]', 'the first message')
    .option('--resume <id>', 'go on with a conversation, or with a run that has not ended')
    .option('--agent <id>', 'the agent (default: the one of the server)')
    .option('--model <provider/model>', 'the model (default: the one of the agent or of the server)')
    .addHelpText(
      'after',
      `
Keys while it answers: Ctrl-C cancels the answer, Ctrl-D leaves while the server goes on. If a tool asks: a approves,
d denies with a reason, e edits the arguments. Without a terminal, each line of stdin is a message.

Examples:
  $ polylog chat
  $ polylog chat --resume 01KXYZ
  $ polylog chat --url https://agents.example.com --model openai/gpt-5
  $ echo 'What time is it?' | polylog chat`,
    )
    .action(async (message: string | undefined, flags: ChatFlags) => await chat(message, flags, context))
}

async function chat(message: string | undefined, flags: ChatFlags, context: CliContext): Promise<void> {
  const first = connectTo(flags, context)
  const connection = connectTo(flags, context, { requestRetries })
  const keyboard = new Keyboard(process.stdin, context.output.stdout)
  const settings: ChatSettings = {
    asJson: flags.json === true,
    resumeCommand: (id) => resumeCommand(id, flags),
    ...(flags.agent === undefined ? {} : { agentId: flags.agent }),
    ...(flags.model === undefined ? {} : { model: flags.model }),
  }
  const session = new ChatSession({ client: connection.client, keyboard, context, settings })
  try {
    const resumed = flags.resume === undefined ? undefined : await findResumed(flags.resume, first)
    let result: 'done' | 'left' = 'done'
    if (resumed !== undefined) {
      session.conversationId = resumed.conversationId
      if (!settings.asJson) await showMessages(resumed, first, context)
      if (resumed.runId !== null) result = await session.follow(resumed.runId)
    }
    if (message !== undefined && result === 'done') result = await session.ask(message)
    if (message === undefined || keyboard.isTerminal) {
      while (result === 'done') {
        const line = await keyboard.readLine('> ')
        if (line === null) break
        if (line.trim() !== '') result = await session.ask(line)
      }
    }
    if (result === 'done' && keyboard.isTerminal) context.output.line()
    sayHowToResume(session, result, flags, context)
  } finally {
    keyboard.close()
  }
  if (session.failure !== undefined && !keyboard.isTerminal) throw session.failure
}

type Resumed = { conversationId: string | undefined; runId: string | null }

/** The id of a run or of a conversation. */
async function findResumed(id: string, { client }: ServerConnection): Promise<Resumed> {
  try {
    const run = await client.getRun(id)
    return { conversationId: run.conversationId ?? undefined, runId: run.endedAtMs === null ? run.runId : null }
  } catch (error) {
    if (!(error instanceof PolylogError) || error.status !== 404) throw error
  }
  try {
    const conversation = await client.conversations.get(id)
    return { conversationId: conversation.id, runId: conversation.activeRun?.runId ?? null }
  } catch (error) {
    if (!(error instanceof PolylogError) || error.status !== 404) throw error
    throw new CliError('notFound', `There is no conversation and no run ${JSON.stringify(id)} of yours on this server.`)
  }
}

/** The end of the conversation; the run that has not ended is shown from its own stream. */
async function showMessages({ conversationId, runId }: Resumed, { client }: ServerConnection, { output }: CliContext) {
  if (conversationId === undefined) return
  const messages = await client.conversations.messages(conversationId, { limit: shownMessages })
  for (const { role, content, metadata } of messages) {
    if (metadata['runId'] === runId || (role !== 'user' && role !== 'assistant')) continue
    output.line(role === 'user' ? `> ${printable(content)}` : printable(content))
  }
}

function sayHowToResume(session: ChatSession, result: 'done' | 'left', flags: ChatFlags, { output }: CliContext): void {
  if (session.conversationId === undefined || (flags.json === true && result === 'done')) return
  const command = resumeCommand(session.conversationId, flags)
  output.note(
    result === 'left' ? `The answer goes on at the server. To come back: ${command}` : `To come back: ${command}`,
  )
}

/** With the server and the user, so that it can be pasted into a shell. The token is not repeated: it would be shown. */
function resumeCommand(id: string, { url, user }: ChatFlags): string {
  return [
    'polylog chat --resume',
    shellWord(id),
    ...(url === undefined ? [] : [`--url ${shellWord(url)}`]),
    ...(user === undefined ? [] : [`--user ${shellWord(user)}`]),
  ].join(' ')
}

function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
