import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readFrontMatter, frontMatterText } from './front-matter.ts'

const fieldOf = (yaml: string, name = 'description') => {
  const { fields } = readFrontMatter(`---\n${yaml}\n---\nText.\n`, 'SKILL.md')
  return frontMatterText(fields, name, 'SKILL.md')
}
const refused = (yaml: string) => {
  try {
    readFrontMatter(`---\n${yaml}\n---\nText.\n`, 'SKILL.md')
  } catch (error) {
    return (error as Error).message
  }
  return 'accepted'
}

test('a description with a colon is text, as published skills write it', () => {
  const { fields } = readFrontMatter(
    '---\nname: tea\ndescription: Use when: the user asks: “tea?” # now\n---\n',
    'SKILL.md',
  )

  assert.equal(fields.get('description'), 'Use when: the user asks: “tea?” # now')
  assert.equal(fields.get('name'), 'tea')
})

test('a description may be written in every way that YAML has for text', () => {
  assert.equal(fieldOf('description: >-\n  Runs an\n  errand.'), 'Runs an errand.')
  assert.equal(fieldOf('description: |\n  Runs an\n  errand.\n'), 'Runs an\nerrand.')
  assert.equal(fieldOf('description: "Runs: an \\"errand\\""'), 'Runs: an "errand"')
  assert.equal(fieldOf("description: 'It''s an errand' # a comment"), "It's an errand")
  assert.equal(fieldOf('description: Runs an\n  errand.'), 'Runs an errand.')
  assert.equal(fieldOf('name: x'), '')
  assert.equal(fieldOf('name: 2024', 'name'), '2024')
})

test('the text after the block is kept as it is, also with Windows line ends, a byte order mark and more lines ---', () => {
  const { fields, text } = readFrontMatter('\uFEFF---\r\nname: a\r\n---\r\nRun.\r\n---\r\nMore.\r\n', 'SKILL.md')

  assert.deepEqual([fields.get('name'), text], ['a', 'Run.\r\n---\r\nMore.\r\n'])
  assert.deepEqual([...readFrontMatter('---\n---\nText', 'a.md').fields], [])
})

test('an error has the name of the file, and the line if there is one', () => {
  assert.match(refused('name: [a'), /^SKILL\.md: the front matter is not valid YAML: .* \(line \d\)$/)
  assert.match(refused('name: a\ndescription: @asked'), /^SKILL\.md: .*not valid YAML.*\(line 3\)$/)
  assert.match(refused('- a\n- b'), /^SKILL\.md: .*no "key: value" lines/)
  assert.match(refused('name: a\nname: b'), /^SKILL\.md: .*the key "name" twice/)
  assert.throws(() => readFrontMatter('name: a', 'SKILL.md'), { message: /^SKILL\.md does not begin with/ })
  assert.throws(() => readFrontMatter('---\nname: a\n', 'SKILL.md'), { message: /^SKILL\.md: .*not closed/ })
  assert.throws(() => fieldOf('description: [a, b]'), { message: /^SKILL\.md: description .* must be text/ })
})

test('a block that grows when it is read is refused before it grows', () => {
  const seven = (what: string) => `[${Array.from({ length: 7 }, () => what).join(', ')}]`
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
  const levels = names.slice(1).map((name, index) => `${name}: &${name} ${seven(`*${names[index]}`)}`)
  assert.match(refused(`a: &a ${seven('x')}\n${levels.join('\n')}`), /^SKILL\.md: .*aliases/)
  const wide = `a: &a\n${'  - x\n'.repeat(30)}${Array.from({ length: 40 }, (_, at) => `k${at}: *a`).join('\n')}`
  assert.match(refused(wide), /^SKILL\.md: .*aliases/)
  assert.equal(refused(`a: ${'['.repeat(64)}${']'.repeat(64)}`), 'accepted')
  assert.match(refused(`a: ${'['.repeat(65)}${']'.repeat(65)}`), /nested too deeply/)
  assert.match(refused(`${'- '.repeat(2000)}a`), /nested too deeply/)
  assert.match(refused(`description: ${'x'.repeat(9000)}`), /not closed by a line --- within 8 KiB/)
})

test('a field with a name that is special in JavaScript is an ordinary field', () => {
  const { fields } = readFrontMatter('---\n__proto__:\n  name: evil\nname: good\n---\nText', 'SKILL.md')

  assert.equal(fields.get('name'), 'good')
  assert.equal(({} as { name?: string }).name, undefined)
})
