package dcgmreceiver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/pods"
)

const (
	podCache   = 9 * time.Second // how long an answer is used; less than the default interval, so that a tick asks
	podMaxAge  = 5 * time.Minute // how long the last answer stands in for a kubelet that does not answer
	podTimeout = 2 * time.Second
	podMaxSize = 16 << 20 // of an answer; dcgm-exporter allows the same

	draDriver = "gpu.nvidia.com"
)

// podLookup asks the kubelet on this node which container holds which device. Only the worker uses it.
type podLookup struct {
	socket string
	names  []string // of extended resources; a trailing * matches any ending

	mu   sync.Mutex // close comes from another goroutine
	conn *grpc.ClientConn

	holdings []pods.Holding
	asked    time.Time
	answered time.Time
}

func newPodLookup(cfg *Config) *podLookup {
	return &podLookup{socket: cfg.PodResourcesSocket, names: cfg.PodResourceNames}
}

// fill gives the reading's devices their owners. A kubelet that is absent or silent costs the owners, never the reading.
func (p *podLookup) fill(ctx context.Context, r *gpu.Reading, tel *metadata.TelemetryBuilder) {
	if r.At.Sub(p.asked) >= podCache {
		p.asked = r.At
		switch holdings, err := p.list(ctx); {
		case err == nil:
			p.holdings, p.answered = holdings, r.At
			tel.ReceiverDcgmPodLookups.Add(ctx, 1, outcomeAttr("ok"))
		case errors.Is(err, fs.ErrNotExist):
			p.holdings = nil // not a Kubernetes node
		default:
			tel.ReceiverDcgmPodLookups.Add(ctx, 1, outcomeAttr("failed"))
			if r.At.Sub(p.answered) > podMaxAge {
				p.holdings = nil
			}
			r.Notes = append(r.Notes, gpu.Note{Key: "pods", Message: "cannot ask the kubelet which pod holds which GPU; the last answer is used for 5 minutes", Detail: err.Error()})
		}
	}
	if len(p.holdings) == 0 {
		return
	}
	if n := pods.Assign(p.holdings, r.Devices); n > 0 {
		r.Notes = append(r.Notes, gpu.Note{Key: "pods_unknown", Message: "some pods hold devices that are not among the GPUs read here", Detail: fmt.Sprintf("%d devices", n)})
	}
}

func (p *podLookup) list(ctx context.Context) ([]pods.Holding, error) {
	if _, err := os.Stat(p.socket); err != nil {
		return nil, err
	}
	conn, err := p.dial()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, podTimeout)
	defer cancel()
	resp, err := podresources.NewPodResourcesListerClient(conn).List(ctx, &podresources.ListPodResourcesRequest{})
	if err != nil {
		return nil, fmt.Errorf("pod-resources socket %s: %w", p.socket, err)
	}
	var out []pods.Holding
	for _, pod := range resp.GetPodResources() {
		for _, c := range pod.GetContainers() {
			owner := gpu.Owner{Namespace: pod.GetNamespace(), Pod: pod.GetName(), Container: c.GetName()}
			for _, d := range c.GetDevices() {
				if !p.isGPU(d.GetResourceName()) {
					continue
				}
				for _, id := range d.GetDeviceIds() {
					out = append(out, pods.Holding{Owner: owner, DeviceID: id})
				}
			}
			for _, claim := range c.GetDynamicResources() {
				for _, res := range claim.GetClaimResources() {
					if res.GetDriverName() == draDriver {
						out = append(out, pods.Holding{Owner: owner, DeviceID: draID(res)})
					}
				}
			}
		}
	}
	return out, nil
}

// draID is what names the device of a claim: a CDI name that carries a UUID, else the driver's own name for it.
func draID(res *podresources.ClaimResource) string {
	for _, cdi := range res.GetCdiDevices() {
		if ref, ok := pods.Parse(cdi.GetName()); ok && ref.UUID != "" {
			return cdi.GetName()
		}
	}
	return res.GetDeviceName()
}

func (p *podLookup) isGPU(resource string) bool {
	return slices.ContainsFunc(p.names, func(n string) bool {
		prefix, any := strings.CutSuffix(n, "*")
		return resource == n || any && strings.HasPrefix(resource, prefix)
	})
}

func (p *podLookup) dial() (*grpc.ClientConn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil {
		return p.conn, nil
	}
	conn, err := grpc.NewClient("unix://"+p.socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()), // a unix socket of this node: the kubelet offers nothing else
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(podMaxSize)))
	if err != nil {
		return nil, fmt.Errorf("pod_resources_socket %q: %w", p.socket, err)
	}
	p.conn = conn
	return conn, nil
}

func (p *podLookup) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil {
		_ = p.conn.Close()
		p.conn = nil
	}
}
