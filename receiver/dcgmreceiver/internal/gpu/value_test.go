package gpu

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCheckKnowsEverySentinelOfTheValuesOwnType(t *testing.T) {
	for _, tc := range []struct {
		name    string
		v       Value
		gauge   Reason
		counter Reason
	}{
		{"an honest integer", Int(87), ReasonOK, ReasonOK},
		{"zero", Int(0), ReasonOK, ReasonOK},
		{"int64 blank", Int(0x7ffffffffffffff0), ReasonBlank, ReasonBlank},
		{"int64 not found", Int(0x7ffffffffffffff1), ReasonNotFound, ReasonNotFound},
		{"int64 not supported", Int(9223372036854775794), ReasonNotSupported, ReasonNotSupported},
		{"int64 not permissioned", Int(0x7ffffffffffffff3), ReasonNoPermission, ReasonNoPermission},
		{"int64 beyond", Int(math.MaxInt64), ReasonBlank, ReasonBlank},
		{"int32 blank in a 64-bit field", Int(0x7ffffff0), ReasonBlank, ReasonOK},
		{"int32 not supported", Int(0x7ffffff2), ReasonNotSupported, ReasonOK},
		{"an integer above the int32 sentinels", Int(0x80000000), ReasonOK, ReasonOK},
		{"an int64 counter past the double sentinel", Int(150_000_000_000_000), ReasonOK, ReasonOK},
		{"double", Double(0.37), ReasonOK, ReasonOK},
		{"double blank", Double(140737488355328), ReasonBlank, ReasonBlank},
		{"double not found", Double(140737488355329), ReasonNotFound, ReasonNotFound},
		{"double not supported", Double(140737488355330), ReasonNotSupported, ReasonNotSupported},
		{"double not permissioned", Double(140737488355331), ReasonNoPermission, ReasonNoPermission},
		{"a cumulative double past the sentinel", Double(140737488355999), ReasonBlank, ReasonOK},
		{"an int64 sentinel printed as a double", Double(9223372036854775794), ReasonBlank, ReasonBlank},
		{"not a number", Double(math.NaN()), ReasonRange, ReasonRange},
		{"infinite", Double(math.Inf(1)), ReasonRange, ReasonRange},
		{"minus infinite", Double(math.Inf(-1)), ReasonRange, ReasonRange},
	} {
		t.Run(tc.name, func(t *testing.T) {
			assert.Equal(t, tc.gauge, tc.v.Check())
			assert.Equal(t, tc.counter, tc.v.CheckCounter())
		})
	}
}

func TestCleanString(t *testing.T) {
	for in, want := range map[string]Reason{
		"GPU-1": ReasonOK, " 570.86 ": ReasonOK, //nolint:gocritic // the blanks are what is cut
		"": ReasonBlank, "<<<NULL>>>": ReasonBlank,
		"<<<NOT_FOUND>>>": ReasonNotFound, "<<<NOT_SUPPORTED>>>": ReasonNotSupported, "<<<NOT_PERMISSIONED>>>": ReasonNoPermission,
	} {
		s, why := CleanString(in)
		assert.Equal(t, want, why, in)
		assert.Equal(t, why == ReasonOK, s != "", in)
	}
}
