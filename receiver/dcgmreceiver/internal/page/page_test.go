package page

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func load(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return b
}

func device(t *testing.T, r *gpu.Reading, id string) *gpu.DeviceReading {
	t.Helper()
	for i := range r.Devices {
		if r.Devices[i].Device.ID == id {
			return &r.Devices[i]
		}
	}
	require.Fail(t, "no device "+id)
	return nil
}

func values(d *gpu.DeviceReading, f gpu.Field) (out []gpu.Value) {
	for _, s := range d.Samples {
		if s.Field == f {
			out = append(out, s.Value)
		}
	}
	return out
}

func TestRealFragments(t *testing.T) {
	got, st := NewReader(gpu.NewPlan(nil, nil), time.Second).Read(load(t, "issues.prom"), now)
	assert.Zero(t, st.BadLines)
	assert.Equal(t, 14, st.Families)

	mig := device(t, got, "GPU-00000000-0000-0000-0000-000000000001/gi/7")
	assert.Equal(t, gpu.Device{
		ID: "GPU-00000000-0000-0000-0000-000000000001/gi/7", Parent: "GPU-00000000-0000-0000-0000-000000000001",
		Index: 0, Minor: 0, Instance: 7, Name: "nvidia0", Model: "NVIDIA H100 80GB HBM3", Driver: "535.129.03",
		BusID: "00000000:1A:00.0", Profile: "1g.10gb", Host: "node-a",
	}, mig.Device)
	assert.Equal(t, []gpu.Owner{{Namespace: "ns-a", Pod: "text-embedding-predictor-0", Container: "kserve-container"}}, mig.Owners)
	assert.Empty(t, device(t, got, "GPU-00000000-0000-0000-0000-000000000001/gi/8").Owners, "an instance nobody holds")

	ada := device(t, got, "GPU-00000000-0000-0000-0000-000000000021")
	assert.Equal(t, "dcgm-exporter-x", ada.Device.Host, "hostname is the newer spelling of Hostname")
	assert.Equal(t, []gpu.Value{gpu.Int(46)}, values(ada, 207))
	assert.Equal(t, []gpu.Value{gpu.Int(11275)}, values(ada, 251))
	assert.Equal(t, []gpu.Value{gpu.Double(300)}, values(device(t, got, "GPU-00000000-0000-0000-0000-000000000012"), 160))
}

func TestNewNamesDRAAndFaults(t *testing.T) {
	r := NewReader(gpu.NewPlan(nil, nil), time.Second)
	got, st := r.Read(load(t, "renamed.prom"), now)
	assert.Equal(t, 2, st.BadLines, "a bad line costs itself only")
	d := device(t, got, "GPU-7")
	assert.Equal(t, []gpu.Value{gpu.Int(77)}, values(d, 203))
	assert.Equal(t, []gpu.Value{gpu.Double(312.5)}, values(d, 157), "a timestamp is no part of the number")
	assert.Equal(t, "580.1", d.Device.Driver)
	assert.Equal(t, "165", d.Device.Serial)
	assert.Equal(t, []gpu.Owner{{Namespace: "team", Pod: "job", Container: "main"}}, d.Owners, "not the exporter's own pod")
	assert.True(t, d.HealthKnown)
	assert.Equal(t, []gpu.Health{{System: "thermal", Result: 10}}, d.Health)
	var links []int
	for _, s := range d.Samples {
		if s.Field == 1508 {
			links = append(links, s.Link)
		}
	}
	assert.Equal(t, []int{4, 5}, links)
	m := device(t, got, "MIG-3")
	assert.Equal(t, "GPU-7", m.Device.Parent)
	assert.Equal(t, 9, m.Device.Instance)
	assert.Len(t, got.Devices, 2, "an NVSwitch is not a GPU")
}

func TestXIDGaugeCountsChangesOnly(t *testing.T) {
	r := NewReader(gpu.NewPlan(nil, nil), time.Second)
	xid := func(n string) []gpu.Event {
		got, _ := r.Read([]byte(`DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-1"} `+n+"\n"), now)
		return got.Events
	}
	assert.Empty(t, xid("31"), "the first value may be of any age")
	assert.Empty(t, xid("31"), "a repeat cannot be told from no error")
	assert.Equal(t, []gpu.Event{{DeviceID: "GPU-1", At: now, XID: 79}}, xid("79"))
	assert.Empty(t, xid("0"))
	assert.Len(t, xid("79"), 1)
	assert.Empty(t, xid("9223372036854775794"), "a blank is no XID")
}

func TestASharedGPUIsOneDevice(t *testing.T) {
	plan := gpu.NewPlan(nil, nil)
	got, _ := NewReader(plan, time.Second).Read(load(t, "shared.prom"), now)
	require.Len(t, got.Devices, 1)
	assert.Len(t, got.Devices[0].Owners, 2)
	rep := gpu.NewTracker(plan).Take(got)
	assert.Equal(t, 2, rep.Dropped[gpu.ReasonDuplicate], "each value once, so that sums do not double")
}

func TestSharedCorpusPage(t *testing.T) {
	dir := os.Getenv("OTELCOL_LLM_SHARED")
	if dir == "" {
		dir = "../../../../../shared"
	}
	b, err := os.ReadFile(filepath.Join(dir, "corpus/metrics/dcgm_exporter_fragments_real.prom"))
	if err != nil {
		t.Skip("set OTELCOL_LLM_SHARED to the folder that holds corpus/: ", err)
	}
	plan := gpu.NewPlan(nil, nil)
	got, st := NewReader(plan, time.Second).Read(b, now)
	assert.Zero(t, st.BadLines)
	assert.Equal(t, []gpu.Value{gpu.Int(139)}, values(device(t, got, "GPU-00000000-0000-0000-0000-000000000030"), 100), "a space after the comma")
	rep := gpu.NewTracker(plan).Take(got)
	assert.Equal(t, 1, rep.Dropped[gpu.ReasonNotSupported], "the leaked blank")
}

func TestParseLine(t *testing.T) {
	for _, tc := range []struct {
		in   string
		ok   bool
		want gpu.Value
		lbl  string
	}{
		{`a 1`, true, gpu.Int(1), ""},
		{`a{} 1.5`, true, gpu.Double(1.5), ""},
		{`a{x="1",} 2`, true, gpu.Int(2), "1"},
		{`a{ x = "a\"b\\c\nd" } 2 1700000000 # {t="1"} 3`, true, gpu.Int(2), "a\"b\\c\nd"},
		{`a{x="un`, false, gpu.Value{}, ""},
		{`a{x=1} 2`, false, gpu.Value{}, ""},
		{`a{x="1" y="2"} 2`, false, gpu.Value{}, ""},
		{`a{x="1"}`, false, gpu.Value{}, ""},
		{`a{x="1"} -nan(ind)`, false, gpu.Value{}, ""},
		{`{x="1"} 1`, false, gpu.Value{}, ""},
		{`1a 1`, false, gpu.Value{}, ""},
		{`a 1e400`, false, gpu.Value{}, ""},
	} {
		var l line
		require.Equal(t, tc.ok, parse(tc.in, &l), tc.in)
		if tc.ok {
			assert.Equal(t, tc.want, l.value, tc.in)
			assert.Equal(t, tc.lbl, l.get("x"), tc.in)
		}
	}
}

// FuzzRead: whatever the page, every value is used or dropped for a reason, no sentinel comes out and counters never
// run backwards within a stream.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"issues.prom", "shared.prom", "renamed.prom"} {
		f.Add(load(f, name))
	}
	f.Add([]byte(`DCGM_FI_PROF_PCIE_TX_BYTES{UUID="GPU-1"} 1e300`))
	f.Add([]byte("DCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-1\",gpu=\"99999999999999999999\"} 1\n{}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		plan := gpu.NewPlan(nil, nil)
		r, tr := NewReader(plan, time.Second), gpu.NewTracker(plan)
		for i := range 2 {
			at := now.Add(time.Duration(i) * time.Second)
			reading, st := r.Read(text, at)
			series := 0
			for l := range strings.Lines(string(text)) {
				if l = strings.TrimSpace(l); l != "" && l[0] != '#' {
					series++
				}
			}
			if st.Families+st.BadLines > series {
				t.Fatalf("%d series and %d bad lines out of %d", st.Families, st.BadLines, series)
			}
			rep := tr.Take(reading)
			sum := rep.Used
			for _, n := range rep.Dropped {
				sum += n
			}
			if sum != rep.Values {
				t.Fatalf("%d values, %d accounted for", rep.Values, sum)
			}
			for _, d := range rep.Devices {
				for _, p := range d.Points {
					if p.Metric.Kind != gpu.KindCounter && p.Value.Check() != gpu.ReasonOK && !p.Value.IsInt {
						t.Fatalf("%s: %v", p.Metric.Name, p.Value)
					}
					if p.Start.After(at) {
						t.Fatalf("%s starts in the future", p.Metric.Name)
					}
				}
			}
		}
	})
}
