"""gateway.py ENGINE_URL PORT: an HTTP gateway as many teams write one, FastAPI passing requests through httpx, with OpenTelemetry's
instrumentations of both on. The exporter is set by OTEL_* variables. The answer's header x-trace-id names the request's trace.
"""

import sys

import httpx
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

engine, port = sys.argv[1], int(sys.argv[2])
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
HTTPXClientInstrumentor().instrument()
app = FastAPI()
client = httpx.AsyncClient(base_url=engine, timeout=300, limits=httpx.Limits(max_connections=None))


@app.get("/ready")
async def ready():
    return {}


@app.post("/v1/{path:path}")
async def forward(path: str, request: Request):
    upstream = client.build_request(
        "POST", "/v1/" + path, content=await request.body(), headers={"content-type": "application/json"}
    )
    answer = await client.send(upstream, stream=True)

    async def body():
        try:
            async for part in answer.aiter_raw():
                yield part
        finally:
            # Runs too when the caller has gone; the engine then aborts the request.
            await answer.aclose()

    return StreamingResponse(
        body(),
        status_code=answer.status_code,
        media_type=answer.headers.get("content-type"),
        headers={"x-trace-id": f"{trace.get_current_span().get_span_context().trace_id:032x}"},
    )


FastAPIInstrumentor.instrument_app(app, excluded_urls="ready")
uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")
provider.shutdown()
