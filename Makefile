# otelcol-llm. `make` prints what there is.

# One set of build flags for ocb, tests, tools and linter: with other values nearly every package compiles a second time.
# cgo is for the dcgm receiver (docs/decisions/0004-cgo-for-dcgm-only.md); the module also builds with CGO_ENABLED=0.
export CGO_ENABLED := 1
export GOFLAGS := -buildvcs=false -trimpath -tags=grpcnotrace

BIN      := bin/otelcol-llm
SHELL    := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
FUZZTIME  ?= 30s
BENCHTIME ?= 1s
BENCHROUNDS ?= 3
# What `make replay` sends: OTLP/JSON lines, as the file exporter writes them. Files that are given are moved in time together.
FILES     ?=
ENDPOINT  ?= http://127.0.0.1:4318

TOOLS    := .cache/tools
OCB      := go tool -modfile=tools/ocb/go.mod builder
LINT     := $(TOOLS)/golangci-lint
# -z lazy: go-dcgm refers to functions that a driver's library may lack; they are looked up when called, not at start.
LDFLAGS  := -s -w -extldflags=-Wl,-z,lazy

# Everything that can change the binary; tests cannot.
SOURCES  := $(shell find . \( -name '.?*' -o -name '_*' -o -name testdata -o -name tools \) -prune -o \
            -type f \( -name '*.go' ! -name '*_test.go' -o -path './distributions/*.yaml' \) -print)

.PHONY: help run demo replay test test-bill test-e2e test-jaeger test-engine test-sdk test-kubernetes bench-tiers unit race bench lint fmt layers validate generate check-generated golden fuzz build all clean prerequisites

help: ## print this
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

prerequisites:
	@scripts/prerequisites

build: $(BIN) ## build bin/otelcol-llm (the first time 5 to 15 minutes, then seconds)

# ocb leaves an empty folder in the temporary directory at every run, so it gets one of its own. The binary is put in place by a
# rename: the one that runs may still be in use.
$(BIN): builder-config.yaml go.mod go.sum tools/ocb/go.mod $(SOURCES) | prerequisites
	@mkdir -p bin .cache/tmp
	TMPDIR="$(CURDIR)/.cache/tmp" $(OCB) --config builder-config.yaml --ldflags '$(LDFLAGS)'
	@cp _build/otelcol-llm $(BIN).new && mv $(BIN).new $(BIN)

run: build ## build and start builtin:standalone; says where to point an engine and where to look
	@scripts/run $(BIN)

demo: build ## build and start builtin:demo: a simulated installation with a fault every two minutes
	$(BIN) --config builtin:demo

replay: | prerequisites ## send recorded OTLP/JSON lines to a running collector: make replay FILES="a.jsonl b.jsonl" [ENDPOINT=url]
	@mkdir -p bin
	go build -o bin/llmreplay ./cmd/llmreplay
ifneq ($(strip $(FILES)),)
	bin/llmreplay --rebase --endpoint "$(ENDPOINT)" $(FILES)
else
	@for f in cmd/llmreplay/samples/*.jsonl; do echo "$$f"; bin/llmreplay --rebase --endpoint "$(ENDPOINT)" "$$f"; done
endif

test: layers validate race ## everything that must hold: layers, shipped configurations, unit tests with the race detector

# Last in `make test`, so that its output ends with the test runner's own lines.
race:
	OTELCOL_LLM_BIN="$(CURDIR)/$(BIN)" go test -race ./...

unit: ## unit tests without the race detector, for a quick look
	go test ./...

validate: build ## the built binary accepts every shipped configuration and every one in the documentation
	OTELCOL_LLM_BIN="$(CURDIR)/$(BIN)" go test -count=1 -run '^TestValidate' ./distributions/otelcol-llm

# Real backends beside Debian's Prometheus and Alertmanager, in a tools module of their own (half a minute).
BACKENDS := .cache/backends/victoria-metrics .cache/backends/victoria-logs
.cache/backends/victoria-metrics: PACKAGE := github.com/VictoriaMetrics/VictoriaMetrics/app/victoria-metrics
.cache/backends/victoria-logs: PACKAGE := github.com/VictoriaMetrics/VictoriaLogs/app/victoria-logs
$(BACKENDS): tools/backends/go.mod tools/backends/go.sum | prerequisites
	@mkdir -p .cache/backends
	go build -modfile=tools/backends/go.mod -ldflags='-s -w' -o $@ $(PACKAGE)

# Five to eight minutes. Needs the packages prometheus and prometheus-alertmanager; their services need not run.
test-e2e: build $(BACKENDS) ## the built binary under simulated and recorded traffic, compared with the truth on real backends
	OTELCOL_LLM_BIN="$(CURDIR)/$(BIN)" OTELCOL_LLM_BACKENDS="$(CURDIR)/.cache/backends" go test -count=1 -timeout 20m -tags=grpcnotrace,e2e -p 1 -v ./test/e2e ./test/tiers

# Twelve minutes of compiling, so it is no part of CI.
.cache/backends/jaeger: tools/jaeger/go.mod tools/jaeger/go.sum | prerequisites
	@mkdir -p .cache/backends
	CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath" go build -modfile=tools/jaeger/go.mod -ldflags='-s -w' -o $@ github.com/jaegertracing/jaeger/cmd/jaeger

test-jaeger: build $(BACKENDS) .cache/backends/jaeger ## the end-to-end proof with Jaeger beside the other backends: every exemplar's trace is found there (not part of CI)
	OTELCOL_LLM_BIN="$(CURDIR)/$(BIN)" OTELCOL_LLM_BACKENDS="$(CURDIR)/.cache/backends" OTELCOL_LLM_JAEGER="$(CURDIR)/.cache/backends/jaeger" \
		go test -count=1 -timeout 20m -tags=grpcnotrace,e2e -v -run '^TestBackendsHoldTheTruth$$' ./test/e2e

# Needs PyPI, 7 GB of disk, and ten minutes on two cores after the installation. The table in docs/verification.md comes from it.
test-engine: build ## a real vLLM (CPU, tiny random model) behind a gateway: what came out against the client's truth (not part of CI)
	test/engine/install .cache/engine
	OTELCOL_LLM_BIN="$(CURDIR)/$(BIN)" OTELCOL_LLM_ENGINE="$(CURDIR)/.cache/engine" go test -count=1 -timeout 30m -tags=grpcnotrace,engine -v ./test/engine

# Needs PyPI, npm, Node.js 20 or newer and 2 GB of disk.
test-sdk: build ## live SDKs with content capture on send to the binary: no text comes out (not part of CI)
	test/sdk/install .cache/sdk
	OTELCOL_LLM_BIN="$(CURDIR)/$(BIN)" OTELCOL_LLM_SDK="$(CURDIR)/.cache/sdk" go test -count=1 -timeout 30m -tags=grpcnotrace,sdk -v ./test/sdk

# Throughput and sizing of both tiers (docs/deployment.md); ten minutes.
bench-tiers: build ## two tiers at fixed rates: nothing lost, CPU and memory of each
	OTELCOL_LLM_BIN="$(CURDIR)/$(BIN)" OTELCOL_LLM_SIZING=1 go test -count=1 -timeout 30m -tags=grpcnotrace,e2e -v -run '^TestSizing' ./test/tiers

# etcd and Kubernetes' API server in a tools module of their own: five minutes to build, a gigabyte of build cache. Without cgo, as they are
# released.
KUBEAPI := .cache/kubeapi/etcd .cache/kubeapi/apiserver
$(KUBEAPI): .cache/kubeapi/%: tools/kubeapi/go.mod tools/kubeapi/%/main.go | prerequisites
	@mkdir -p .cache/kubeapi
	cd tools/kubeapi && CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath" go build -ldflags='-s -w' -o "$(CURDIR)/$@" ./$*

test-kubernetes: build $(KUBEAPI) ## a real API server accepts deploy/kubernetes, and the example finds engines with it (not part of CI)
	cd tools/kubeapi && CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath" KUBEAPI_BIN="$(CURDIR)/.cache/kubeapi" \
		OTELCOL_LLM_BIN="$(CURDIR)/$(BIN)" go test -count=1 -v .

# The engine is npm's chdb, 546 MB, so this is no part of CI; the stock exporter is compiled outside the distribution, which does without.
CHDB := .cache/chdb/node_modules/chdb
$(CHDB): | prerequisites
	@mkdir -p .cache/chdb
	cd .cache/chdb && npm install --no-save --no-audit --no-fund chdb@3.4.0

test-bill: $(CHDB) ## the SQL of the daily bill, on a real ClickHouse engine behind the stock exporter, against the truth (not part of CI)
	@rm -rf .cache/bill && mkdir -p .cache/bill
	BILL_DIR="$(CURDIR)/.cache/bill" go test -count=1 -run TestWriteTheBillsRecords ./internal/recordings
	cd tools/bill && BILL_DIR="$(CURDIR)/.cache/bill" CHDB_MODULES="$(CURDIR)/.cache/chdb/node_modules" go test -count=1 -v .

layers: | prerequisites ## no core package depends on the Collector's lifecycle, a logger or a meter
	@scripts/layers

# The comparison with passing on and with stock components is a module of its own (docs/performance.md); ten minutes.
bench: ## benchmarks with allocations (BENCHTIME=1s), and our chain beside stock ones (BENCHROUNDS=3)
	go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) $$(scripts/having '^func Benchmark' | grep -v '^./internal/bench')
	cd internal/bench/chains && OTELCOL_LLM_BENCH_ROUNDS=$(BENCHROUNDS) go test -count=1 -timeout 60m -run '^TestCompare' -v .

# The minimising that follows every find is cut short: on lines of many kilobytes it would use up all the time there is.
fuzz: ## run each fuzz test for FUZZTIME (30s)
	@for p in $$(scripts/having '^func Fuzz'); do \
		for f in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' $$p/*_test.go); do \
			echo "$$p $$f"; \
			go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s $$p; \
		done; \
	done

golden: ## write the golden files again; review the difference like code
	go test $$(scripts/having 'flag\.Bool\("update"') -update

generate: ## write internal/metadata and documentation.md from every metadata.yaml
	go generate ./...

# It compares contents, not commits, so that it works on a tree with changes.
check-generated: ## what is generated is what metadata.yaml says
	@scripts/check-generated

$(LINT): tools/lint/go.mod tools/lint/go.sum | prerequisites
	@mkdir -p $(TOOLS)
	go build -modfile=tools/lint/go.mod -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

lint: $(LINT) ## golangci-lint, pinned in tools/lint (.golangci.yml says what it checks)
	$(LINT) run ./...

fmt: $(LINT) ## format the code (gofumpt, import groups)
	$(LINT) fmt ./...

all: lint check-generated test ## what has to pass before a change is merged

clean: ## remove what was built
	rm -rf _build bin .cache
