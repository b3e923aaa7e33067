// The pages of the console. A page is one row here and one folder in pages/; it is loaded when it is first opened. Its
// address must be in the server's list too (src/http/console/console-paths.ts).

import { type ComponentType, lazy, type LazyExoticComponent } from 'react'
import type { IconName } from '../ui/icon.tsx'
import type { Language } from '../i18n/language.ts'

export type PageEntry = {
  /** The first part of the address; the page reads the rest with `useRoute` or `useParams`. */
  path: string
  label: Record<Language, string>
  icon: IconName
  /** Keys that open it. */
  keys: string
  View: LazyExoticComponent<ComponentType>
}

export const pages: readonly PageEntry[] = [
  {
    path: '/chat',
    label: { en: 'Chat', zh: '对话' },
    icon: 'chat',
    keys: 'g c',
    View: lazy(() => import('../pages/chat/chat-page.tsx')),
  },
  {
    path: '/inbox',
    label: { en: 'Inbox', zh: '收件箱' },
    icon: 'inbox',
    keys: 'g i',
    View: lazy(() => import('../pages/inbox/inbox-page.tsx')),
  },
  {
    path: '/agents',
    label: { en: 'Agents', zh: '智能体' },
    icon: 'agent',
    keys: 'g a',
    View: lazy(() => import('../pages/agents/agents-page.tsx')),
  },
  {
    path: '/jobs',
    label: { en: 'Jobs', zh: '任务' },
    icon: 'job',
    keys: 'g j',
    View: lazy(() => import('../pages/jobs/jobs-page.tsx')),
  },
  {
    path: '/arena',
    label: { en: 'Arena', zh: '竞技场' },
    icon: 'arena',
    keys: 'g v',
    View: lazy(() => import('../pages/arena/arena-page.tsx')),
  },
  {
    path: '/contacts',
    label: { en: 'Contacts', zh: '联系人' },
    icon: 'contact',
    keys: 'g p',
    View: lazy(() => import('../pages/contacts/contacts-page.tsx')),
  },
  {
    path: '/runs',
    label: { en: 'Runs', zh: '运行' },
    icon: 'run',
    keys: 'g r',
    View: lazy(() => import('../pages/runs/runs-page.tsx')),
  },
  {
    path: '/wires',
    label: { en: 'Wires', zh: '协议' },
    icon: 'wire',
    keys: 'g w',
    View: lazy(() => import('../pages/wires/wires-page.tsx')),
  },
  {
    path: '/operations',
    label: { en: 'Operations', zh: '运维' },
    icon: 'operations',
    keys: 'g o',
    View: lazy(() => import('../pages/operations/operations-page.tsx')),
  },
]
