package recordings_test

import (
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
)

// TestWriteTheBillsRecords writes a day's records and the bill that they must add up to, for make test-bill.
func TestWriteTheBillsRecords(t *testing.T) {
	dir := os.Getenv("BILL_DIR")
	if dir == "" {
		t.Skip("BILL_DIR is not set: make test-bill sets it")
	}
	in, truth := day(3, 400)
	ld := plog.NewLogs()
	records := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for _, lr := range pipeline(t, businessConfig(t), in).records {
		lr.CopyTo(records.AppendEmpty())
	}
	raw, err := (&plog.JSONMarshaler{}).MarshalLogs(ld)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "records.json"), raw, 0o600))
	type line struct{ Day, Team, Model, Currency, Requests, Input, Output, Cost string }
	type who struct{ team, model string }
	sums := map[who]*struct {
		requests, input, output int64
		cost                    *big.Rat
	}{}
	for k, n := range truth.requests {
		w := who{k.team, k.model}
		if sums[w] == nil {
			sums[w] = &struct {
				requests, input, output int64
				cost                    *big.Rat
			}{cost: new(big.Rat)}
		}
		s := sums[w]
		s.requests, s.input, s.output = s.requests+n, s.input+truth.input[k], s.output+truth.output[k]
		if c := truth.cost[k]; c != nil {
			s.cost.Add(s.cost, c)
		}
	}
	var lines []line
	for w, s := range sums {
		l := line{
			"2026-11-30", w.team, w.model, "USD", strconv.FormatInt(s.requests, 10), strconv.FormatInt(s.input, 10), strconv.FormatInt(s.output, 10),
			strings.TrimRight(strings.TrimRight(s.cost.FloatString(12), "0"), "."),
		}
		if prices[w.model].input == "" {
			l.Currency, l.Cost = "", "0"
		}
		lines = append(lines, l)
	}
	sort.Slice(lines, func(i, j int) bool {
		return lines[i].Team < lines[j].Team || (lines[i].Team == lines[j].Team && lines[i].Model < lines[j].Model)
	})
	raw, err = json.Marshal(lines)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "truth.json"), raw, 0o600))
}
