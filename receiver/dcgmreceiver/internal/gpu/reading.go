package gpu

import "time"

// Sample is one value of one field at one instant of the source's clock.
type Sample struct {
	Field  Field
	Link   int // NVLink index for ClassLink fields, else None
	At     time.Time
	Value  Value
	Reason Reason // why the source already knows the value to be no good
}

// Event is an XID error, reported once.
type Event struct {
	DeviceID string
	At       time.Time
	XID      int64
}

// DeviceReading is what a source read of one device.
type DeviceReading struct {
	Device  Device
	State   State
	Samples []Sample
	Health  []Health // incidents; complete when HealthKnown
	// HealthKnown says that every system of HealthSystems was checked: those without an incident passed.
	HealthKnown bool
	Owners      []Owner
}

// Note is something an operator should be told once: a degradation and what would help. Key tells notes apart.
type Note struct {
	Key     string
	Message string
	Detail  string
}

// Reading is everything one read of a source gave.
type Reading struct {
	At     time.Time // our clock
	Clock  time.Time // the source's clock at the same instant; sample ages are measured against it
	Source string    // dcgm, nvml or dcgm_exporter

	// Step is the time between two updates of a rate; a longer silence than 2.5 steps counts nothing.
	Step time.Duration
	// MaxAge bounds a sample's age, by class; zero means no bound. Older samples are dropped as stale.
	MaxAge [ClassExtra + 1]time.Duration

	Devices []DeviceReading
	Events  []Event
	// XIDsAreChanges marks XIDs found by watching a last-value gauge: a repeat of the same XID is not seen.
	XIDsAreChanges bool
	Notes          []Note
	Endpoint       string // where it was read, for log and status texts
}
