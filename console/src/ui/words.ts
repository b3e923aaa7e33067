// The sentences of the parts that every page uses.

import { defineWords } from '../i18n/words.ts'

export const uiWords = defineWords(
  {
    rowsLeftOut: (count: number) => `${count} more rows are not shown. Copy the answer to see them.`,
    showAll: (chars: string) => `Show all ${chars} characters`,
    showMore: (count: number) => `Show ${count} more`,
    editAsJson: 'Edit as JSON',
    editAsForm: 'Edit as a form',
    asJson: 'As JSON.',
    notJson: 'This is not JSON.',
    onePerLine: 'One per line.',
    optional: (label: string) => `${label} (optional)`,
    chooseFile: 'Choose a file',
    dropFile: 'Choose a file, or drop it here.',
    removeFile: 'Remove the file',
    expired: 'expired',
    items: (count: number) => (count === 1 ? '1 item' : `${count} items`),
    fields: (count: number) => (count === 1 ? '1 field' : `${count} fields`),
  },
  {
    rowsLeftOut: (count: number) => `还有 ${count} 行未显示，复制回答即可查看。`,
    showAll: (chars: string) => `显示全部 ${chars} 个字符`,
    showMore: (count: number) => `再显示 ${count} 个`,
    editAsJson: '以 JSON 编辑',
    editAsForm: '以表单编辑',
    asJson: 'JSON 格式。',
    notJson: '这不是 JSON。',
    onePerLine: '每行一项。',
    optional: (label: string) => `${label}（可不填）`,
    chooseFile: '选择文件',
    dropFile: '选择文件，或拖到这里。',
    removeFile: '移除文件',
    expired: '已过期',
    items: (count: number) => `${count} 项`,
    fields: (count: number) => `${count} 个字段`,
  },
)
