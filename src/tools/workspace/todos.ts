// `todo_read` and `todo_write`: the to-do list of a session, stored with its conversation.
// A write replaces the whole list, so retrying it is idempotent.

import { AppError } from '../../errors/app-error.ts'
import type { JsonValue } from '../../journal/event.ts'
import type { TodoItem, WorkspaceStore } from '../../stores/workspace-store.ts'
import type { Tool } from '../tool.ts'
import { counted, field } from './arguments.ts'
import { scopeOf } from './session-files.ts'

export type TodoStore = Pick<WorkspaceStore, 'readTodos' | 'saveTodos'>

const statuses = ['pending', 'in_progress', 'completed'] as const
const itemsMax = 200

export function createTodoTools(store: TodoStore): Tool[] {
  return [todoRead(store), todoWrite(store)]
}

function todoRead(store: TodoStore): Tool {
  return {
    name: 'todo_read',
    description: 'Reads the to-do list of this session.',
    effect: 'read',
    confirm: 'never',
    needsWorkspace: true,
    inputSchema: { type: 'object', properties: {}, additionalProperties: false },
    timeoutMs: 10_000,
    outputCharsMax: 200_000,
    describe: () => 'Read the to-do list',
    async run(_input, context) {
      const todos = await store.readTodos(scopeOf(context))
      const open = todos.filter(({ status }) => status !== 'completed').length
      return { ok: true, output: { todos }, summary: `${counted(todos.length, 'to-do')}, ${open} open.` }
    },
  }
}

function todoWrite(store: TodoStore): Tool {
  return {
    name: 'todo_write',
    description: 'Replaces the to-do list of this session. At most one item may be in_progress.',
    effect: 'idempotent',
    confirm: 'never',
    needsWorkspace: true,
    inputSchema: {
      type: 'object',
      properties: {
        todos: {
          type: 'array',
          maxItems: itemsMax,
          items: {
            type: 'object',
            properties: {
              id: { type: 'string', minLength: 1, maxLength: 100 },
              title: { type: 'string', minLength: 1, maxLength: 1000 },
              status: { enum: [...statuses] },
              assignee: { type: 'string', maxLength: 200 },
              notes: { type: 'string', maxLength: 5000 },
            },
            required: ['id', 'title', 'status'],
            additionalProperties: false,
          },
        },
      },
      required: ['todos'],
      additionalProperties: false,
    },
    timeoutMs: 10_000,
    outputCharsMax: 1_000,
    describe: (input) => `Write the to-do list: ${counted(itemsOf(input).length, 'item')}`,
    async run(input, context) {
      const todos = itemsOf(input)
      if (new Set(todos.map(({ id }) => id)).size < todos.length) {
        throw new AppError('tool_input_invalid', 'Two items of the list have the same id.')
      }
      if (todos.filter(({ status }) => status === 'in_progress').length > 1) {
        throw new AppError('tool_input_invalid', 'Only one item of the list may be in_progress.')
      }
      await store.saveTodos(scopeOf(context), todos, context.now())
      return {
        ok: true,
        output: { ok: true, count: todos.length },
        summary: `The list has ${counted(todos.length, 'item')}.`,
      }
    },
  }
}

function itemsOf(input: JsonValue): TodoItem[] {
  const todos = field(input, 'todos')
  return Array.isArray(todos) ? (todos as TodoItem[]) : []
}
