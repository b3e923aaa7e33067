import { openAiChatDialect } from './openai-chat.ts'
import { dialectContract } from '../../../test/contracts/dialect-contract.ts'

dialectContract(openAiChatDialect())
