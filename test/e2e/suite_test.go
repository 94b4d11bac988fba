// SPDX-License-Identifier: Apache-2.0

// Package e2e tries Regatta as its users do: on a real Kubernetes, by kubectl,
// helm and regatta.
package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/manager"
	"github.com/regatta-sh/regatta/test/cluster/local"
	"github.com/regatta-sh/regatta/test/install"
)

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(2 * time.Minute)
	SetDefaultEventuallyPollingInterval(300 * time.Millisecond)
	RunSpecs(t, "Regatta")
}

// The specs that took longest are printed at the end, since all of them together have to
// fit into CI. Then what failed, the first last: it may be why the others failed. Ginkgo prints
// its own summary after this report, with no more than the line of each failure. So make prints
// the end of failures.out after that.
var _ = ReportAfterSuite("slowest specs and failures", func(r Report) {
	specs := slices.Clone(r.SpecReports)
	slices.SortStableFunc(specs, func(a, b SpecReport) int { return cmp.Compare(b.RunTime, a.RunTime) })
	fmt.Printf("\nThe slowest of %d specs and nodes, of %s in all:\n", len(specs), r.RunTime.Round(time.Second))
	for _, s := range specs[:min(len(specs), 10)] {
		fmt.Printf("%8s  %s %s\n", s.RunTime.Round(100*time.Millisecond), s.LeafNodeType, s.FullText())
	}
	failures := formatFailures(r)
	fmt.Print(failures)
	if root, err := install.Root(); err == nil && failures != "" {
		if err := os.WriteFile(filepath.Join(root, "failures.out"), []byte(failures), 0o644); err != nil {
			fmt.Println(err)
		}
	}
})

// formatFailures returns what failed and why, the first failure last.
func formatFailures(r Report) string {
	failed := slices.DeleteFunc(slices.Clone(r.SpecReports), func(s SpecReport) bool { return !s.Failed() })
	slices.SortStableFunc(failed, func(a, b SpecReport) int { return b.EndTime.Compare(a.EndTime) })
	var out strings.Builder
	for _, s := range failed {
		fmt.Fprintf(&out, "\nFailed after %s: %s %s (seed %d)\n", s.EndTime.Sub(r.StartTime).Round(time.Second), s.LeafNodeType, s.FullText(), r.SuiteConfig.RandomSeed)
		for _, e := range s.ReportEntries {
			if strings.HasPrefix(e.Name, notRunning) {
				fmt.Fprintf(&out, "%s: %.600s\n", e.Name, e.StringRepresentation())
			}
		}
		lines := strings.Split(strings.TrimSpace(s.FailureMessage()), "\n")
		for _, line := range lines[:min(len(lines), 12)] {
			fmt.Fprintf(&out, "%.300s\n", line)
		}
	}
	return out.String()
}

// A spec that fails may leave a part of the cluster ended. The report says which and why, and it is
// started again: else all specs behind it would fail too.
var _ = AfterEach(func(ctx SpecContext) {
	if shared.cluster == nil || !CurrentSpecReport().Failed() {
		return
	}
	ended := restartEnded()
	if len(ended) > 0 {
		Eventually(shared.cluster.Check).WithContext(ctx).Should(Succeed())
	}
}, NodeTimeout(3*time.Minute))

// restarting is held while processes are started again: a spec that restarts one may fail meanwhile.
var restarting sync.Mutex

// restartEnded starts the processes of the local cluster that do not run, or those of some names alone, reports
// why they ended, and returns them.
func restartEnded(names ...string) []local.EndedProcess {
	GinkgoHelper()
	restarting.Lock()
	defer restarting.Unlock()
	ended, err := shared.cluster.ListEnded()
	Expect(err).NotTo(HaveOccurred())
	ended = slices.DeleteFunc(ended, func(one local.EndedProcess) bool { return len(names) > 0 && !slices.Contains(names, one.Name) })
	for _, one := range ended {
		AddReportEntry(notRunning+one.Name, one.Why)
	}
	for _, one := range ended {
		if err := shared.cluster.Start(one.Name); err != nil && !strings.HasSuffix(err.Error(), "runs already") { // by another process of Ginkgo
			Fail(err.Error())
		}
	}
	return ended
}

// notRunning is what the names of report entries about processes begin with.
const notRunning = "not running: "

// world is what all specs share.
type world struct {
	root      string
	programs  map[string]string
	installed install.Installed
	// real is true when nodes run containers.
	real bool
	// auditLog is the API server's, "" for a cluster that is not ours.
	auditLog string
	// cluster is the local one, nil for one that is not ours.
	cluster *local.Cluster
	k8s     client.Client
	// config is that of k8s, for other clients.
	config *rest.Config
}

var shared world

// handedOver is what the first process of a run tells the others.
type handedOver struct {
	Root      string
	Programs  map[string]string
	Installed install.Installed
	Real      bool
	// Cluster is the name of the local one, "" for one that is not ours.
	Cluster string
}

// localCluster is the name of the cluster that the specs run on: another one for each
// working copy whose specs run at the same time.
var localCluster = cmp.Or(os.Getenv("E2E_CLUSTER"), "e2e")

// gates are those that the specs need beside the ones that are on by default.
func gates() []string {
	return []string{"--set", "featureGates=" + strings.Join([]string{"ImagePullJobGate=true", "ResourceDistributionGate=true", "SidecarTerminator=true", "EnhancedLivenessProbe=true",
		"PreDownloadImageForInPlaceUpdate=true", "PreDownloadImageForDaemonSetUpdate=true", "InPlaceWorkloadVerticalScaling=true", "StatefulSetAutoResizePVCGate=true", "LaunchPriorityNativeSidecars=true"}, `\,`)}
}

// Specs run in several processes, in namespaces of their own. A spec that changes what
// others see is Serial: a bundle or a SidecarSet that concerns objects of others, the installation,
// a manager or a node that stops. The first process runs these when all others have ended.
//
// E2E_KUBERNETES is a minor version of Kubernetes for the local cluster, such as 1.34.
// E2E_KUBECONFIG runs the tests on another cluster, with E2E_IMAGE as the image
// of the manager; E2E_ALL_FAULTS=1 tries each outage with both failure policies; E2E_KEEP leaves the local cluster for a look, E2E_CLUSTER names it.
var _ = SynchronizedBeforeSuite(func(ctx SpecContext) []byte {
	root, err := install.Root()
	Expect(err).NotTo(HaveOccurred())
	programs, err := install.Build(ctx, root, filepath.Join(root, "bin"), GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	in := install.Options{Root: root, Programs: programs, Kubeconfig: os.Getenv("E2E_KUBECONFIG"), Image: os.Getenv("E2E_IMAGE"), Values: gates(), Extra: []string{"opa"}, Out: GinkgoWriter}
	out := handedOver{Root: root, Programs: programs, Real: true}
	if in.Kubeconfig == "" {
		o := local.Options{Name: localCluster, Kubernetes: os.Getenv("E2E_KUBERNETES"), Out: GinkgoWriter, Real: 3, CSI: true}
		if os.Geteuid() != 0 {
			o.Real, o.CSI, o.Simulated, out.Real = 0, false, 6, false
		}
		in.Cluster, err = local.Up(ctx, o)
		Expect(err).NotTo(HaveOccurred())
		out.Cluster = localCluster
	}
	out.Installed, err = install.Install(ctx, in)
	Expect(err).NotTo(HaveOccurred())
	if in.Cluster != nil && out.Real {
		loadHotUpgradeSample(ctx, root, in.Cluster)
	}
	text, err := json.Marshal(out)
	Expect(err).NotTo(HaveOccurred())
	return text
}, func(text []byte) {
	var in handedOver
	Expect(json.Unmarshal(text, &in)).To(Succeed())
	shared = world{root: in.Root, programs: in.Programs, installed: in.Installed, real: in.Real}
	var err error
	if in.Cluster != "" {
		shared.cluster, err = local.Open(in.Cluster)
		Expect(err).NotTo(HaveOccurred())
		shared.auditLog = shared.cluster.State.AuditLog()
	}
	config, err := clientcmd.BuildConfigFromFlags("", shared.installed.Kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	shared.config = config
	scheme, err := manager.NewScheme()
	Expect(err).NotTo(HaveOccurred())
	shared.k8s, err = client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(40*time.Minute))

var _ = SynchronizedAfterSuite(func() {}, func(ctx SpecContext) {
	if os.Getenv("E2E_KUBECONFIG") == "" && os.Getenv("E2E_KEEP") == "" {
		Expect(local.Down(ctx, localCluster, GinkgoWriter)).To(Succeed())
	}
}, NodeTimeout(5*time.Minute))
