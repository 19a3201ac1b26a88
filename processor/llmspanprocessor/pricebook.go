package llmspanprocessor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/interval"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/cost"
	"github.com/otelcol-llm/otelcol-llm/processor/llmspanprocessor/internal/metadata"
)

// maxPriceFile is the largest file of prices, in bytes.
const maxPriceFile = 4 << 20

// pricebook holds the price table of the moment: of the configuration, or of a file that is read again when it changes. A change that
// cannot be read leaves the table as it was.
type pricebook struct {
	file      string
	loop      interval.Loop // looks whether the file changes
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder

	table atomic.Pointer[cost.Table]
	seen  string // modification time and size of what was read, of the one goroutine that looks

	mu    sync.Mutex // guards named
	named map[string]struct{}
}

// maxNamed bounds the models without a price that are named in the log.
const maxNamed = 1000

// newPricebook returns a book, nil when no prices are configured.
func newPricebook(c *PricesConfig, logger *zap.Logger, tb *metadata.TelemetryBuilder) (*pricebook, error) {
	if c.File == "" && len(c.Models) == 0 {
		return nil, nil
	}
	b := &pricebook{file: c.File, logger: logger, telemetry: tb, named: map[string]struct{}{}}
	b.loop = interval.Loop{Every: c.ReloadInterval, Run: b.look}
	if b.file == "" {
		t, err := c.table()
		b.table.Store(t)
		return b, err
	}
	return b, nil
}

// start reads the file, and from then on looks whether it changes.
func (b *pricebook) start() error {
	if b == nil || b.file == "" {
		return nil
	}
	if err := b.read(); err != nil {
		return fmt.Errorf("prices::file: %w", err)
	}
	b.loop.Start()
	return nil
}

// stop ends the looking. It is safe twice and without start.
func (b *pricebook) stop() {
	if b != nil {
		b.loop.Stop()
	}
}

// look reads the file when it has changed since it was read, or tried.
func (b *pricebook) look(ctx context.Context) {
	if s := b.state(); s == "" || s == b.seen {
		return
	}
	outcome := "ok"
	if err := b.read(); err != nil {
		outcome = "failed"
		b.logger.Warn("the changed file of prices cannot be used; the prices before it stay", zap.String("file", b.file), zap.Error(err))
	} else {
		b.logger.Info("prices were read again", zap.String("file", b.file))
	}
	b.telemetry.ProcessorLlmspanPriceReloads.Add(ctx, 1, metric.WithAttributes(attribute.String("outcome", outcome)))
}

// state is the file's modification time and size, "" when it is not there: a file that is being replaced.
func (b *pricebook) state() string {
	info, err := os.Stat(b.file)
	if err != nil {
		return ""
	}
	return fmt.Sprint(info.ModTime().UnixNano(), info.Size())
}

func (b *pricebook) read() error {
	b.seen = b.state()
	t, err := readPrices(b.file)
	if err != nil {
		return err
	}
	b.table.Store(t)
	return nil
}

// readPrices reads a file of prices: currency and models, as in the configuration.
func readPrices(file string) (*cost.Table, error) {
	if info, err := os.Stat(file); err == nil && info.Size() > maxPriceFile {
		return nil, fmt.Errorf("%q is larger than %d bytes", file, maxPriceFile)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r, err := confmap.NewRetrievedFromYAML(data)
	if err != nil {
		return nil, fmt.Errorf("%q is no YAML: %w", file, err)
	}
	conf, err := r.AsConf()
	if err != nil {
		return nil, fmt.Errorf("%q must have currency and models, as prices in the configuration has: %w", file, err)
	}
	c := PricesConfig{Currency: "USD", ReloadInterval: time.Second}
	if err := conf.Unmarshal(&c); err != nil {
		return nil, fmt.Errorf("%q: %w", file, err)
	}
	if c.File != "" {
		return nil, fmt.Errorf("%q: file: a file of prices cannot name another", file)
	}
	if err := confmap.Validate(&c); err != nil {
		return nil, fmt.Errorf("%q: %w", file, err)
	}
	t, err := c.table()
	if t == nil && err == nil {
		err = errors.New("models: must list at least one")
	}
	if err != nil {
		return nil, fmt.Errorf("%q: %w", file, err)
	}
	return t, nil
}

// unpriced names each model without a price once.
func (b *pricebook) unpriced(models map[string]int) {
	if len(models) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for m := range models {
		if _, ok := b.named[m]; ok || len(b.named) >= maxNamed {
			continue
		}
		b.named[m] = struct{}{}
		b.logger.Warn("no price for a model; its requests are counted in llm.requests.unpriced and are in no cost", zap.String("model", m))
	}
}
