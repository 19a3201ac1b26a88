package gpu

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryNameOfAFieldFindsIt(t *testing.T) {
	for name, want := range map[string]Field{
		"DCGM_FI_DEV_GPU_UTIL": 203, "DCGM_FI_DEV_GPU_UTIL_RATIO": 203, "dcgm_gpu_utilization": 203,
		"DCGM_FI_PROF_SM_ACTIVE": 1002, "DCGM_FI_PROF_SM_UTIL_RATIO": 1002, "dcgm_fi_prof_sm_active": 1002,
		"DCGM_FI_DEV_FB_USED_PERCENT": 254, "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": 112, "DCGM_FI_DRIVER_VERSION": 1,
		"DCGM_FI_DEV_SM_CLOCK_HERTZ": 1603,
	} {
		f, ok := FieldByName(name)
		require.True(t, ok, name)
		assert.Equal(t, want, f, name)
	}
	_, ok := FieldByName("DCGM_FI_DEV_GPU_UTIl")
	assert.False(t, ok)
}

func TestParseField(t *testing.T) {
	f, err := ParseField("601")
	require.NoError(t, err)
	assert.Equal(t, Field(601), f)
	for _, bad := range []string{"", "0", "-1", "70000", "DCGM_FI_NOPE"} {
		_, err := ParseField(bad)
		assert.ErrorContains(t, err, "unknown field", bad)
	}
	assert.Equal(t, "DCGM_FI_DEV_GPU_UTIL_RATIO", Field(203).String())
	assert.Equal(t, "65535", Field(65535).String())
}

func TestEveryFieldOfTheCatalogueHasAName(t *testing.T) {
	for _, m := range Catalog {
		assert.Contains(t, m.Field.String(), "DCGM_FI_", m.Field)
	}
}

func TestCatalogueIsSound(t *testing.T) {
	used := map[string]bool{}
	ranks := map[string]map[uint8]bool{}
	for i := range Catalog {
		m := &Catalog[i]
		used[m.Metric.Name] = true
		key := seriesKey(m)
		if ranks[key] == nil {
			ranks[key] = map[uint8]bool{}
		}
		assert.False(t, ranks[key][m.Rank], "two fields of one rank feed %s: %d", m.Metric.Name, m.Field)
		ranks[key][m.Rank] = true
		if m.How == HowRate {
			assert.Equal(t, KindCounter, m.Metric.Kind, m.Field)
		}
	}
	for _, m := range Metrics {
		switch m.Name {
		case MetricStatus, MetricHealth, MetricXID, MetricSuspect, MetricAllocation, MetricCount, MetricUp, MetricSampleAge, MetricFieldErrors:
		default:
			assert.True(t, used[m.Name], "no field feeds %s", m.Name)
		}
	}
}
