// Which column of a CSV file holds which field of a contact: our own export, Google,
// Outlook (English and Chinese) and plain lists. Headers are compared by their letters and
// digits only, so `E-mail 1 - Value` and `email1value` are the same.

import { type ContactDraft, distinctTrimmed, joinedName, normalBirthday } from './contact-draft.ts'
import { splitEscaped } from './vcard-lines.ts'

/** The columns of our export, in order. */
export const exportColumns = [
  'uid',
  'name',
  'alias',
  'email',
  'phone',
  'company',
  'position',
  'tags',
  'note',
  'birthday',
  'other_emails',
  'other_phones',
] as const

type Column =
  | 'uid'
  | 'name'
  | 'given'
  | 'middle'
  | 'family'
  | 'alias'
  | 'email'
  | 'emails'
  | 'phone'
  | 'phones'
  | 'company'
  | 'position'
  | 'tags'
  | 'note'
  | 'birthday'

const headers: Record<Column, string> = {
  uid: 'uid|contact uid',
  name: 'name|full name|display name|contact|contact name|fn|file as|姓名|名字|名称|全名|联系人|联系人姓名|显示名称|称呼',
  given: 'given name|first name|名',
  middle: 'middle name|additional name|中间名',
  family: 'family name|last name|surname|姓|姓氏',
  alias: 'alias|nickname|nick name|昵称|别名|备注名',
  email:
    'email|mail|email address|email 1 value|email 1|primary email|邮箱|电子邮箱|电子邮件|电子邮件地址|邮件|邮件地址',
  emails: 'other emails|email 2 address|email 3 address|email 2 value|email 3 value|电子邮件 2 地址|电子邮件 3 地址',
  phone:
    'phone|telephone|tel|mobile|cell|mobile phone|phone number|primary phone|phone 1 value|phone 1|电话|手机|手机号|手机号码|电话号码|移动电话|联系电话',
  phones:
    'other phones|business phone|business phone 2|home phone|home phone 2|other phone|company main phone|phone 2 value|phone 3 value|商务电话|单位电话|住宅电话|家庭电话|其他电话|其它电话',
  company: 'company|organization|organisation|organization name|organization 1 name|公司|单位|工作单位|公司名称|企业',
  position: 'position|title|job title|organization title|organization 1 title|role|职位|职务|头衔|岗位',
  tags: 'tags|tag|labels|categories|group membership|groups|标签|分组|类别|分类|群组',
  note: 'note|notes|comment|comments|备注|附注|说明|笔记',
  birthday: 'birthday|birth date|date of birth|bday|生日|出生日期|出生年月日',
}

const columnOfHeader = new Map<string, Column>(
  (Object.entries(headers) as [Column, string][]).flatMap(([column, names]) =>
    names.split('|').map((name): [string, Column] => [headerKey(name), column]),
  ),
)

function headerKey(header: string): string {
  return header
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]/gu, '')
}

/** The field of each column; undefined for a column that is not read. */
export type ColumnPlan = (Column | undefined)[]

export function planColumns(header: readonly string[]): ColumnPlan {
  return header.map((name) => columnOfHeader.get(headerKey(name)))
}

const naming = new Set<Column | undefined>(['name', 'given', 'family', 'alias', 'company', 'email'])

/** False if no row can give a name. */
export function plansName(plan: ColumnPlan): boolean {
  return plan.some((column) => naming.has(column))
}

/** Null if the row has no name and nothing that can stand for one. */
export function contactOfRow(plan: ColumnPlan, cells: readonly string[]): ContactDraft | null {
  const of = (...columns: Column[]) =>
    cells.flatMap((cell, at) => {
      const column = plan[at]
      return column !== undefined && columns.includes(column) ? [cell.replaceAll(/\r\n?/g, '\n').trim()] : []
    })
  const first = (column: Column) => of(column).find((text) => text !== '') ?? null
  const emails = distinctTrimmed([...of('email').flatMap(severalOf), ...of('emails').flatMap(severalOf)])
  const phones = distinctTrimmed([...of('phone').flatMap(severalOf), ...of('phones').flatMap(severalOf)])
  const name =
    first('name') ??
    joinedName({ family: first('family'), given: first('given'), middle: first('middle') }) ??
    first('alias') ??
    first('company') ??
    emails[0]
  if (name === undefined) return null
  return {
    uid: first('uid'),
    name,
    alias: first('alias'),
    email: emails[0] ?? null,
    phone: phones[0] ?? null,
    company: first('company'),
    position: first('position'),
    note: distinctTrimmed(of('note')).join('\n') || null,
    // Google marks its own groups with an asterisk (`* myContacts`).
    tags: distinctTrimmed(of('tags').flatMap(severalOf)).filter((tag) => !tag.startsWith('* ')),
    birthday: normalBirthday(first('birthday') ?? ''),
    otherEmails: emails.slice(1),
    otherPhones: phones.slice(1),
  }
}

/** Google separates values with `:::`, others with a semicolon or a comma. Our export escapes these two with a backslash. */
function severalOf(cell: string): string[] {
  if (cell.includes(' ::: ')) return cell.split(' ::: ')
  return splitEscaped(cell, ';,')
}
