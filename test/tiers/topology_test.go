//go:build e2e

package tiers

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/child"
)

// gatewayName is the DNS name that the agents of a test know.
const gatewayName = "gateways.test"

// topology is agents, gateways and backends.
type topology struct {
	hosts    string // what gatewayName resolves to is written here
	port     string // of all gateways, each on an address of its own
	dir      string
	backends *backends
	gateways map[int]*collector
	// gatewayConfigs and agentConfigs are what is given to every one of them, after builtin:….
	gatewayConfigs, agentConfigs []string
	gatewayEnv, agentEnv         []string
}

func newTopology(t testing.TB) *topology {
	t.Helper()
	needNamespaces(t)
	dir := t.TempDir()
	top := &topology{
		hosts: filepath.Join(dir, "hosts"), dir: dir, backends: newBackends(t), gateways: map[int]*collector{},
		// Shorter than in production, so that a test does not wait for an export.
		gatewayConfigs: []string{"yaml:connectors::llmspan::metrics::interval: 500ms"},
		agentConfigs:   []string{"yaml:exporters::load_balancing::resolver::dns::interval: 500ms"},
	}
	top.port = gatewayPort(t)
	top.resolve(t)
	return top
}

// gatewayPort is a port that is free on the addresses of three gateways.
func gatewayPort(t testing.TB) string {
	t.Helper()
	for range 20 {
		port := child.FreePorts(t, 1)[0]
		free := true
		for i := range 3 {
			l, err := net.Listen("tcp", address(i)+":"+port)
			if err != nil {
				free = false
				break
			}
			l.Close()
		}
		if free {
			return port
		}
	}
	t.Fatal("no port is free on three loopback addresses")
	return ""
}

// address of a gateway: all of 127.0.0.0/8 is this host.
func address(i int) string { return fmt.Sprintf("127.0.0.%d", i+2) }

// resolve says which gateways the name stands for. The file is rewritten in place: processes have it mounted.
func (top *topology) resolve(t testing.TB, gateways ...int) {
	t.Helper()
	var b strings.Builder
	b.WriteString("127.0.0.1 localhost\n")
	for _, i := range gateways {
		fmt.Fprintf(&b, "%s %s\n", address(i), gatewayName)
	}
	require.NoError(t, os.WriteFile(top.hosts, []byte(b.String()), 0o600))
}

// gateway starts a gateway, the same one as before if it ran before.
func (top *topology) gateway(t testing.TB, i int, more ...func(*launch)) *collector {
	t.Helper()
	l := launch{
		name: fmt.Sprintf("gateway-%d", i), configs: append([]string{"builtin:gateway"}, top.gatewayConfigs...), hosts: top.hosts,
		env: append([]string{
			"OTELCOL_LLM_HOST=" + address(i), "OTELCOL_LLM_GATEWAY_PORT=" + top.port, fmt.Sprintf("OTELCOL_LLM_GATEWAY_NAME=gateway-%d", i),
			"OTELCOL_LLM_TRACES_ENDPOINT=" + top.backends.url, "OTELCOL_LLM_LOGS_ENDPOINT=" + top.backends.url,
			"OTELCOL_LLM_METRICS_ENDPOINT=" + top.backends.url + "/api/v1/write",
			"OTELCOL_LLM_DATA=" + filepath.Join(top.dir, fmt.Sprintf("gateway-%d", i)),
		}, top.gatewayEnv...),
	}
	for _, f := range more {
		f(&l)
	}
	c := start(t, l)
	top.gateways[i] = c
	return c
}

// agent is an agent and the URL that it takes OTLP at.
type agent struct {
	*collector
	otlp string
}

func (top *topology) agent(t testing.TB, name string, more ...func(*launch)) *agent {
	t.Helper()
	ports := child.FreePorts(t, 2)
	l := launch{
		name: name, configs: append([]string{"builtin:agent"}, top.agentConfigs...), hosts: top.hosts,
		env: append([]string{
			"OTELCOL_LLM_HOST=127.0.0.1", "OTELCOL_LLM_GRPC_PORT=" + ports[0], "OTELCOL_LLM_HTTP_PORT=" + ports[1], "OTELCOL_LLM_NODE=" + name,
			"OTELCOL_LLM_GATEWAY=" + gatewayName, "OTELCOL_LLM_GATEWAY_PORT=" + top.port, "OTELCOL_LLM_DATA=" + filepath.Join(top.dir, name),
		}, top.agentEnv...),
	}
	for _, f := range more {
		f(&l)
	}
	return &agent{start(t, l), "http://127.0.0.1:" + ports[1]}
}
