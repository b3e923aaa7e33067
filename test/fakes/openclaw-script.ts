// What a test can tell the fake gateway to do, and what the fake reports about its requests.

export type GatewayAction =
  /** Each piece is one event with all text of the message so far. */
  | { text: string | string[] }
  | { reasoning: string | string[] }
  | { call: { id: string; name: string; args: unknown } }
  | { progress: { id: string; text: string } }
  | { result: { id: string; text: string; isError?: boolean } }
  /** Asks for consent to a call and waits. Its result is `text` if it is allowed, else an error. */
  | { approval: { id: string; callId: string; command: string; text: string; expiresAtMs?: number } }
  /** Waits until the control route `release` is called. */
  | { hold: true }
  /** Waits until a client follows the session. */
  | { untilFollowed: true }
  /** All sockets are destroyed; the run goes on. */
  | { drop: true }
  /** So many event frames are numbered but not sent. */
  | { lose: number }
  /** So many event frames are sent twice. */
  | { duplicate: number }
  /** The bytes of one text frame. */
  | { raw: string }
  | { tick: true }
  /** The run ends with an error. */
  | { error: string }
  /** Only the lifecycle says that the run is over; the last chat event is lost. */
  | { endWithoutFinal: true }
  /** The run ends, and no event says so. */
  | { silentEnd: true }
  /** The last chat event has this text, and no earlier event had it. */
  | { final: string }
  | { restart: Restart }

/** A gateway that is started again forgets what was at work. It also forgets its sessions if `sessions` is true. */
export type Restart = { sessions?: boolean }

export type GatewayBehaviour = {
  /** Upgrades are answered with this status. */
  upgradeStatus?: number
  /** The socket is closed before the handshake is done. */
  closeBeforeHello?: boolean
  /** The handshake is never answered. */
  silent?: boolean
  connectError?: { code: string; message: string }
  scopes?: string[]
  /** The socket is destroyed when `chat.send` arrives: before the run is accepted, or before the answer is sent, or by a restart. */
  dropSend?: 'before' | 'after' | 'restart'
  refuseSend?: string
  /** `chat.abort` is not answered. */
  ignoreAbort?: boolean
  chatCompletions?: boolean
}

export type GatewayState = {
  boots: number
  connections: number
  open: number
  /** Messages that started a run, in order. */
  started: { runId: string; sessionKey: string; message: string }[]
  /** `chat.send` requests, with repeated ones. */
  sends: number
  /** Decisions that were applied, in order. */
  resolved: { id: string; decision: string }[]
  /** `exec.approval.resolve` requests, with repeated ones. */
  resolveRequests: number
  aborted: string[]
  completions: { user: string; message: string; closedEarly: boolean }[]
  historyReads: number
  badTokens: number
}
