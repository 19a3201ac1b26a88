// Package tiers tests the roles together: the built binary as agents and gateways, backends on loopback in the test's own process, and
// faults. What is sent is known to the span, so that every figure that arrives is compared with it. docs/reliability.md has the results.
//
// The tests have the build tag e2e (make test-e2e). Agents and gateways run in mount namespaces of their own, so that a test can say what
// the gateways' DNS name resolves to and how large a disk is; without the right to make one they are skipped.
package tiers
