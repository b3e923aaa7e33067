// The sentences of the parts that every page uses.

import { defineWords } from '../i18n/words.ts'

export const uiWords = defineWords(
  {
    rowsLeftOut: (count: number) => `${count} more rows are not shown. Copy the answer to see them.`,
    showAll: (chars: string) => `Show all ${chars} characters`,
    showMore: (count: number) => `Show ${count} more`,
    expired: 'expired',
    items: (count: number) => (count === 1 ? '1 item' : `${count} items`),
    fields: (count: number) => (count === 1 ? '1 field' : `${count} fields`),
  },
  {
    rowsLeftOut: (count: number) => `还有 ${count} 行未显示，复制回答即可查看。`,
    showAll: (chars: string) => `显示全部 ${chars} 个字符`,
    showMore: (count: number) => `再显示 ${count} 个`,
    expired: '已过期',
    items: (count: number) => `${count} 项`,
    fields: (count: number) => `${count} 个字段`,
  },
)
