// Package kubeapi tests against Kubernetes' own API server, without a cluster: etcd and the API server run on loopback. Every object of
// deploy/kubernetes is applied with a server-side dry run and strict field validation, and the built binary finds engines with
// deploy/examples/k8s-engines.yaml among pods that the test writes. `make test-kubernetes` builds both servers, which takes minutes, so it is no
// part of what continuous integration runs.
package kubeapi

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

const (
	manifests = "../../deploy/kubernetes"
	token     = "for-this-test"
	patience  = 2 * time.Minute

	// The collector's user, which may do nothing by itself.
	agent, agentToken = "otelcol-llm-agent", "for-the-agent"
)

// resources are the paths of the kinds that the manifests have.
var resources = map[string]string{
	"Namespace":           "/api/v1/namespaces",
	"ServiceAccount":      "/api/v1/namespaces/%s/serviceaccounts",
	"ConfigMap":           "/api/v1/namespaces/%s/configmaps",
	"Service":             "/api/v1/namespaces/%s/services",
	"DaemonSet":           "/apis/apps/v1/namespaces/%s/daemonsets",
	"StatefulSet":         "/apis/apps/v1/namespaces/%s/statefulsets",
	"ClusterRole":         "/apis/rbac.authorization.k8s.io/v1/clusterroles",
	"ClusterRoleBinding":  "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
	"NetworkPolicy":       "/apis/networking.k8s.io/v1/namespaces/%s/networkpolicies",
	"PodDisruptionBudget": "/apis/policy/v1/namespaces/%s/poddisruptionbudgets",
}

type object struct {
	file, kind, name, namespace string
	raw                         []byte
}

func objects(t *testing.T) []object {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(manifests, "kustomization.yaml"))
	fatal(t, err)
	var k struct{ Resources []string }
	fatal(t, yaml.Unmarshal(raw, &k))
	var out []object
	for _, f := range k.Resources {
		raw, err := os.ReadFile(filepath.Join(manifests, f))
		fatal(t, err)
		for _, doc := range bytes.Split(raw, []byte("\n---\n")) {
			var o struct {
				Kind     string
				Metadata struct{ Name, Namespace string }
			}
			fatal(t, yaml.UnmarshalStrict(doc, &map[string]any{}))
			fatal(t, yaml.Unmarshal(doc, &o))
			if _, ok := resources[o.Kind]; !ok {
				t.Fatalf("%s: kind %q is not known to this test", f, o.Kind)
			}
			out = append(out, object{f, o.Kind, o.Metadata.Name, o.Metadata.Namespace, doc})
		}
	}
	if len(out) < 10 {
		t.Fatalf("only %d objects", len(out))
	}
	return out
}

func TestAPIServerAcceptsTheManifests(t *testing.T) {
	api := start(t)
	for _, o := range objects(t) {
		// The namespace is made, for the others to be in it.
		code, answer := api.apply(t, o, o.kind != "Namespace")
		t.Logf("%d %s %s (%s)", code, o.kind, o.name, o.file)
		if code != http.StatusOK && code != http.StatusCreated {
			t.Errorf("%s %s: %s", o.kind, o.name, answer)
		}
	}
	// It must be able to say no.
	for _, o := range objects(t) {
		if o.kind != "DaemonSet" {
			continue
		}
		o.raw = bytes.Replace(o.raw, []byte("terminationGracePeriodSeconds"), []byte("terminationGraceSeconds"), 1)
		if code, answer := api.apply(t, o, true); code == http.StatusOK || !strings.Contains(answer, "terminationGraceSeconds") {
			t.Errorf("a typo was accepted: %d %s", code, answer)
		}
	}
}

// server is the API server.
type server struct {
	url    string
	client *http.Client
}

func (s *server) do(t *testing.T, method, path, kind string, body []byte) (int, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, bytes.NewReader(body))
	fatal(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", kind)
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(raw), err
}

func (s *server) apply(t *testing.T, o object, dry bool) (int, string) {
	t.Helper()
	path := resources[o.kind]
	if strings.Contains(path, "%s") {
		path = fmt.Sprintf(path, o.namespace)
	}
	path += "/" + o.name + "?fieldManager=otelcol-llm&fieldValidation=Strict"
	if dry {
		path += "&dryRun=All"
	}
	code, answer, err := s.do(t, http.MethodPatch, path, "application/apply-patch+yaml", o.raw)
	fatal(t, err)
	return code, answer
}

// start starts etcd and the API server on loopback; they end with the test.
func start(t *testing.T) *server {
	t.Helper()
	bin := os.Getenv("KUBEAPI_BIN")
	if bin == "" {
		t.Skip("KUBEAPI_BIN is not set; make test-kubernetes builds etcd and the API server and sets it")
	}
	dir := t.TempDir()
	ports := freePorts(t, 3)
	etcd := "http://127.0.0.1:" + ports[0]
	run(t, dir, nil, filepath.Join(bin, "etcd"), "--data-dir="+filepath.Join(dir, "etcd"), "--listen-client-urls="+etcd, "--advertise-client-urls="+etcd,
		"--listen-peer-urls=http://127.0.0.1:"+ports[1], "--log-level=error")
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	fatal(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	fatal(t, err)
	keyFile, tokens := filepath.Join(dir, "sa.key"), filepath.Join(dir, "tokens.csv")
	fatal(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	fatal(t, os.WriteFile(tokens, []byte(token+`,admin,admin,"system:masters"`+"\n"+agentToken+","+agent+","+agent+"\n"), 0o600))
	run(t, dir, nil, filepath.Join(bin, "apiserver"), "--etcd-servers="+etcd, "--secure-port="+ports[2], "--bind-address=127.0.0.1", "--cert-dir="+filepath.Join(dir, "certs"),
		"--service-account-key-file="+keyFile, "--service-account-signing-key-file="+keyFile, "--service-account-issuer=https://kubernetes.default.svc",
		"--token-auth-file="+tokens, "--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24", "--disable-admission-plugins=ServiceAccount")
	s := &server{"https://127.0.0.1:" + ports[2], &http.Client{
		Timeout:   30 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, // its own certificate, on loopback
	}}
	t.Cleanup(s.client.CloseIdleConnections)
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		if code, _, err := s.do(t, http.MethodGet, "/readyz", "", nil); err == nil && code == http.StatusOK {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatal("the API server is not ready")
		}
	}
}

// run starts a process in a folder, with variables beside those of the test. It ends with the test, which shows the end of its log when it fails.
func run(t *testing.T, dir string, env []string, bin string, args ...string) {
	t.Helper()
	fatal(t, os.MkdirAll(dir, 0o700))
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	log, err := os.Create(filepath.Join(dir, filepath.Base(bin)+".log"))
	fatal(t, err)
	cmd.Stdout, cmd.Stderr = log, log
	fatal(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
		_ = log.Close()
		if raw, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("%s: %s", log.Name(), raw[max(0, len(raw)-2000):])
		}
	})
}

func freePorts(t *testing.T, n int) []string {
	t.Helper()
	var out []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		fatal(t, err)
		defer l.Close() // all at the end, so that no port comes twice
		_, port, err := net.SplitHostPort(l.Addr().String())
		fatal(t, err)
		out = append(out, port)
	}
	return out
}

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
