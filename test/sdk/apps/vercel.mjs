// vercel.mjs APP BASE_URL MODEL: what an application does with the Vercel AI SDK, its OpenTelemetry integration on.
// OTLP is set by OTEL_* variables.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const [app, base, model] = process.argv.slice(2)
// The packages are where the program was installed, not beside this file.
const installed = createRequire(pathToFileURL(process.cwd() + '/package.json'))
const load = async (name) => import(pathToFileURL(installed.resolve(name)))

const { NodeSDK } = await load('@opentelemetry/sdk-node')
const { OTLPTraceExporter } = await load('@opentelemetry/exporter-trace-otlp-http')
const sdk = new NodeSDK({ traceExporter: new OTLPTraceExporter() })
sdk.start()

const { generateText, jsonSchema, registerTelemetry, streamText, tool } = await load('ai')
const { OpenTelemetry } = await load('@ai-sdk/otel')
const { createOpenAICompatible } = await load('@ai-sdk/openai-compatible')
registerTelemetry(new OpenTelemetry())

const texts = []
const calls = []
const text = (place) => {
  const marker = `CNRY${app}${place}7f3a91`
  texts.push(marker)
  return `Please think of ${marker} when you answer,\nand say nothing about it.`
}
const answered = (usage, said) => {
  calls.push({ model, input: usage.inputTokens, output: usage.outputTokens })
  if (said.length >= 60) texts.push(said.slice(0, 60))
}

const provider = createOpenAICompatible({ name: 'sim', baseURL: base, apiKey: 'sk-' + 'CNRYkey7f3a91'.repeat(2), includeUsage: true })
const telemetry = { isEnabled: true, recordInputs: true, recordOutputs: true, functionId: 'answer' }
const tools = {
  getWeather: tool({
    description: text('tooldescription'),
    inputSchema: jsonSchema({ type: 'object', properties: { city: { type: 'string', description: text('parameter') } } }),
    execute: async () => text('toolresult'),
  }),
}
const common = { model: provider(model), tools, telemetry, experimental_telemetry: telemetry, maxOutputTokens: 40, maxRetries: 0 }

const one = await generateText({
  ...common,
  instructions: text('system'),
  prompt: text('user'),
  stopSequences: [text('stop')],
  headers: { 'x-note': text('header').replaceAll('\n', ' ') },
})
answered(one.usage, one.text)

const stream = streamText({
  ...common,
  messages: [
    { role: 'user', content: [{ type: 'text', text: text('part') }, { type: 'image', image: Buffer.from(text('image').repeat(20)), mediaType: 'image/png' }] },
    { role: 'assistant', content: text('history') },
    { role: 'user', content: text('again') },
  ],
})
let said = ''
for await (const part of stream.textStream) said += part
answered(await stream.usage, said)

try {
  // The server echoes the name in its error.
  await generateText({ ...common, model: provider(text('model')), prompt: text('refused') })
  throw new Error('a model of that name answered')
} catch (e) {
  if (e.message === 'a model of that name answered') throw e
}
await sdk.shutdown()
console.log('RESULT ' + JSON.stringify({ texts, calls }))
