// Lists the questions of all kinds that wait, or waited, for a user.

import { AppError } from '../errors/app-error.ts'
import { type Caller, owns } from '../kit/caller.ts'
import type { InteractionFilter, InteractionRow, InteractionStore } from '../stores/interaction-store.ts'
import type { RowPage } from '../stores/row-page.ts'

export class InteractionList {
  private readonly store: Pick<InteractionStore, 'listInteractions' | 'readInteraction'>

  constructor(store: Pick<InteractionStore, 'listInteractions' | 'readInteraction'>) {
    this.store = store
  }

  /** Newest first. `before` is the last id of the previous page; throws if the owner has none with that id. */
  async list(filter: InteractionFilter): Promise<RowPage<InteractionRow>> {
    if (filter.before !== undefined && (await this.store.readInteraction(filter.before))?.owner !== filter.owner) {
      throw notFound(filter.before)
    }
    return await this.store.listInteractions(filter)
  }

  /** Throws `interaction_not_found` if it does not belong to the caller. */
  async get(caller: Caller, id: string): Promise<InteractionRow> {
    const row = await this.store.readInteraction(id)
    if (row === undefined || !owns(caller, row)) throw notFound(id)
    return row
  }
}

function notFound(id: string): AppError {
  return new AppError('interaction_not_found', `There is no interaction ${JSON.stringify(id)}.`)
}
