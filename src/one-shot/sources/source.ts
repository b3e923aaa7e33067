// The interface of a data source: code that reads what a one-shot agent is about, computes
// signals from it, and says which part of it makes an earlier result outdated. One file
// beside this one implements each kind of source.

import type { JsonValue } from '../../journal/event.ts'
import type { Caller } from '../../kit/caller.ts'

export type JsonObject = Record<string, JsonValue>

/**
 * `message`: an entry `{ messageId }` of a `citations` list may name it. `contact`: the fields `contactId` and `contacts` of
 * an answer may name it. If a source lists none of these two types, such ids are not checked.
 */
export type CitationType = 'conversation' | 'event' | 'fact' | 'todo' | 'message' | 'contact'

/** A record that an answer may cite. `source` is the id of the record. */
export type Citable = { source: string; type: CitationType }

export type Collected = {
  /** What the model is given, as one JSON value: records and the signals computed from them. */
  data: JsonObject
  /** What `sourceHash` covers: the records, without values that change with the clock alone. */
  hashed: JsonValue
  /** The records that an answer may cite. */
  citable: Citable[]
  /** Fields of the result that code computes (for example `priorityScore`). They are added to whatever the model answers. */
  fields?: JsonObject
  /**
   * The answer that code alone can give, in the language asked for. The demo model answers with it. It must fit the output
   * schema of the agent. Undefined if there is none.
   */
  computedAnswer?: JsonObject
}

export interface DataSource {
  /**
   * Throws a 404 error if the input names an entity that does not exist or is not the caller's. `operation` is that of the
   * agent (null if it has only one): several operations may read the same data and answer it differently.
   */
  collect(caller: Caller, input: JsonObject, at: number, language: string, operation: string | null): Promise<Collected>
}
