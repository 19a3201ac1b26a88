package gpu

import "strings"

// Reason says why a value was not used; "" means that it is good.
type Reason string

// Reasons, as they appear in the attribute nvidia.gpu.reason of dcgm.field.errors.
const (
	ReasonOK           Reason = ""
	ReasonBlank        Reason = "blank"
	ReasonNotFound     Reason = "notfound"
	ReasonNotSupported Reason = "notsupported"
	ReasonNoPermission Reason = "noperm"
	ReasonUnwatched    Reason = "unwatched"
	ReasonStale        Reason = "stale"
	ReasonLost         Reason = "lost"
	ReasonRange        Reason = "range"
	ReasonUnmapped     Reason = "unmapped"
	ReasonDuplicate    Reason = "duplicate"
	ReasonOther        Reason = "other"
)

// Reasons lists every reason a value can be dropped for, in the order in which they are reported.
var Reasons = []Reason{
	ReasonBlank, ReasonNotFound, ReasonNotSupported, ReasonNoPermission, ReasonUnwatched,
	ReasonStale, ReasonLost, ReasonRange, ReasonUnmapped, ReasonDuplicate, ReasonOther,
}

// Value is one number as the source typed it. The type decides which sentinels apply, because an int64 counter may
// pass the double sentinel (1.4e14) in honest use.
type Value struct {
	Int    int64
	Double float64
	IsInt  bool
}

// Int makes an integer value.
func Int(i int64) Value { return Value{Int: i, IsInt: true} }

// Double makes a floating-point value.
func Double(f float64) Value { return Value{Double: f} }

// Float is the value as a float64, whatever its type.
func (v Value) Float() float64 {
	if v.IsInt {
		return float64(v.Int)
	}
	return v.Double
}

// Blank values of DCGM; one above is "not found", two "not supported", three "not permissioned".
// Source: dcgm_structs.h, DCGM_INT64_BLANK, DCGM_INT32_BLANK, DCGM_FP64_BLANK.
const (
	int64Blank  int64   = 0x7ffffffffffffff0
	int32Blank  int64   = 0x7ffffff0
	int32Last   int64   = 0x7fffffff
	doubleBlank float64 = 140737488355328.0
)

// Check reports whether the value is a number or one of the sentinels that stand for its absence.
func (v Value) Check() Reason {
	if v.IsInt {
		switch {
		case v.Int >= int64Blank:
			return sentinel(v.Int - int64Blank)
		case v.Int >= int32Blank && v.Int <= int32Last:
			return sentinel(v.Int - int32Blank)
		}
		return ReasonOK
	}
	switch f := v.Double; {
	case f != f || f > 1.7e308 || f < -1.7e308:
		return ReasonRange
	case f >= doubleBlank && f < 9e18:
		// Beyond the four sentinels DCGM reserves everything above the blank value.
		return sentinel(int64(f - doubleBlank))
	case f >= 9e18:
		// An integer sentinel that was printed as a double: old exporters leak 9223372036854775794.
		return ReasonBlank
	}
	return ReasonOK
}

// CheckCounter is Check for a cumulative double, which may honestly pass the double sentinel: only the four exact
// sentinel values and an integer sentinel printed as a double are absences.
func (v Value) CheckCounter() Reason {
	if v.IsInt {
		// A 32-bit sentinel inside a 64-bit counter is an honest count.
		if v.Int >= int64Blank {
			return sentinel(v.Int - int64Blank)
		}
		return ReasonOK
	}
	if d := v.Double - doubleBlank; d < 0 || (d > 3 && v.Double < 9e18) {
		if v.Double != v.Double || v.Double < -1.7e308 {
			return ReasonRange
		}
		return ReasonOK
	}
	return v.Check()
}

func sentinel(above int64) Reason {
	switch above {
	case 1:
		return ReasonNotFound
	case 2:
		return ReasonNotSupported
	case 3:
		return ReasonNoPermission
	}
	return ReasonBlank
}

// CleanString returns a string field, or "" and the reason when it is one of DCGM's `<<<...>>>` sentinels or empty.
func CleanString(s string) (string, Reason) {
	s = strings.TrimSpace(s)
	switch {
	case s == "":
		return "", ReasonBlank
	case !strings.HasPrefix(s, "<<<"):
		return s, ReasonOK
	case strings.Contains(s, "NOT_SUPPORTED"):
		return "", ReasonNotSupported
	case strings.Contains(s, "NOT_FOUND"):
		return "", ReasonNotFound
	case strings.Contains(s, "NOT_PERM"):
		return "", ReasonNoPermission
	}
	return "", ReasonBlank
}
