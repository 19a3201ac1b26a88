package vllmreceiver

import (
	"errors"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
)

var errNoEngine = errors.New("no configured endpoint answers as an inference engine; see llm.engine.up and its llm.engine.state")

// health reports the component's status when it changes: recoverable while every configured endpoint is down. Engines that are looked for may
// well be absent.
type health struct {
	host component.Host
	down bool
}

func (h *health) report(endpoints []*endpoint) {
	configured, up := 0, 0
	for _, e := range endpoints {
		if e.found {
			continue
		}
		configured++
		if e.report.State.Up() {
			up++
		}
	}
	down := configured > 0 && up == 0
	if down == h.down {
		return
	}
	h.down = down
	if down {
		componentstatus.ReportStatus(h.host, componentstatus.NewRecoverableErrorEvent(errNoEngine))
		return
	}
	componentstatus.ReportStatus(h.host, componentstatus.NewEvent(componentstatus.StatusOK))
}
