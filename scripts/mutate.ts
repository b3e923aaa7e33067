// Lists the small defects (mutants) that can be added to a source file; each replaces a
// piece of text. They imitate human mistakes: an inverted condition, a bound that is off by
// one, a missing call, a wrong flag. Types, messages, logs and imports are not changed.

import ts from 'typescript'

export type Mutant = { file: string; line: number; change: string; start: number; end: number; text: string }

const swaps: Readonly<Record<string, string>> = {
  '===': '!==',
  '!==': '===',
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '&&': '||',
  '||': '&&',
  '??': '&&',
}

export function mutantsOf(file: string, source: string): Mutant[] {
  const tree = ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true)
  const found: Mutant[] = []
  const add = (node: ts.Node, text: string, name: string) => {
    const start = node.getStart(tree)
    const before = source.slice(start, node.getEnd()).replace(/\s+/g, ' ').slice(0, 60)
    const line = tree.getLineAndCharacterOfPosition(start).line + 1
    found.push({ file, line, change: `${name}: ${before}`, start, end: node.getEnd(), text })
  }
  const visit = (node: ts.Node): void => {
    if (isLeftAlone(node, tree)) return
    if (ts.isBinaryExpression(node)) {
      const operator = node.operatorToken
      const swapped = swaps[operator.getText(tree)]
      if (swapped !== undefined)
        add(operator, swapped, `${operator.getText(tree)} → ${swapped} in ${shortText(node, tree)}`)
      const isCount = ts.isNumericLiteral(node.right) && ['+', '-'].includes(operator.getText(tree))
      if (isCount) add(node.right, '0', `no ${operator.getText(tree)} in ${shortText(node, tree)}`)
    }
    if (ts.isIfStatement(node)) add(node.expression, 'false', 'if never')
    if (ts.isWhileStatement(node) && node.expression.kind !== ts.SyntaxKind.TrueKeyword)
      add(node.expression, 'false', 'while never')
    if (ts.isConditionalExpression(node)) add(node.condition, `!(${node.condition.getText(tree)})`, '?: turned round')
    if (node.kind === ts.SyntaxKind.TrueKeyword && ts.isExpression(node)) add(node, 'false', 'true → false')
    if (node.kind === ts.SyntaxKind.FalseKeyword && ts.isExpression(node)) add(node, 'true', 'false → true')
    if (ts.isExpressionStatement(node) && isCallLike(node.expression)) add(node, ';', 'left out')
    ts.forEachChild(node, visit)
  }
  visit(tree)
  return found
}

function shortText(node: ts.Node, tree: ts.SourceFile): string {
  return node.getText(tree).replace(/\s+/g, ' ').slice(0, 50)
}

function isCallLike(expression: ts.Expression): boolean {
  const inner = ts.isAwaitExpression(expression) || ts.isVoidExpression(expression) ? expression.expression : expression
  if (ts.isBinaryExpression(inner)) return inner.operatorToken.kind === ts.SyntaxKind.EqualsToken
  return ts.isCallExpression(inner)
}

/** Types, imports, logs and the making of errors: a defect there is not about what the code does. */
function isLeftAlone(node: ts.Node, tree: ts.SourceFile): boolean {
  if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isInterfaceDeclaration(node)) return true
  if (ts.isTypeAliasDeclaration(node)) return true
  if (ts.isNewExpression(node)) return node.expression.getText(tree).endsWith('Error')
  if (ts.isExpressionStatement(node)) return /^(this\.)?(parts\.|options\.)?log\b/.test(node.getText(tree))
  return false
}
