package dcgmreceiver

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/metadata"
)

// kubelet is a fake one on a unix socket.
type kubelet struct {
	podresources.UnimplementedPodResourcesListerServer
	mu   sync.Mutex
	pods []*podresources.PodResources
	err  error
	asks int
}

func (k *kubelet) List(context.Context, *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asks++
	return &podresources.ListPodResourcesResponse{PodResources: k.pods}, k.err
}

func (k *kubelet) set(err error, pods ...*podresources.PodResources) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pods, k.err = pods, err
}

func startKubelet(t *testing.T) (*kubelet, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "kubelet") //nolint:usetesting // a socket's path must be short, and t.TempDir has the test's name in it
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "kubelet.sock")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	k := &kubelet{}
	srv := grpc.NewServer()
	podresources.RegisterPodResourcesListerServer(srv, k)
	served := make(chan struct{})
	go func() { defer close(served); _ = srv.Serve(l) }()
	t.Cleanup(func() { srv.Stop(); <-served })
	return k, socket
}

func pod(name, resource string, ids ...string) *podresources.PodResources {
	return &podresources.PodResources{Name: name, Namespace: "ns", Containers: []*podresources.ContainerResources{{
		Name: "main", Devices: []*podresources.ContainerDevices{{ResourceName: resource, DeviceIds: ids}},
	}}}
}

func claim(name, driver, device string, cdi ...string) *podresources.PodResources {
	res := &podresources.ClaimResource{DriverName: driver, DeviceName: device}
	for _, c := range cdi {
		res.CdiDevices = append(res.CdiDevices, &podresources.CDIDevice{Name: c})
	}
	return &podresources.PodResources{Name: name, Namespace: "ns", Containers: []*podresources.ContainerResources{{
		Name: "main", DynamicResources: []*podresources.DynamicResource{{ClaimResources: []*podresources.ClaimResource{res}}},
	}}}
}

func TestPodLookup(t *testing.T) {
	k, socket := startKubelet(t)
	cfg := createDefaultConfig().(*Config)
	cfg.PodResourcesSocket = socket
	p := newPodLookup(cfg)
	defer p.close()
	tel := componenttest.NewTelemetry()
	defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
	tb, err := metadata.NewTelemetryBuilder(tel.NewTelemetrySettings())
	require.NoError(t, err)

	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	fill := func(after time.Duration) *gpu.Reading {
		now = now.Add(after)
		r := &gpu.Reading{At: now}
		for i, id := range []string{"GPU-0a1b2c3d-0000-1111-2222-333344445555", "GPU-b"} {
			r.Devices = append(r.Devices, gpu.DeviceReading{Device: gpu.Device{ID: id, UUID: id, Minor: i, Index: i, Instance: gpu.None}})
		}
		p.fill(context.Background(), r, tb)
		return r
	}
	owners := func(r *gpu.Reading, i int) (out []string) {
		for _, o := range r.Devices[i].Owners {
			out = append(out, o.Namespace+"/"+o.Pod+"/"+o.Container)
		}
		return out
	}

	k.set(nil, pod("vllm-0", "nvidia.com/gpu", "GPU-0a1b2c3d-0000-1111-2222-333344445555"), pod("nic", "intel.com/sriov", "GPU-b"))
	r := fill(0)
	assert.Equal(t, []string{"ns/vllm-0/main"}, owners(r, 0))
	assert.Empty(t, owners(r, 1), "not a GPU resource")

	k.set(nil, pod("a", "nvidia.com/gpu.shared", "GPU-b::0"), pod("b", "nvidia.com/gpu.shared", "GPU-b::1", "GPU-b::2"),
		claim("dra", "gpu.nvidia.com", "gpu-7", "k8s.gpu.nvidia.com/device=gpu-0a1b2c3d-0000-1111-2222-333344445555"), claim("dra2", "gpu.nvidia.com", "gpu-1"), claim("nic", "sriov", "gpu-1"))
	assert.Equal(t, []string{"ns/vllm-0/main"}, owners(fill(5*time.Second), 0), "the answer is used for a while")
	r = fill(10 * time.Second)
	assert.Equal(t, []string{"ns/dra/main"}, owners(r, 0), "a CDI name that carries the UUID wins over the driver's name")
	assert.Equal(t, []string{"ns/a/main", "ns/b/main", "ns/dra2/main"}, owners(r, 1))
	assert.Empty(t, r.Notes)

	k.set(status.Error(codes.Unavailable, "restarting"))
	r = fill(10 * time.Second)
	assert.Equal(t, []string{"ns/dra/main"}, owners(r, 0), "the last good answer stands in")
	require.Len(t, r.Notes, 1)
	assert.Contains(t, r.Notes[0].Detail, "restarting")
	assert.Empty(t, owners(fill(6*time.Minute), 0), "but not for ever")

	k.set(nil, pod("elsewhere", "nvidia.com/mig-1g.10gb", "MIG-unknown"))
	r = fill(10 * time.Second)
	require.Len(t, r.Notes, 1)
	assert.Equal(t, "pods_unknown", r.Notes[0].Key)

	require.NoError(t, os.Remove(socket))
	r = fill(10 * time.Second)
	assert.Empty(t, r.Notes, "without a socket this is no Kubernetes node, which is no fault")
}

func TestPodOfAGPUIsOnItsResource(t *testing.T) {
	k, socket := startKubelet(t)
	k.set(nil, pod("vllm-0", "nvidia.com/gpu", "GPU-1"))
	f := newFake()
	cfg := config(SourceAuto)
	cfg.PodResourcesSocket = socket
	r := newRig(t, cfg, f)
	require.Eventually(t, func() bool { return len(r.metrics.AllMetrics()) > 0 }, 10*time.Second, time.Millisecond)
	assert.Equal(t, map[string]int64{"ok": 1}, attrCounts(t, r, "otelcol_receiver_dcgm_pod_lookups", "outcome"))
	r.stop()
	found := 0
	for _, p := range points(r.metrics.AllMetrics()[0]) {
		if p.metric.Name() == "hw.gpu.utilization" {
			found++
			name, _ := p.resource.Get("k8s.pod.name")
			assert.Equal(t, "vllm-0", name.Str())
			ns, _ := p.resource.Get("k8s.namespace.name")
			assert.Equal(t, "ns", ns.Str())
		}
	}
	assert.Equal(t, 1, found)
}
