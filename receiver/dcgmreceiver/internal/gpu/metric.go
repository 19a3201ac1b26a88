package gpu

// Kind is how a metric's points add up.
type Kind uint8

const (
	KindGauge   Kind = iota // a value now
	KindCounter             // cumulative monotonic sum
	KindUpDown              // non-monotonic sum, cumulative
)

func (k Kind) String() string { return [...]string{"gauge", "counter", "updowncounter"}[k] }

// Metric is one metric the receiver can emit. Names without "nvidia." or "dcgm." are those of the OpenTelemetry
// semantic conventions for hardware (v1.44.0, development); the others are this project's.
type Metric struct {
	Name        string
	Unit        string // UCUM
	Description string
	Kind        Kind
	Integer     bool // points are integers, else doubles
	Off         bool // off unless the metrics setting turns it on
}

// Attr is one attribute of a point: a string, an integer when IsInt, or true when IsTrue.
type Attr struct {
	Key    string
	Str    string
	Int    int64
	IsInt  bool
	IsTrue bool
}

// Attribute keys of points.
const (
	AttrID           = "hw.id"
	AttrType         = "hw.type"
	AttrState        = "hw.state"
	AttrTask         = "hw.gpu.task"
	AttrDirection    = "network.io.direction"
	AttrErrorType    = "error.type"
	AttrSensor       = "hw.sensor_location"
	AttrLimitType    = "hw.limit_type"
	AttrLink         = "nvidia.gpu.link"
	AttrNVLink       = "nvidia.gpu.nvlink"
	AttrPipe         = "nvidia.gpu.pipe"
	AttrClock        = "nvidia.gpu.clock"
	AttrReason       = "nvidia.gpu.reason"
	AttrCause        = "nvidia.gpu.cause"
	AttrAvailability = "nvidia.gpu.availability"
	AttrSystem       = "nvidia.gpu.system"
	AttrXID          = "nvidia.gpu.xid"
	AttrSource       = "nvidia.gpu.source"
	AttrDCGMState    = "dcgm.state"
	AttrOverflow     = "otel.metric.overflow"
	AttrNamespace    = "k8s.namespace.name"
	AttrPod          = "k8s.pod.name"
	AttrContainer    = "k8s.container.name"
)

// Metrics that do not come from a single field.
const (
	MetricStatus      = "hw.status"
	MetricHealth      = "nvidia.gpu.health"
	MetricXID         = "nvidia.gpu.xid.errors"
	MetricSuspect     = "nvidia.gpu.suspect"
	MetricAllocation  = "nvidia.gpu.allocation"
	MetricCount       = "nvidia.gpu.count"
	MetricUp          = "dcgm.up"
	MetricSampleAge   = "dcgm.sample.age"
	MetricFieldErrors = "dcgm.field.errors"
)

// Metrics is the one table of everything the receiver emits, in the order in which it is emitted.
var Metrics = []*Metric{
	{Name: "hw.gpu.utilization", Unit: "1", Kind: KindGauge, Description: "Fraction of time in which the GPU, its encoder or its decoder was busy."},
	{Name: "nvidia.gpu.memory.copy.utilization", Unit: "1", Kind: KindGauge, Description: "Fraction of time in which device memory was read or written. A share of time, not of bandwidth."},
	{Name: "nvidia.gpu.engine.utilization", Unit: "1", Kind: KindGauge, Description: "Fraction of time in which the graphics or compute engine was active; stands in for hw.gpu.utilization on MIG instances."},
	{Name: "nvidia.gpu.sm.utilization", Unit: "1", Kind: KindGauge, Description: "Fraction of time in which a streaming multiprocessor had at least one warp assigned, averaged over all of them."},
	{Name: "nvidia.gpu.sm.occupancy", Unit: "1", Kind: KindGauge, Description: "Resident warps as a fraction of the most that fit."},
	{Name: "nvidia.gpu.pipe.utilization", Unit: "1", Kind: KindGauge, Description: "Fraction of cycles in which a compute pipe was active."},
	{Name: "nvidia.gpu.memory.bandwidth.utilization", Unit: "1", Kind: KindGauge, Description: "Fraction of cycles in which the memory interface moved data; what decode-bound LLM serving runs into first."},
	{Name: "hw.gpu.io", Unit: "By", Kind: KindCounter, Integer: true, Description: "Bytes the GPU sent and received over PCIe, NVLink or C2C."},
	{Name: "hw.gpu.memory.limit", Unit: "By", Kind: KindUpDown, Integer: true, Description: "Size of the GPU's memory."},
	{Name: "hw.gpu.memory.usage", Unit: "By", Kind: KindUpDown, Integer: true, Description: "GPU memory in use, without what the driver reserves."},
	{Name: "nvidia.gpu.memory.free", Unit: "By", Kind: KindUpDown, Integer: true, Description: "GPU memory that is free."},
	{Name: "nvidia.gpu.memory.reserved", Unit: "By", Kind: KindUpDown, Integer: true, Description: "GPU memory reserved by driver and firmware."},
	{Name: "hw.gpu.memory.utilization", Unit: "1", Kind: KindGauge, Description: "Used memory as a fraction of total less reserved."},
	{Name: "nvidia.gpu.clock.frequency", Unit: "Hz", Kind: KindGauge, Description: "Current clock."},
	{Name: "nvidia.gpu.clock.limit", Unit: "Hz", Kind: KindGauge, Description: "Highest clock the GPU can run at."},
	{Name: "nvidia.gpu.clock.event.active", Unit: "1", Kind: KindUpDown, Integer: true, Description: "1 while the clocks are held down for this reason, else 0."},
	{Name: "nvidia.gpu.clock.event.duration", Unit: "s", Kind: KindCounter, Description: "Time for which the clocks were held down for this reason."},
	{Name: "nvidia.gpu.violation.duration", Unit: "s", Kind: KindCounter, Description: "Time for which the GPU was throttled for this reason, as older drivers count it."},
	{Name: "hw.power", Unit: "W", Kind: KindGauge, Description: "Power drawn by the board, averaged by the driver."},
	{Name: "nvidia.gpu.power.limit", Unit: "W", Kind: KindGauge, Description: "Power limit in force."},
	{Name: "hw.energy", Unit: "J", Kind: KindCounter, Description: "Energy used since the driver was loaded."},
	{Name: "hw.temperature", Unit: "Cel", Kind: KindGauge, Description: "Temperature."},
	{Name: "hw.temperature.limit", Unit: "Cel", Kind: KindGauge, Description: "Temperature at which the GPU slows down (high.degraded) or shuts down (high.critical)."},
	{Name: "hw.fan.speed_ratio", Unit: "1", Kind: KindGauge, Description: "Fan speed as a fraction of its maximum."},
	{Name: "hw.errors", Unit: "{error}", Kind: KindCounter, Integer: true, Description: "ECC errors since the driver was loaded."},
	{Name: "nvidia.gpu.ecc.errors.lifetime", Unit: "{error}", Kind: KindCounter, Integer: true, Off: true, Description: "ECC errors over the life of the board; counts again what hw.errors counts."},
	{Name: "nvidia.gpu.memory.page.retired", Unit: "{page}", Kind: KindCounter, Integer: true, Description: "Memory pages retired (before Ampere)."},
	{Name: "nvidia.gpu.memory.page.pending", Unit: "1", Kind: KindUpDown, Integer: true, Description: "Memory pages wait for a restart to be retired."},
	{Name: "nvidia.gpu.memory.row.remapped", Unit: "{row}", Kind: KindCounter, Integer: true, Description: "Memory rows remapped (Ampere and later)."},
	{Name: "nvidia.gpu.memory.row.remap.failed", Unit: "1", Kind: KindUpDown, Integer: true, Description: "1 when remapping a row has failed: the board should be replaced."},
	{Name: "nvidia.gpu.memory.row.remap.pending", Unit: "1", Kind: KindUpDown, Integer: true, Description: "1 while a remapped row waits for a GPU reset."},
	{Name: "nvidia.gpu.memory.bank.spare", Unit: "{bank}", Kind: KindUpDown, Integer: true, Description: "Memory banks by how many spare rows they have left."},
	{Name: MetricXID, Unit: "{error}", Kind: KindCounter, Integer: true, Description: "XID errors seen, each counted once."},
	{Name: "nvidia.gpu.nvlink.errors", Unit: "{error}", Kind: KindCounter, Integer: true, Description: "NVLink errors over all links of the GPU."},
	{Name: "nvidia.gpu.nvlink.link.up", Unit: "1", Kind: KindUpDown, Integer: true, Description: "1 while the NVLink link is up, else 0."},
	{Name: "nvidia.gpu.pcie.replays", Unit: "{replay}", Kind: KindCounter, Integer: true, Description: "PCIe packets sent again."},
	{Name: "nvidia.gpu.pcie.errors", Unit: "{error}", Kind: KindCounter, Integer: true, Description: "PCIe errors."},
	{Name: "nvidia.gpu.pcie.link.generation", Unit: "1", Kind: KindGauge, Integer: true, Description: "PCIe generation in use; lower when idle."},
	{Name: "nvidia.gpu.pcie.link.generation.limit", Unit: "1", Kind: KindGauge, Integer: true, Description: "Highest PCIe generation GPU and slot allow."},
	{Name: "nvidia.gpu.pcie.link.width", Unit: "1", Kind: KindGauge, Integer: true, Description: "PCIe lanes in use; x8 in an x16 slot is a common fault."},
	{Name: "nvidia.gpu.pcie.link.width.limit", Unit: "1", Kind: KindGauge, Integer: true, Description: "PCIe lanes GPU and slot allow."},
	{Name: "nvidia.gpu.performance_state", Unit: "1", Kind: KindGauge, Integer: true, Description: "Performance state; 0 is the fastest."},
	{Name: MetricStatus, Unit: "1", Kind: KindUpDown, Integer: true, Description: "1 for the state the GPU is in, 0 for the others."},
	{Name: MetricHealth, Unit: "1", Kind: KindUpDown, Integer: true, Description: "Result of the host engine's health check for a system: 0 pass, 10 warning, 20 failure."},
	{Name: "nvidia.gpu.recovery.action", Unit: "1", Kind: KindGauge, Integer: true, Description: "What the driver asks for to recover the GPU: 0 nothing, 1 GPU reset, 2 node reboot, 3 drain peer-to-peer, 4 drain and reset."},
	{Name: "nvidia.gpu.fabric.health", Unit: "1", Kind: KindGauge, Integer: true, Description: "Health of the NVLink fabric: 0 not supported, 1 healthy, 2 unhealthy, 3 limited capacity."},
	{Name: MetricSuspect, Unit: "1", Kind: KindUpDown, Integer: true, Description: "1 while the GPU's values are in doubt for this reason, else 0."},
	{Name: MetricAllocation, Unit: "1", Kind: KindUpDown, Integer: true, Description: "1 for each container that holds a share of a GPU that several pods use."},
	{Name: MetricSampleAge, Unit: "s", Kind: KindGauge, Description: "Age of the newest sample of the GPU when it was read."},
	{Name: MetricCount, Unit: "{gpu}", Kind: KindUpDown, Integer: true, Description: "GPUs known, MIG instances not counted."},
	{Name: MetricUp, Unit: "1", Kind: KindGauge, Integer: true, Description: "1 when the source was read, 0 when it could not be; dcgm.state says why."},
	{Name: MetricFieldErrors, Unit: "{value}", Kind: KindCounter, Integer: true, Description: "Values that were asked for and not used, by reason."},
}

var metricByName = func() map[string]*Metric {
	m := make(map[string]*Metric, len(Metrics))
	for _, d := range Metrics {
		m[d.Name] = d
	}
	return m
}()

// MetricByName finds a metric of the table.
func MetricByName(name string) (*Metric, bool) {
	m, ok := metricByName[name]
	return m, ok
}
