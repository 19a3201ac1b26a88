package gpu

import "fmt"

// xidMeanings are the XIDs an operator meets most, in few words; fatal ones end work on the GPU or need a reset, a
// restart or another board. Source: NVIDIA's "Xid errors" guide (docs.nvidia.com/deploy/xid-errors).
var xidMeanings = map[int64]struct {
	text  string
	fatal bool
}{
	13:  {"graphics engine exception, mostly a fault of the program", false},
	31:  {"GPU memory page fault, mostly a fault of the program", false},
	32:  {"invalid or corrupted push buffer stream", false},
	38:  {"driver firmware error", true},
	43:  {"GPU stopped processing, reset channel verification error", false},
	45:  {"preemptive cleanup after earlier errors or a killed program", false},
	48:  {"double-bit ECC error", true},
	61:  {"internal micro-controller breakpoint or warning", true},
	62:  {"internal micro-controller halt", true},
	63:  {"memory row remapped or page retired", false},
	64:  {"row remapping or page retirement failed", true},
	68:  {"NVDEC exception", false},
	69:  {"graphics engine class error", false},
	74:  {"NVLink error", true},
	79:  {"GPU has fallen off the bus", true},
	92:  {"high rate of single-bit ECC errors", false},
	94:  {"contained memory error", false},
	95:  {"uncontained memory error", true},
	109: {"context switch timeout", true},
	119: {"GSP RPC timeout", true},
	120: {"GSP error", true},
	121: {"C2C corrected error", false},
	122: {"SPI PMU RPC read failure", true},
	140: {"unrecovered ECC error", true},
	143: {"GPU initialization failure", true},
	154: {"GPU recovery action changed", false},
}

// XIDMeaning is what an XID means in a few words, "" when it is not in the table, and whether it is fatal.
func XIDMeaning(xid int64) (text string, fatal bool) {
	m := xidMeanings[xid]
	return m.text, m.fatal
}

// XIDText is the body of an XID's log record.
func XIDText(xid int64) string {
	if m := xidMeanings[xid].text; m != "" {
		return fmt.Sprintf("XID %d: %s", xid, m)
	}
	return fmt.Sprintf("XID %d", xid)
}
