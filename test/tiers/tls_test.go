//go:build e2e

package tiers

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t testing.TB, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// folder writes ca.crt, tls.crt and tls.key for a name, as a Kubernetes secret has them.
func (a *authority) folder(t testing.TB, name string, trusts *authority) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	require.NoError(t, err)
	private, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	dir := t.TempDir()
	for file, content := range map[string][]byte{
		"ca.crt": trusts.pem, "tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), content, 0o600))
	}
	return dir
}

// An agent with the certificates and the token of deploy/overlays gets through; without a certificate, with one of another authority, and
// without the token or with a wrong one nobody does.
func TestTLSAndTokenBetweenTheTiers(t *testing.T) {
	ca, other := newAuthority(t, "tiers"), newAuthority(t, "other")
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("right"), 0o600))
	top := newTopology(t)
	top.gatewayConfigs = append([]string{overlay(t, "gateway-tls.yaml")}, top.gatewayConfigs...)
	top.agentConfigs = append([]string{overlay(t, "agent-tls.yaml")}, top.agentConfigs...)
	top.gatewayEnv = []string{"OTELCOL_LLM_TOKEN_FILE=" + token, "OTELCOL_LLM_TLS_DIR=" + ca.folder(t, gatewayName, ca)}
	node := ca.folder(t, "node-0", ca)
	top.agentEnv = []string{"OTELCOL_LLM_TOKEN_FILE=" + token, "OTELCOL_LLM_TLS_DIR=" + node}
	top.gateway(t, 0)
	top.gateway(t, 1)
	top.resolve(t, 0, 1)
	a := top.agent(t, "node-0")
	tr := newTraffic(t, shape{prompt: 64, answer: 64})
	raw := make([]byte, len(tr.templates[0]))
	for range 10 {
		tr.send(context.Background(), []string{a.otlp}, 0, raw)
	}
	sender.CloseIdleConnections()
	sent := tr.acknowledged()
	until(t, "all requests are measured", func() bool { return top.backends.counter("llm_requests_total") >= float64(len(sent)) })
	until(t, "metrics get through as well", func() bool { return top.backends.counter("system_cpu_time_seconds_total") > 0 })
	top.settled(t, a)
	got := top.backends.compare(sent)
	assert.Zero(t, got.missing+got.partial+got.unexpected+got.dishonest, "%v", got)

	for _, c := range []struct {
		name, folder, token string
		want                codes.Code
	}{
		{"certificate and token", node, "Bearer right", codes.OK},
		{"no token", node, "", codes.Unauthenticated},
		{"another token", node, "Bearer wrong", codes.Unauthenticated},
		{"no certificate", "", "Bearer right", codes.Unavailable},
		{"certificate of another authority", other.folder(t, "node-0", ca), "Bearer right", codes.Unavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := export1(t, address(0)+":"+top.port, ca, c.folder, c.token)
			assert.Equal(t, c.want, status.Code(err), "%v", err)
		})
	}
	top.clean(t)
}

// export1 sends an empty request to a gateway.
func export1(t testing.TB, addr string, trusts *authority, folder, token string) error {
	t.Helper()
	conf := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: gatewayName, MinVersion: tls.VersionTLS13}
	conf.RootCAs.AddCert(trusts.cert)
	if folder != "" {
		cert, err := tls.LoadX509KeyPair(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
		require.NoError(t, err)
		// Sent whatever authorities the server names: it is the server that has to refuse.
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
	}
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(credentials.NewTLS(conf)))
	require.NoError(t, err)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", token)
	}
	_, err = ptraceotlp.NewGRPCClient(conn).Export(ctx, ptraceotlp.NewExportRequest())
	return err
}
