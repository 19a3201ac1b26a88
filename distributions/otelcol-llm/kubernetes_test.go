package distribution_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-llm/otelcol-llm/distributions/otelcol-llm/configs"
)

// These tests hold the manifests together; that a real API server accepts them is checked by make test-kubernetes.

const manifests = root + "/deploy/kubernetes"

// object is one Kubernetes object, read as far as the tests need it.
type object struct {
	Kind     string
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Data map[string]string
	Spec struct {
		Selector    yaml.Node
		ServiceName string `yaml:"serviceName"`
		ClusterIP   string `yaml:"clusterIP"`
		Ports       []struct {
			TargetPort string `yaml:"targetPort"`
		}
		PodSelector selector `yaml:"podSelector"`
		Ingress     []struct {
			Ports []struct{ Port string }
		}
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				Containers []container
				Volumes    []struct {
					Name      string
					ConfigMap struct{ Name string } `yaml:"configMap"`
				}
				ServiceAccountName string `yaml:"serviceAccountName"`
			}
		}
	}
}

type selector struct {
	MatchLabels map[string]string `yaml:"matchLabels"`
}

type container struct {
	Args  []string
	Env   []struct{ Name, Value string }
	Ports []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	Resources struct {
		Limits map[string]string
	}
	StartupProbe, ReadinessProbe, LivenessProbe probe
}

// UnmarshalYAML reads the probes' keys, which begin with a small letter.
func (c *container) UnmarshalYAML(n *yaml.Node) error {
	type plain container
	var probes struct {
		Startup   probe `yaml:"startupProbe"`
		Readiness probe `yaml:"readinessProbe"`
		Liveness  probe `yaml:"livenessProbe"`
	}
	if err := n.Decode((*plain)(c)); err != nil {
		return err
	}
	err := n.Decode(&probes)
	c.StartupProbe, c.ReadinessProbe, c.LivenessProbe = probes.Startup, probes.Readiness, probes.Liveness
	return err
}

type probe struct {
	HTTPGet struct{ Port string } `yaml:"httpGet"`
}

func (c *container) env(name string) string {
	for _, e := range c.Env {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}

func (c *container) hasPort(name string) bool {
	for _, p := range c.Ports {
		if p.Name == name || strconv.Itoa(p.ContainerPort) == name {
			return true
		}
	}
	return false
}

// objects are all objects of the manifests, by kind and name.
func objects(t *testing.T) map[string]*object {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(manifests, "*.yaml"))
	require.NoError(t, err)
	out := map[string]*object{}
	for _, f := range files {
		if filepath.Base(f) == "kustomization.yaml" {
			continue
		}
		raw, err := os.ReadFile(f)
		require.NoError(t, err)
		for d := yaml.NewDecoder(bytes.NewReader(raw)); ; {
			o := &object{}
			err := d.Decode(o)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, f)
			key := o.Kind + " " + o.Metadata.Name
			require.NotContains(t, out, key, "twice")
			out[key] = o
		}
	}
	return out
}

func TestKustomizationNamesEveryManifest(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(manifests, "kustomization.yaml"))
	require.NoError(t, err)
	var k struct{ Resources []string }
	require.NoError(t, yaml.Unmarshal(raw, &k))
	files, err := filepath.Glob(filepath.Join(manifests, "*.yaml"))
	require.NoError(t, err)
	var names []string
	for _, f := range files {
		if b := filepath.Base(f); b != "kustomization.yaml" {
			names = append(names, b)
		}
	}
	assert.ElementsMatch(t, names, k.Resources)
}

func TestManifestsFitTogether(t *testing.T) {
	all := objects(t)
	for workload, config := range map[string]string{"DaemonSet otelcol-llm-agent": "agent", "StatefulSet otelcol-llm-gateway": "gateway"} {
		t.Run(config, func(t *testing.T) {
			w := all[workload]
			require.NotNil(t, w)
			var s selector
			require.NoError(t, w.Spec.Selector.Decode(&s))
			assert.Equal(t, s.MatchLabels, w.Spec.Template.Metadata.Labels)
			assert.Contains(t, all, "ServiceAccount "+w.Spec.Template.Spec.ServiceAccountName)
			policy := all["NetworkPolicy otelcol-llm-"+config]
			require.NotNil(t, policy)
			assert.Equal(t, s.MatchLabels, policy.Spec.PodSelector.MatchLabels)
			c := w.Spec.Template.Spec.Containers[0]
			for _, in := range policy.Spec.Ingress {
				for _, p := range in.Ports {
					assert.True(t, c.hasPort(p.Port), "the policy lets in to %s", p.Port)
				}
			}
			for _, p := range []probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
				assert.True(t, c.hasPort(p.HTTPGet.Port) && p.HTTPGet.Port != "", "a probe asks %q", p.HTTPGet.Port)
			}
			assert.Contains(t, c.Args, "--config=builtin:"+config)
			for _, v := range w.Spec.Template.Spec.Volumes {
				if v.ConfigMap.Name != "" {
					assert.Contains(t, all, "ConfigMap "+v.ConfigMap.Name)
				}
			}

			// A variable that the configuration does not read would be a typo.
			raw, err := configs.Read(config)
			require.NoError(t, err)
			overlay := all["ConfigMap otelcol-llm-"+config].Data["kubernetes.yaml"]
			for _, e := range c.Env {
				if strings.HasPrefix(e.Name, "OTELCOL_LLM_") {
					assert.Contains(t, string(raw)+overlay, "${env:"+e.Name, e.Name)
				}
			}

			// Refusals first, then harder garbage collection, then the kernel.
			limiter, err := strconv.Atoi(c.env("OTELCOL_LLM_MEMORY_MIB"))
			require.NoError(t, err)
			gomemlimit, err := strconv.Atoi(strings.TrimSuffix(c.env("GOMEMLIMIT"), "MiB"))
			require.NoError(t, err)
			assert.Greater(t, gomemlimit, limiter*11/10)
			assert.Greater(t, mebibytes(t, c.Resources.Limits["memory"]), gomemlimit*11/10)
		})
	}
}

func mebibytes(t *testing.T, s string) int {
	t.Helper()
	factor := map[string]int{"Mi": 1, "Gi": 1024}[s[max(0, len(s)-2):]]
	n, err := strconv.Atoi(s[:max(0, len(s)-2)])
	require.NoError(t, err, s)
	require.Positive(t, factor, s)
	return n * factor
}

// The agents' name for the gateways is that of a Service without an address, at the port where the gateways listen.
func TestAgentsFindTheGateways(t *testing.T) {
	all := objects(t)
	service, gateway := all["Service otelcol-llm-gateway"], all["StatefulSet otelcol-llm-gateway"]
	assert.Equal(t, "None", service.Spec.ClusterIP)
	assert.Equal(t, service.Metadata.Name, gateway.Spec.ServiceName)
	var labels map[string]string
	require.NoError(t, service.Spec.Selector.Decode(&labels))
	assert.Equal(t, labels, gateway.Spec.Template.Metadata.Labels)
	agent := all["DaemonSet otelcol-llm-agent"].Spec.Template.Spec.Containers[0]
	assert.Equal(t, service.Metadata.Name+".otelcol-llm.svc.cluster.local", agent.env("OTELCOL_LLM_GATEWAY"))
	c := gateway.Spec.Template.Spec.Containers[0]
	assert.Equal(t, c.env("OTELCOL_LLM_GATEWAY_PORT"), agent.env("OTELCOL_LLM_GATEWAY_PORT"))
	assert.True(t, c.hasPort(agent.env("OTELCOL_LLM_GATEWAY_PORT")))
	for _, p := range service.Spec.Ports {
		assert.True(t, c.hasPort(p.TargetPort), p.TargetPort)
	}
}

// What the ConfigMaps put over the shipped configurations, and every file of deploy/overlays, is accepted by the binary.
func TestValidateDeployments(t *testing.T) {
	bin := binary(t)
	t.Setenv("OTELCOL_LLM_NODE", "node-0")
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(token, []byte("x"), 0o600))
	t.Setenv("OTELCOL_LLM_TOKEN_FILE", token)
	t.Setenv("OTELCOL_LLM_TLS_DIR", dir)
	t.Setenv("OTELCOL_LLM_GATEWAY", "gateways")
	for _, config := range []string{"agent", "gateway"} {
		overlay := objects(t)["ConfigMap otelcol-llm-"+config].Data["kubernetes.yaml"]
		require.NotEmpty(t, overlay)
		file := filepath.Join(dir, config+".yaml")
		require.NoError(t, os.WriteFile(file, []byte(overlay), 0o600))
		assert.NoError(t, validate(t, bin, "builtin:"+config, file), "ConfigMap of the %s", config)
	}
	overlays, err := filepath.Glob(filepath.Join(root, "deploy", "overlays", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, overlays)
	for _, f := range overlays {
		config, _, _ := strings.Cut(filepath.Base(f), "-")
		require.True(t, slices.Contains(configs.Names(), config), "%s is called <configuration>-<what>.yaml", f)
		abs, err := filepath.Abs(f)
		require.NoError(t, err)
		assert.NoError(t, validate(t, bin, "builtin:"+config, abs), f)
	}
}

// The head of each configuration lists every variable that it reads, and none that it does not.
func TestConfigurationsListTheirVariables(t *testing.T) {
	used, listed := regexp.MustCompile(`\$\{env:(OTELCOL_LLM_\w+)`), regexp.MustCompile(`OTELCOL_LLM_\w+`)
	for _, name := range configs.Names() {
		raw, err := configs.Read(name)
		require.NoError(t, err)
		head, body, found := strings.Cut(string(raw), "\nreceivers:")
		require.True(t, found, name)
		want, got := map[string]bool{}, map[string]bool{}
		for _, m := range used.FindAllStringSubmatch(body, -1) {
			want[m[1]] = true
		}
		for _, m := range listed.FindAllString(head, -1) {
			got[m] = true
		}
		assert.Equal(t, want, got, name)
	}
}
