"""chat.py APP BASE_URL MODEL: what an application does with the OpenAI SDK, under the instrumentation that APP names.

APP is genai-openai, openai-v2, openinference, openllmetry, or litellm (no instrumentation here: the proxy at BASE_URL has it).
OTLP is set by OTEL_* variables.
"""

import base64
import sys

app, base, model = sys.argv[1:4]


def instrument():
    if app == "litellm":
        return lambda: None
    if app == "openllmetry":
        import os

        from traceloop.sdk import Traceloop

        Traceloop.init(app_name="app", api_endpoint=os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"], disable_batch=False, telemetry_enabled=False)
        from opentelemetry import trace

        return lambda: trace.get_tracer_provider().force_flush()
    from opentelemetry import _logs, metrics, trace
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    traces, logs = TracerProvider(), LoggerProvider()
    meters = MeterProvider(metric_readers=[PeriodicExportingMetricReader(OTLPMetricExporter())])
    traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
    trace.set_tracer_provider(traces)
    _logs.set_logger_provider(logs)
    metrics.set_meter_provider(meters)
    if app == "genai-openai":
        from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
    elif app == "openai-v2":
        from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor
    else:
        from openinference.instrumentation.openai import OpenAIInstrumentor
    OpenAIInstrumentor().instrument()
    return lambda: [p.shutdown() for p in (traces, logs, meters)]


flush = instrument()

import openai  # noqa: E402  after the instrumentation

from texts import answered, finish, text  # noqa: E402

client = openai.OpenAI(base_url=base, api_key="sk-" + "CNRYkey7f3a91" * 2, max_retries=0)
tools = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": text("tool-description"),
            "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": text("parameter")}}},
        },
    }
]
history = [
    {"role": "system", "content": text("system")},
    {"role": "user", "content": text("user")},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "%s"}' % text("arguments").replace("\n", " ")}}],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": text("tool-result")},
]


def usage(answer, said):
    answered(answer.model, answer.usage.prompt_tokens, answer.usage.completion_tokens, said)


answer = client.chat.completions.create(model=model, messages=history, tools=tools, max_tokens=40, stop=[text("stop")], extra_headers={"x-note": text("header").replace("\n", " ")})
usage(answer, [c.message.content or "" for c in answer.choices])
answer = client.chat.completions.create(model=model, messages=[{"role": "user", "content": text("choices")}], max_tokens=40, n=2)
usage(answer, [c.message.content or "" for c in answer.choices])
image = "data:image/png;base64," + base64.b64encode(text("image").encode() * 20).decode()
answer = client.chat.completions.create(
    model=model,
    messages=[{"role": "user", "content": [{"type": "text", "text": text("part")}, {"type": "image_url", "image_url": {"url": image}}]}],
    max_tokens=40,
    extra_body={"metadata": {"note": text("metadata")}},
)
usage(answer, [c.message.content or "" for c in answer.choices])

said, last = "", None
for chunk in client.chat.completions.create(
    model=model, messages=history, tools=tools, max_tokens=40, stream=True, stream_options={"include_usage": True}
):
    if chunk.choices and chunk.choices[0].delta.content:
        said += chunk.choices[0].delta.content
    last = chunk if chunk.usage else last
usage(last, [said])

try:  # the server echoes the name in its error, and the SDK in its exception. At a comma LiteLLM would ask several models
    client.chat.completions.create(model=text("model").replace(",", ""), messages=[{"role": "user", "content": text("refused")}])
    raise SystemExit("a model of that name answered")
except openai.APIStatusError:
    pass
flush()
finish()
