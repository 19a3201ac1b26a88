package kubeapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const (
	example   = "../../deploy/examples/k8s-engines.yaml"
	pages     = "../../receiver/vllmreceiver/testdata/pages"
	node      = "gpu-1"
	namespace = "serving"
	engines   = "/api/v1/namespaces/" + namespace + "/pods"
)

// pod is what a test says of a pod. Its engine is a recorded page on a port of loopback, which is every pod's address.
type pod struct {
	name, node          string
	labels, annotations map[string]string
	port                string // the name of its container's port
	page, path          string // of the engine; no page: nothing listens
	waiting             bool   // its container does not run yet
	loading             bool   // it runs and is not ready

	number  int
	scrapes atomic.Int64
}

// TestExampleFindsEnginesByLabelAndAnnotation runs the built binary with the shipped example as it is, but for the way to the API server and to
// the gateway. The gateway is the same binary and writes down what it gets.
func TestExampleFindsEnginesByLabelAndAnnotation(t *testing.T) {
	bin := os.Getenv("OTELCOL_LLM_BIN")
	if bin == "" {
		t.Skip("OTELCOL_LLM_BIN is not set; make test-kubernetes builds the binary and sets it")
	}
	api := start(t)
	api.must(t, http.MethodPost, "/api/v1/namespaces", newObject("v1", "Namespace", namespace, nil))
	api.allowPods(t)

	vllm, sglang := map[string]string{"app.kubernetes.io/name": "vllm"}, map[string]string{"app.kubernetes.io/name": "sglang"}
	scrape := map[string]string{"llm.opentelemetry.io/scrape": "true"}
	elsewhere := map[string]string{"llm.opentelemetry.io/scrape": "true", "llm.opentelemetry.io/path": "/prometheus/metrics"}
	first := []*pod{
		{name: "labelled-vllm", labels: vllm, port: "http", page: "vllm-0.32.0-end.prom"},
		{name: "labelled-sglang", labels: sglang, port: "metrics", page: "sglang-0.5.23-end.prom"},
		{name: "annotated-path", annotations: elsewhere, port: "api", page: "trtllm_2026-01_real.prom", path: "/prometheus/metrics"},
		{name: "labelled-and-annotated", labels: vllm, annotations: scrape, port: "http", page: "vllm-0.20.2-end.prom"},
		{name: "loading", labels: vllm, port: "http", loading: true},
	}
	starting := &pod{name: "starting", labels: vllm, port: "http", page: "vllm-0.10.2.post2-end.prom", waiting: true}
	others := []*pod{
		{name: "unlabelled", port: "http", page: "vllm-0.32.0-end.prom"},
		{name: "other-app", labels: map[string]string{"app.kubernetes.io/name": "web"}, port: "http", page: "vllm-0.32.0-end.prom"},
		{name: "other-port", labels: vllm, port: "grpc", page: "vllm-0.32.0-end.prom"},
		{name: "opted-out", labels: vllm, annotations: map[string]string{"llm.opentelemetry.io/scrape": "false"}, port: "http", page: "vllm-0.32.0-end.prom"},
		{name: "other-node", node: "gpu-2", labels: vllm, port: "http", page: "vllm-0.32.0-end.prom"},
		starting,
	}
	for _, p := range append(append([]*pod{}, first...), others...) {
		api.run(t, p)
	}

	got := startTiers(t, bin, api)
	await(t, "the first engines", func() error {
		return got.read(t).want(map[string]string{
			"labelled-vllm": "vllm up", "labelled-sglang": "sglang up", "annotated-path": "trtllm up", "labelled-and-annotated": "vllm up", "loading": " unreachable",
		})
	})
	seen := got.read(t)
	// The figures are those of the recordings' golden results.
	seen.value(t, "labelled-vllm", "llm.engine.output_tokens", 12082)
	seen.value(t, "labelled-sglang", "llm.engine.output_tokens", 1311)
	for _, p := range first {
		r := seen.pods[p.name]
		for key, want := range map[string]string{
			"k8s.namespace.name": namespace, "k8s.pod.uid": api.uid(t, p.name), "k8s.container.name": "engine", "container.image.name": "registry.example/engine:1",
			"server.port": strconv.Itoa(p.number),
		} {
			if r.resource[key] != want {
				t.Errorf("%s: %s is %q, want %q", p.name, key, r.resource[key], want)
			}
		}
	}

	// A pod whose container starts, and a pod that is new, are found; the series of a pod that is deleted end, and it is heard of no more.
	starting.waiting = false
	api.status(t, starting)
	added := &pod{name: "added", labels: sglang, port: "metrics", page: "sglang-0.5.23-start.prom"}
	api.run(t, added)
	api.must(t, http.MethodDelete, engines+"/labelled-sglang?gracePeriodSeconds=0", nil)
	await(t, "the pods that came later", func() error {
		return got.read(t).want(map[string]string{
			"labelled-vllm": "vllm up", "labelled-sglang": "sglang gone", "annotated-path": "trtllm up", "labelled-and-annotated": "vllm up", "loading": " unreachable",
			"starting": "vllm up", "added": "sglang up",
		})
	})
	last, since := -1, 0
	await(t, "three scrapes of another pod without one of the deleted pod", func() error {
		seen := got.read(t)
		if n := seen.pods["labelled-sglang"].scrapes; n != last {
			last, since = n, seen.pods["labelled-vllm"].scrapes
		}
		if n := seen.pods["labelled-vllm"].scrapes - since; n < 3 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})

	seen = got.read(t)
	for _, p := range others {
		if n := p.scrapes.Load(); p != starting && n != 0 {
			t.Errorf("%s was scraped %d times", p.name, n)
		}
	}
	// The pod with both is scraped once an interval, as the one with a label is: a second receiver would have doubled it.
	if both, one := seen.pods["labelled-and-annotated"].scrapes, seen.pods["labelled-vllm"].scrapes; both > one+1 {
		t.Errorf("the pod with label and annotation has %d scrapes, that with a label %d", both, one)
	}
	for _, p := range append(append([]*pod{}, first...), starting, added) {
		t.Logf("%-22s %2d scrapes, %s %s", p.name, seen.pods[p.name].scrapes, seen.pods[p.name].state, seen.pods[p.name].resource["llm.engine.version"])
	}
}

func newObject(version, kind, name string, more map[string]any) map[string]any {
	o := map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name}}
	for k, v := range more {
		o[k] = v
	}
	return o
}

// allowPods gives the agent's user what the example says that it needs, and no more.
func (s *server) allowPods(t *testing.T) {
	t.Helper()
	const rbac = "/apis/rbac.authorization.k8s.io/v1/"
	s.must(t, http.MethodPost, rbac+"clusterroles", newObject("rbac.authorization.k8s.io/v1", "ClusterRole", agent, map[string]any{
		"rules": []any{map[string]any{"apiGroups": []string{""}, "resources": []string{"pods"}, "verbs": []string{"get", "list", "watch"}}},
	}))
	s.must(t, http.MethodPost, rbac+"clusterrolebindings", newObject("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", agent, map[string]any{
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": agent},
		"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": agent}},
	}))
}

// run starts the pod's engine and writes the pod, as a scheduler and a kubelet would.
func (s *server) run(t *testing.T, p *pod) {
	t.Helper()
	p.serve(t)
	on := p.node
	if on == "" {
		on = node
	}
	s.must(t, http.MethodPost, engines, map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": p.name, "labels": p.labels, "annotations": p.annotations},
		"spec": map[string]any{"nodeName": on, "containers": []any{map[string]any{
			"name": "engine", "image": "registry.example/engine:1", "ports": []any{map[string]any{"name": p.port, "containerPort": p.number}},
		}}},
	})
	s.status(t, p)
}

func (p *pod) serve(t *testing.T) {
	t.Helper()
	if p.page == "" {
		n, err := strconv.Atoi(freePorts(t, 1)[0])
		fatal(t, err)
		p.number = n
		return
	}
	text, err := os.ReadFile(filepath.Join(pages, p.page))
	fatal(t, err)
	path := p.path
	if path == "" {
		path = "/metrics"
	}
	mux := http.NewServeMux()
	mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
		p.scrapes.Add(1)
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(text)
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(srv.URL, "http://"), ":")
	p.number, err = strconv.Atoi(port)
	fatal(t, err)
}

func (s *server) status(t *testing.T, p *pod) {
	t.Helper()
	phase, state, ready := "Running", map[string]any{"running": map[string]any{"startedAt": "2026-01-01T00:00:00Z"}}, !p.waiting && !p.loading
	if p.waiting {
		phase, state = "Pending", map[string]any{"waiting": map[string]any{"reason": "ContainerCreating"}}
	}
	s.must(t, http.MethodPatch, engines+"/"+p.name+"/status", map[string]any{"status": map[string]any{
		"phase": phase, "podIP": "127.0.0.1", "podIPs": []any{map[string]any{"ip": "127.0.0.1"}},
		"conditions": []any{map[string]any{"type": "Ready", "status": map[bool]string{true: "True", false: "False"}[ready]}},
		"containerStatuses": []any{map[string]any{
			"name": "engine", "image": "registry.example/engine:1", "imageID": "", "containerID": "containerd://" + p.name, "restartCount": 0, "ready": ready, "state": state,
		}},
	}})
}

func (s *server) uid(t *testing.T, name string) string {
	t.Helper()
	var o struct{ Metadata struct{ UID string } }
	fatal(t, json.Unmarshal([]byte(s.must(t, http.MethodGet, engines+"/"+name, nil)), &o))
	return o.Metadata.UID
}

func (s *server) must(t *testing.T, method, path string, body any) string {
	t.Helper()
	var raw []byte
	if body != nil {
		var err error
		raw, err = json.Marshal(body)
		fatal(t, err)
	}
	kind := "application/json"
	if method == http.MethodPatch {
		kind = "application/merge-patch+json"
	}
	code, answer, err := s.do(t, method, path, kind, raw)
	fatal(t, err)
	if code/100 != 2 {
		t.Fatalf("%s %s: %d %s", method, path, code, answer)
	}
	return answer
}

// received is the file that the gateway writes.
type received string

// startTiers starts a gateway that writes to a file, and the agent with the example.
func startTiers(t *testing.T, bin string, api *server) received {
	t.Helper()
	bin, err := filepath.Abs(bin)
	fatal(t, err)
	config, err := filepath.Abs(example)
	fatal(t, err)
	dir, port := t.TempDir(), freePorts(t, 1)[0]
	file := filepath.Join(dir, "metrics.jsonl")
	const quiet = "yaml:service::telemetry::metrics::level: none"
	run(t, filepath.Join(dir, "gateway"), nil, bin, "--config", quiet, "--config", "yaml:"+fmt.Sprintf(`{
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:%s"}}}}, exporters: {file: {path: %q, flush_interval: 100ms}, debug: {}},
service: {pipelines: {metrics: {receivers: [otlp], exporters: [file]}, logs: {receivers: [otlp], exporters: [debug]}}}}`, port, file))
	kubeconfig := filepath.Join(dir, "kubeconfig")
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "test",
		"clusters": []any{map[string]any{"name": "test", "cluster": map[string]any{"server": api.url, "insecure-skip-tls-verify": true}}},
		"users":    []any{map[string]any{"name": agent, "user": map[string]any{"token": agentToken}}},
		"contexts": []any{map[string]any{"name": "test", "context": map[string]any{"cluster": "test", "user": agent}}},
	})
	fatal(t, err)
	fatal(t, os.WriteFile(kubeconfig, raw, 0o600))
	run(t, filepath.Join(dir, "agent"), []string{"KUBECONFIG=" + kubeconfig, "K8S_NODE_NAME=" + node, "GATEWAY_ENDPOINT=127.0.0.1:" + port},
		bin, "--config", config, "--config", quiet, "--config", "yaml:extensions::k8s_observer::auth_type: kubeConfig", "--config", "yaml:exporters::otlp_grpc::tls::insecure: true")
	return received(file)
}

// arrived is what the gateway has got of each pod, by name.
type arrived struct{ pods map[string]*engine }

type engine struct {
	resource map[string]string // of the last scrape
	state    string            // kind, and "up" or why not, of the last scrape
	scrapes  int               // points of llm.engine.up
	values   map[string]float64
}

type attributes []struct {
	Key   string
	Value struct {
		StringValue string
		IntValue    json.Number
	}
}

func (a attributes) strings() map[string]string {
	out := map[string]string{}
	for _, x := range a {
		out[x.Key] = x.Value.StringValue + x.Value.IntValue.String()
	}
	return out
}

type points struct {
	DataPoints []struct {
		AsDouble   float64
		AsInt      json.Number
		Flags      uint32 // 1: no recorded value
		Attributes attributes
	}
}

func (f received) read(t *testing.T) arrived {
	t.Helper()
	out := arrived{map[string]*engine{}}
	raw, err := os.ReadFile(string(f))
	if err != nil {
		return out // not yet
	}
	for line := range strings.Lines(string(raw)) {
		if !strings.HasSuffix(line, "\n") {
			break // it is being written
		}
		var md struct {
			ResourceMetrics []struct {
				Resource     struct{ Attributes attributes }
				ScopeMetrics []struct {
					Metrics []struct {
						Name       string
						Gauge, Sum points
					}
				}
			}
		}
		fatal(t, json.Unmarshal([]byte(line), &md))
		for _, rm := range md.ResourceMetrics {
			res := rm.Resource.Attributes.strings()
			e := out.pods[res["k8s.pod.name"]]
			if e == nil {
				e = &engine{}
				out.pods[res["k8s.pod.name"]] = e
			}
			e.resource, e.values = res, map[string]float64{}
			for _, sm := range rm.ScopeMetrics {
				for _, m := range sm.Metrics {
					for _, dp := range append(m.Gauge.DataPoints, m.Sum.DataPoints...) {
						if dp.Flags == 1 {
							e.state = res["llm.engine.kind"] + " gone"
							continue
						}
						n, _ := dp.AsInt.Float64()
						e.values[m.Name] += n + dp.AsDouble
						if m.Name == "llm.engine.up" {
							e.scrapes++
							e.state = res["llm.engine.kind"] + " " + dp.Attributes.strings()["llm.engine.state"]
							if n+dp.AsDouble == 1 {
								e.state = res["llm.engine.kind"] + " up"
							}
						}
					}
				}
			}
		}
	}
	return out
}

// want compares the pods and the state of their engines, no more and no fewer.
func (a arrived) want(want map[string]string) error {
	got := map[string]string{}
	for name, e := range a.pods {
		got[name] = e.state
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	return nil
}

func (a arrived) value(t *testing.T, name, metric string, want float64) {
	t.Helper()
	if got := a.pods[name].values[metric]; got != want {
		t.Errorf("%s: %s is %v, want %v", name, metric, got, want)
	}
}

func await(t *testing.T, what string, met func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if err = met(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}
