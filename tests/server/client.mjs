// OpenAI's official client for Node against the server at BASE_URL; prints what it got as JSON.
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.env.BASE_URL, apiKey: "unused", maxRetries: 0 });
const messages = [{ role: "user", content: "Colours?" }];
const found = {};

const whole = await client.chat.completions.create({ model: "tiny", messages });
found.whole = whole.choices[0].message.content;
found.usage = whole.usage;

const stream = await client.chat.completions.create({
  model: "tiny",
  messages,
  stream: true,
  stream_options: { include_usage: true },
});
found.streamed = "";
found.roles = [];
for await (const chunk of stream) {
  found.streamed += chunk.choices[0]?.delta?.content ?? "";
  if (chunk.choices[0]?.delta?.role) found.roles.push(chunk.choices[0].delta.role);
  found.finish = chunk.choices[0]?.finish_reason ?? found.finish;
  found.streamedUsage = chunk.usage ?? null;
}

const runner = client.chat.completions.stream({ model: "tiny", messages });
found.helper = await runner.finalContent();

const completion = await client.completions.create({ model: "tiny", prompt: "<|im_start|>", max_tokens: 5 });
found.completion = completion.choices[0].text;

found.models = [];
for await (const model of client.models.list()) found.models.push(model.id);

try {
  await client.chat.completions.create({ model: "tiny", messages, temperature: 3 });
} catch (error) {
  found.refused = [error.constructor.name, error.status, error.param];
}

const aborted = await client.chat.completions.create({ model: "tiny", messages, stream: true });
for await (const _ of aborted) {
  aborted.controller.abort();
  break;
}

console.log(JSON.stringify(found));
