package gpu

// Class groups fields by how they are read; a class is watched on its own so that one that is refused stops no other.
type Class uint8

const (
	ClassCore      Class = iota // moves from second to second
	ClassSlow                   // counters of faults, limits, configuration
	ClassProfiling              // hardware counters: a shared, sometimes exclusive or privileged resource
	ClassLink                   // asked of a NVLink link, not of a GPU
	ClassExtra                  // asked for by the operator
)

func (c Class) String() string {
	return [...]string{"core", "slow", "profiling", "link", "extra"}[c]
}

// How says how a field's value becomes its metric's.
type How uint8

const (
	HowDirect How = iota // value × Scale
	HowRate              // a rate per second: integrated into a counter
	HowBits              // a bit mask: one 0/1 point a bit, attribute AttrReason
	HowUp                // 1 when the value is 1, else 0
)

// Mapping says what becomes of a field.
type Mapping struct {
	Field  Field
	Metric *Metric
	Attrs  []Attr
	Scale  float64 // factor from the field's unit to the metric's; 0 means 1
	How    How
	Class  Class
	Rank   uint8 // of the fields that feed one series the lowest rank with a value wins
	MIG    bool  // DCGM has it for MIG instances
}

const mebi = 1 << 20 // DCGM's "MB" is MiB: it divides bytes by 1024² (DcgmCacheManager.cpp, ReadAndCacheFBMemoryInfo)

// Catalog is the one table from DCGM fields to metrics, with OpenTelemetry's names where there are any.
// Field meanings and units: dcgm_fields.h (DCGM 4.6). Trap: 203 is called GPU_UTIL_RATIO since 4.6 and still is 0-100.
var Catalog = []Mapping{
	m(203, "hw.gpu.utilization", ClassCore, scale(0.01), attr(AttrTask, "general")),
	m(206, "hw.gpu.utilization", ClassCore, scale(0.01), attr(AttrTask, "encoder")),
	m(207, "hw.gpu.utilization", ClassCore, scale(0.01), attr(AttrTask, "decoder")),
	m(204, "nvidia.gpu.memory.copy.utilization", ClassCore, scale(0.01)),

	m(1001, "nvidia.gpu.engine.utilization", ClassProfiling, mig),
	m(1002, "nvidia.gpu.sm.utilization", ClassProfiling, mig),
	m(1003, "nvidia.gpu.sm.occupancy", ClassProfiling, mig),
	m(1004, "nvidia.gpu.pipe.utilization", ClassProfiling, mig, attr(AttrPipe, "tensor")),
	m(1006, "nvidia.gpu.pipe.utilization", ClassProfiling, mig, attr(AttrPipe, "fp64")),
	m(1007, "nvidia.gpu.pipe.utilization", ClassProfiling, mig, attr(AttrPipe, "fp32")),
	m(1008, "nvidia.gpu.pipe.utilization", ClassProfiling, mig, attr(AttrPipe, "fp16")),
	m(1013, "nvidia.gpu.pipe.utilization", ClassProfiling, mig, attr(AttrPipe, "tensor_imma")),
	m(1014, "nvidia.gpu.pipe.utilization", ClassProfiling, mig, attr(AttrPipe, "tensor_hmma")),
	m(1015, "nvidia.gpu.pipe.utilization", ClassProfiling, mig, attr(AttrPipe, "tensor_dfma")),
	m(1016, "nvidia.gpu.pipe.utilization", ClassProfiling, mig, attr(AttrPipe, "int")),
	m(1005, "nvidia.gpu.memory.bandwidth.utilization", ClassProfiling, mig),

	m(1091, "hw.gpu.io", ClassProfiling, attr(AttrDirection, "transmit"), attr(AttrLink, "pcie")),
	m(1092, "hw.gpu.io", ClassProfiling, attr(AttrDirection, "receive"), attr(AttrLink, "pcie")),
	m(1009, "hw.gpu.io", ClassProfiling, rate, second, attr(AttrDirection, "transmit"), attr(AttrLink, "pcie")),
	m(1010, "hw.gpu.io", ClassProfiling, rate, second, attr(AttrDirection, "receive"), attr(AttrLink, "pcie")),
	m(1201, "hw.gpu.io", ClassCore, attr(AttrDirection, "transmit"), attr(AttrLink, "nvlink")),
	m(1203, "hw.gpu.io", ClassCore, attr(AttrDirection, "receive"), attr(AttrLink, "nvlink")),
	m(1011, "hw.gpu.io", ClassProfiling, rate, second, attr(AttrDirection, "transmit"), attr(AttrLink, "nvlink")),
	m(1012, "hw.gpu.io", ClassProfiling, rate, second, attr(AttrDirection, "receive"), attr(AttrLink, "nvlink")),
	m(1076, "hw.gpu.io", ClassProfiling, rate, attr(AttrDirection, "transmit"), attr(AttrLink, "c2c")),
	m(1078, "hw.gpu.io", ClassProfiling, rate, attr(AttrDirection, "receive"), attr(AttrLink, "c2c")),

	m(250, "hw.gpu.memory.limit", ClassSlow, scale(mebi), mig),
	m(252, "hw.gpu.memory.usage", ClassCore, scale(mebi), mig),
	m(251, "nvidia.gpu.memory.free", ClassCore, scale(mebi), mig),
	m(253, "nvidia.gpu.memory.reserved", ClassCore, scale(mebi), mig),
	m(254, "hw.gpu.memory.utilization", ClassCore, mig),

	m(100, "nvidia.gpu.clock.frequency", ClassCore, scale(1e6), attr(AttrClock, "sm")),
	m(101, "nvidia.gpu.clock.frequency", ClassCore, scale(1e6), attr(AttrClock, "memory")),
	m(102, "nvidia.gpu.clock.frequency", ClassCore, scale(1e6), attr(AttrClock, "video")),
	m(1603, "nvidia.gpu.clock.frequency", ClassCore, second, attr(AttrClock, "sm")),
	m(1604, "nvidia.gpu.clock.frequency", ClassCore, second, attr(AttrClock, "memory")),
	m(1605, "nvidia.gpu.clock.frequency", ClassCore, second, attr(AttrClock, "video")),
	m(113, "nvidia.gpu.clock.limit", ClassSlow, scale(1e6), attr(AttrClock, "sm")),
	m(114, "nvidia.gpu.clock.limit", ClassSlow, scale(1e6), attr(AttrClock, "memory")),
	m(112, "nvidia.gpu.clock.event.active", ClassCore, bits),
	m(1420, "nvidia.gpu.clock.event.duration", ClassCore, scale(1e-9), attr(AttrReason, "sw_power_cap")),
	m(1421, "nvidia.gpu.clock.event.duration", ClassCore, scale(1e-9), attr(AttrReason, "sync_boost")),
	m(1422, "nvidia.gpu.clock.event.duration", ClassCore, scale(1e-9), attr(AttrReason, "sw_thermal")),
	m(1423, "nvidia.gpu.clock.event.duration", ClassCore, scale(1e-9), attr(AttrReason, "hw_thermal")),
	m(1424, "nvidia.gpu.clock.event.duration", ClassCore, scale(1e-9), attr(AttrReason, "hw_power_brake")),
	m(240, "nvidia.gpu.violation.duration", ClassCore, scale(1e-9), attr(AttrReason, "power")),
	m(241, "nvidia.gpu.violation.duration", ClassCore, scale(1e-9), attr(AttrReason, "thermal")),
	m(242, "nvidia.gpu.violation.duration", ClassCore, scale(1e-9), attr(AttrReason, "sync_boost")),
	m(243, "nvidia.gpu.violation.duration", ClassCore, scale(1e-9), attr(AttrReason, "board_limit")),
	m(244, "nvidia.gpu.violation.duration", ClassCore, scale(1e-9), attr(AttrReason, "low_util")),
	m(245, "nvidia.gpu.violation.duration", ClassCore, scale(1e-9), attr(AttrReason, "reliability")),
	m(246, "nvidia.gpu.violation.duration", ClassCore, scale(1e-9), attr(AttrReason, "app_clocks")),
	m(247, "nvidia.gpu.violation.duration", ClassCore, scale(1e-9), attr(AttrReason, "base_clocks")),

	m(155, "hw.power", ClassCore),
	m(157, "hw.power", ClassCore, second),
	m(164, "nvidia.gpu.power.limit", ClassSlow),
	m(160, "nvidia.gpu.power.limit", ClassSlow, second),
	m(156, "hw.energy", ClassCore, scale(1e-3)),
	m(1611, "hw.energy", ClassCore, second),
	m(150, "hw.temperature", ClassCore, attr(AttrSensor, "gpu")),
	m(140, "hw.temperature", ClassCore, attr(AttrSensor, "memory")),
	m(158, "hw.temperature.limit", ClassSlow, attr(AttrSensor, "gpu"), attr(AttrLimitType, "high.degraded")),
	m(159, "hw.temperature.limit", ClassSlow, attr(AttrSensor, "gpu"), attr(AttrLimitType, "high.critical")),
	m(191, "hw.fan.speed_ratio", ClassSlow, scale(0.01)),
	m(1612, "hw.fan.speed_ratio", ClassSlow, second),

	m(310, "hw.errors", ClassSlow, attr(AttrErrorType, "corrected")),
	m(311, "hw.errors", ClassSlow, attr(AttrErrorType, "uncorrected")),
	m(312, "nvidia.gpu.ecc.errors.lifetime", ClassSlow, attr(AttrErrorType, "corrected")),
	m(313, "nvidia.gpu.ecc.errors.lifetime", ClassSlow, attr(AttrErrorType, "uncorrected")),
	m(390, "nvidia.gpu.memory.page.retired", ClassSlow, attr(AttrCause, "sbe")),
	m(391, "nvidia.gpu.memory.page.retired", ClassSlow, attr(AttrCause, "dbe")),
	m(392, "nvidia.gpu.memory.page.pending", ClassSlow),
	m(394, "nvidia.gpu.memory.row.remapped", ClassSlow, attr(AttrCause, "corrected")),
	m(393, "nvidia.gpu.memory.row.remapped", ClassSlow, attr(AttrCause, "uncorrected")),
	m(395, "nvidia.gpu.memory.row.remap.failed", ClassSlow),
	m(396, "nvidia.gpu.memory.row.remap.pending", ClassSlow),
	m(385, "nvidia.gpu.memory.bank.spare", ClassSlow, attr(AttrAvailability, "max")),
	m(386, "nvidia.gpu.memory.bank.spare", ClassSlow, attr(AttrAvailability, "high")),
	m(387, "nvidia.gpu.memory.bank.spare", ClassSlow, attr(AttrAvailability, "partial")),
	m(388, "nvidia.gpu.memory.bank.spare", ClassSlow, attr(AttrAvailability, "low")),
	m(389, "nvidia.gpu.memory.bank.spare", ClassSlow, attr(AttrAvailability, "none")),

	m(409, "nvidia.gpu.nvlink.errors", ClassSlow, attr(AttrErrorType, "crc_flit")),
	m(419, "nvidia.gpu.nvlink.errors", ClassSlow, attr(AttrErrorType, "crc_data")),
	m(429, "nvidia.gpu.nvlink.errors", ClassSlow, attr(AttrErrorType, "replay")),
	m(499, "nvidia.gpu.nvlink.errors", ClassSlow, second, attr(AttrErrorType, "replay")),
	m(439, "nvidia.gpu.nvlink.errors", ClassSlow, attr(AttrErrorType, "recovery")),
	m(498, "nvidia.gpu.nvlink.errors", ClassSlow, second, attr(AttrErrorType, "recovery")),
	m(1508, "nvidia.gpu.nvlink.link.up", ClassLink, up),
	m(202, "nvidia.gpu.pcie.replays", ClassSlow),
	m(1501, "nvidia.gpu.pcie.errors", ClassSlow, attr(AttrErrorType, "corrected")),
	m(237, "nvidia.gpu.pcie.link.generation", ClassSlow),
	m(235, "nvidia.gpu.pcie.link.generation.limit", ClassSlow),
	m(238, "nvidia.gpu.pcie.link.width", ClassSlow),
	m(236, "nvidia.gpu.pcie.link.width.limit", ClassSlow),
	m(190, "nvidia.gpu.performance_state", ClassCore),
	m(1523, "nvidia.gpu.recovery.action", ClassSlow),
	m(175, "nvidia.gpu.fabric.health", ClassSlow),
}

// Bits names the bits of field 112 (DCGM_CLOCKS_EVENT_REASON_*, dcgm_fields.h).
var Bits = []struct {
	Mask   int64
	Reason string
}{
	{0x1, "idle"},
	{0x2, "clocks_setting"},
	{0x4, "sw_power_cap"},
	{0x8, "hw_slowdown"},
	{0x10, "sync_boost"},
	{0x20, "sw_thermal"},
	{0x40, "hw_thermal"},
	{0x80, "hw_power_brake"},
	{0x100, "display"},
}

func m(f Field, metric string, c Class, opts ...func(*Mapping)) Mapping {
	out := Mapping{Field: f, Metric: metricByName[metric], Class: c, Scale: 1}
	if out.Metric == nil {
		panic("catalogue names an unknown metric: " + metric) //nolint:forbidigo // a slip in the tables of this package; every start and every test would say so
	}
	for _, o := range opts {
		o(&out)
	}
	return out
}

func scale(s float64) func(*Mapping) { return func(m *Mapping) { m.Scale = s } }
func second(m *Mapping)              { m.Rank = 1 }
func mig(m *Mapping)                 { m.MIG = true }
func rate(m *Mapping)                { m.How = HowRate }
func bits(m *Mapping)                { m.How = HowBits }
func up(m *Mapping)                  { m.How = HowUp }
func attr(k, v string) func(*Mapping) {
	return func(m *Mapping) { m.Attrs = append(m.Attrs, Attr{Key: k, Str: v}) }
}
