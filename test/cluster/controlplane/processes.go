// SPDX-License-Identifier: Apache-2.0

// Package controlplane starts etcd, the API server, the controller manager and
// the scheduler of a cluster as processes on the host.
package controlplane

import (
	"fmt"
	"slices"
	"strings"

	"github.com/regatta-sh/regatta/test/cluster/credentials"
	"github.com/regatta-sh/regatta/test/cluster/process"
	"github.com/regatta-sh/regatta/test/cluster/state"
)

// Names of the processes.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Delay             = "delay"
)

// Options tune the control plane.
type Options struct {
	// StockQPS leaves the controller manager at its own limit of 20 requests
	// a second and controller, which takes 50 seconds to create 1,000 pods
	// for a Deployment and five seconds to start. Otherwise it is as good as
	// unlimited, and the scheduler's 50 a second is what bounds everybody.
	StockQPS bool
	// SchedulerQPS, where not 0, replaces that.
	SchedulerQPS int
	// FeatureGates are those of the API server and of the controller manager, such as
	// MaxUnavailableStatefulSet=true.
	FeatureGates []string
	// Self is the cluster command, which delays requests where they are to be.
	Self string
}

// unlimited is a rate that no controller reaches.
const unlimited = 2000

// Processes lists what to run, in the order in which to start it.
func Processes(s *state.State, programs map[string]string, options Options) []process.Spec {
	spec := func(name string, args ...string) process.Spec {
		return process.Spec{Name: name, Path: programs[name], Args: args, Log: s.Log(name)}
	}
	managerQPS := unlimited
	if options.StockQPS {
		managerQPS = 0
	}
	processes := []process.Spec{
		spec(Etcd, etcdArgs(s)...),
		spec(APIServer, append(apiServerArgs(s), gateArgs(options.FeatureGates)...)...),
		spec(ControllerManager, slices.Concat(controllerManagerArgs(s), qpsArgs(managerQPS), gateArgs(options.FeatureGates))...),
		spec(Scheduler, append(schedulerArgs(s), qpsArgs(options.SchedulerQPS)...)...),
	}
	if s.Delay > 0 { // once the API server runs, before the first that goes that way
		processes = slices.Insert(processes, 2, process.Spec{Name: Delay, Path: options.Self, Args: []string{"delay", "--dir=" + s.Dir}, Log: s.Log(Delay)})
	}
	return processes
}

func etcdArgs(s *state.State) []string {
	client := fmt.Sprintf("http://127.0.0.1:%d", s.Ports.Etcd)
	peer := fmt.Sprintf("http://127.0.0.1:%d", s.Ports.EtcdPeer)
	return []string{
		"--data-dir=" + s.Path("etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer,
		// The data need not survive a power cut.
		"--unsafe-no-fsync",
		"--quota-backend-bytes=8589934592",
		"--log-level=warn",
	}
}

func apiServerArgs(s *state.State) []string {
	args := []string{
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", s.Ports.Etcd),
		"--bind-address=" + s.APIServerHost(),
		fmt.Sprintf("--secure-port=%d", s.Ports.APIServer),
		// Loopback is refused here, even if no remote client is to connect.
		"--advertise-address=" + s.Plan.Host().String(),
		"--service-cluster-ip-range=" + s.Plan.Services().String(),
		"--tls-cert-file=" + pki(s, credentials.ServerFile),
		"--tls-private-key-file=" + pki(s, credentials.ServerKeyFile),
		"--client-ca-file=" + pki(s, credentials.AuthorityFile),
		"--cert-dir=" + s.Path("pki"),
		"--token-auth-file=" + tokenFile(s),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + pki(s, credentials.AccountsFile),
		"--service-account-signing-key-file=" + pki(s, credentials.AccountsKeyFile),
		// Webhooks and aggregated APIs are called at pod addresses: there is
		// no kube-proxy on the host that would make service addresses work.
		"--enable-aggregator-routing",
		"--kubelet-preferred-address-types=InternalIP",
		"--audit-policy-file=" + auditPolicyFile(s),
		"--audit-log-path=" + s.AuditLog(),
		// A rotated log would be counted from its middle.
		"--audit-log-maxsize=4096",
		"--profiling=false",
	}
	for flag, value := range credentials.FrontProxyFlags(s.Path("pki")) {
		args = append(args, "--"+flag+"="+value)
	}
	slices.Sort(args)
	if s.Delay > 0 { // the Service kubernetes is to lead to the longer way, see Endpoints
		args = append(args, "--endpoint-reconciler-type=none")
	}
	return args
}

func controllerManagerArgs(s *state.State) []string {
	args := []string{
		"--kubeconfig=" + s.Users["system:kube-controller-manager"],
		// Its own is 15 s, which a spec waits for at each step.
		"--horizontal-pod-autoscaler-sync-period=5s",
		"--leader-elect=false",
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", s.Ports.ControllerManager),
		"--cert-dir=" + s.Path("pki", "controller-manager"),
		// Each controller then writes under its own name in the audit log.
		"--use-service-account-credentials",
		"--service-account-private-key-file=" + pki(s, credentials.AccountsKeyFile),
		"--root-ca-file=" + pki(s, credentials.AuthorityFile),
		"--cluster-signing-cert-file=" + pki(s, credentials.AuthorityFile),
		"--cluster-signing-key-file=" + pki(s, credentials.AuthorityKeyFile),
		"--profiling=false",
	}
	if s.Delay > 0 {
		args = append(args, "--master=https://"+s.DelayedAddress())
	}
	return args
}

func schedulerArgs(s *state.State) []string {
	return []string{
		"--kubeconfig=" + s.Users["system:kube-scheduler"],
		"--leader-elect=false",
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", s.Ports.Scheduler),
		"--cert-dir=" + s.Path("pki", "scheduler"),
		"--profiling=false",
	}
}

func qpsArgs(qps int) []string {
	if qps == 0 {
		return nil
	}
	return []string{fmt.Sprintf("--kube-api-qps=%d", qps), fmt.Sprintf("--kube-api-burst=%d", 2*qps)}
}

func gateArgs(gates []string) []string {
	if len(gates) == 0 {
		return nil
	}
	return []string{"--feature-gates=" + strings.Join(gates, ",")}
}

func pki(s *state.State, name string) string { return s.Path("pki", name) }
