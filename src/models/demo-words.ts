// The sentences of the demo model in English and Chinese. demo-plan.ts decides which of them
// are used.

export type Language = 'en' | 'zh'

/** The phrases that the demo model understands; `help` prints them. */
export const demoPhrases: readonly { en: string; zh: string; does: { en: string; zh: string } }[] = [
  { en: 'help', zh: '帮助', does: { en: 'prints this list', zh: '显示这个列表' } },
  { en: 'what time is it', zh: '现在几点', does: { en: 'calls current_time', zh: '调用 current_time' } },
  {
    en: 'remember that <text>',
    zh: '记住 <内容>',
    does: { en: 'calls remember_note, which asks you first', zh: '调用 remember_note（需要你确认）' },
  },
  {
    en: 'search notes for <words>, what did I note',
    zh: '查笔记 <词>',
    does: { en: 'calls search_notes', zh: '调用 search_notes' },
  },
  {
    en: 'send <text> to <id> on feishu',
    zh: '发飞书给 <id>:<内容>',
    does: { en: 'calls send_feishu_message, which asks you first', zh: '调用 send_feishu_message（需要你确认）' },
  },
  {
    en: 'use the tool <name> with <json>',
    zh: '使用工具 <名称> <json>',
    does: { en: 'calls any tool that this run may use', zh: '调用本次运行可用的任意工具' },
  },
  {
    en: 'parallel',
    zh: '同时',
    does: { en: 'calls two tools at once', zh: '一次调用两个工具' },
  },
  { en: 'think about <anything>', zh: '思考 <任何事>', does: { en: 'reasons before it answers', zh: '先推理再回答' } },
  { en: 'count to <number>', zh: '数到 <数字>', does: { en: 'counts', zh: '数数' } },
  { en: 'a long answer', zh: '长文', does: { en: 'talks for a while', zh: '输出较长的内容' } },
  { en: 'a New Year’s wish', zh: '新年祝福', does: { en: 'wishes you well', zh: '写一句祝福' } },
]

export type ToolReport = { name: string; content: string; kind: 'succeeded' | 'failed' | 'denied' | 'unknown' }

export type DemoSentences = {
  introduction: string
  help(): string
  heard(said: string): string
  nothingSaid: string
  greeting: string
  thoughts(said: string): string
  calling(names: string[]): string
  unavailable(name: string, configure: string): string
  badArguments(name: string): string
  noRecipient: string
  wish: string
  long: string
  tool(report: ToolReport): string
  toolsDone: string
}

/** Says how to enable a tool that is not offered. */
export function configureAdvice(name: string, language: Language): string {
  if (name === 'send_feishu_message') {
    return language === 'zh'
      ? '请设置 FEISHU_APP_ID 和 FEISHU_APP_SECRET 后重启服务。'
      : 'Set FEISHU_APP_ID and FEISHU_APP_SECRET and start the server again.'
  }
  return language === 'zh'
    ? '请检查智能体的工具列表，或在 POLYLOG_MCP_CONFIG 中添加提供它的 MCP 服务器。'
    : 'Look at the tools of the agent, or add an MCP server that has it to POLYLOG_MCP_CONFIG.'
}

const english: DemoSentences = {
  introduction:
    'I am the built-in demo model: I run offline and follow a few fixed phrases. ' +
    'To talk to a real model, set OPENAI_API_KEY, ANTHROPIC_API_KEY, GOOGLE_GENERATIVE_AI_API_KEY or OLLAMA_BASE_URL ' +
    '(and POLYLOG_MODEL=provider/model to choose one) and start the server again.',
  help: () =>
    `These are the phrases I understand:\n${demoPhrases.map((phrase) => `- “${phrase.en}”: ${phrase.does.en}`).join('\n')}`,
  heard: (said) => `You said: “${said}”. I have no better answer to that; say “help” to see what I can do.`,
  nothingSaid: 'You said nothing that I can read. Say “help” to see what I can do.',
  greeting: 'Hello! Say “help” to see what I can do.',
  thoughts: (said) =>
    `The request is: “${said}”. First I look for a phrase that I know. Then I check which tools are offered. Then I answer in one go.`,
  calling: (names) =>
    names.length === 1 ? `I am calling ${names[0]}.` : `I am calling ${names.join(' and ')} at once.`,
  unavailable: (name, configure) => `The tool ${name} is not available in this run. ${configure}`,
  badArguments: (name) => `The arguments for ${name} are not a JSON object, so I did not call it.`,
  noRecipient: 'Tell me who gets the message and what it says: “send <text> to <id> on feishu”.',
  wish: 'Happy New Year, old friend! May the year ahead be kind to you, and may what you hope for find its way to you.',
  long: 'This sentence is one of many that say very little, so that there is something to watch while it streams.',
  tool({ name, content, kind }) {
    if (kind === 'succeeded') return `${name} answered: ${content}`
    if (kind === 'denied') return `${name} was not allowed to run, so nothing was done. ${content}`
    if (kind === 'unknown') {
      return `Nobody knows whether ${name} took effect. Please check before you ask for it again. ${content}`
    }
    return `${name} failed: ${content}`
  },
  toolsDone: 'That is all I was asked to do.',
}

const chinese: DemoSentences = {
  introduction:
    '我是内置的演示模型：离线运行，只懂几种固定说法。' +
    '想使用真正的模型，请设置 OPENAI_API_KEY、ANTHROPIC_API_KEY、GOOGLE_GENERATIVE_AI_API_KEY 或 OLLAMA_BASE_URL' +
    '（并可用 POLYLOG_MODEL=provider/model 指定模型），然后重启服务。',
  help: () => `我懂这些说法：\n${demoPhrases.map((phrase) => `- “${phrase.zh}”：${phrase.does.zh}`).join('\n')}`,
  heard: (said) => `你说的是：“${said}”。我没有更好的回答；说“帮助”可以看到我会做什么。`,
  nothingSaid: '我没有读到内容。说“帮助”可以看到我会做什么。',
  greeting: '你好！说“帮助”可以看到我会做什么。',
  thoughts: (said) => `用户的请求是：“${said}”。先找出我认识的说法，再看看有哪些工具可用，然后一次回答。`,
  calling: (names) => (names.length === 1 ? `我来调用 ${names[0]}。` : `我来同时调用 ${names.join(' 和 ')}。`),
  unavailable: (name, configure) => `本次运行没有工具 ${name}。${configure}`,
  badArguments: (name) => `给 ${name} 的参数不是 JSON 对象，所以没有调用。`,
  noRecipient: '请告诉我发给谁、发什么：“发飞书给 <id>:<内容>”。',
  wish: '老朋友，新年快乐！愿你新的一年平安顺遂，所盼皆有回应，我们的情谊历久弥新。',
  long: '这句话没有说太多，只是让你在流式输出的时候有东西可看。',
  tool({ name, content, kind }) {
    if (kind === 'succeeded') return `${name} 的结果：${content}`
    if (kind === 'denied') return `${name} 没有获得许可，什么都没有执行。${content}`
    if (kind === 'unknown') return `无法确定 ${name} 是否已经生效，请先核实再重试。${content}`
    return `${name} 失败了：${content}`
  },
  toolsDone: '你要我做的都在这里了。',
}

export const demoWords: Readonly<Record<Language, DemoSentences>> = { en: english, zh: chinese }
