// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// user types commands in a namespace of their own.
type user struct {
	ctx       context.Context
	namespace string
}

// newUser makes a namespace that goes with the spec. What is in it goes first,
// while the manager is there to let it go.
func newUser(ctx context.Context) *user {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
	Expect(shared.k8s.Create(ctx, ns)).To(Succeed())
	u := &user{ctx: ctx, namespace: ns.Name}
	DeferCleanup(func(ctx context.Context) {
		if CurrentSpecReport().Failed() {
			u.ctx = ctx
			for _, args := range [][]string{{"get", "clonesets", "-o", "yaml"}, {"get", "pods", "-o", "wide"}, {"get", "events"}} {
				out, _ := u.try("kubectl", append([]string{"-n", ns.Name}, args...)...)
				AddReportEntry("kubectl "+strings.Join(args, " "), out)
			}
			out, _ := u.try("kubectl", "-n", "kruise-system", "logs", "-l", "control-plane=controller-manager", "--tail=100")
			AddReportEntry("manager", out)
		}
		Expect(shared.k8s.DeleteAllOf(ctx, &v1beta1.CloneSet{}, client.InNamespace(ns.Name))).To(Succeed())
		Expect(shared.k8s.Delete(ctx, ns)).To(Succeed())
	})
	return u
}

func (u *user) try(name string, args ...string) (string, error) {
	if name == "kubectl" && runsInProcess(args) {
		return runKubectl(shared.installed.Kubeconfig, args...)
	}
	path := filepath.Join(shared.installed.Tools, name)
	if name == "regatta" {
		path = shared.programs["regatta"]
	}
	command := exec.CommandContext(u.ctx, path, args...)
	command.Env = shared.installed.Env(shared.programs)
	command.Dir = shared.root
	out, err := command.CombinedOutput()
	return string(out), err
}

// ran fails the spec with what a command printed, which says more than how it exited.
func ran(err error, out, name string, args []string) {
	GinkgoHelper()
	if err != nil {
		Fail(fmt.Sprintf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out))
	}
}

// kubectl runs kubectl in the user's namespace and returns what it prints.
func (u *user) kubectl(args ...string) string {
	GinkgoHelper()
	out, err := u.try("kubectl", append([]string{"-n", u.namespace}, args...)...)
	ran(err, out, "kubectl", args)
	return strings.TrimSpace(out)
}

// helm runs helm and returns what it prints.
func (u *user) helm(args ...string) string {
	GinkgoHelper()
	out, err := u.try("helm", args...)
	ran(err, out, "helm", args)
	return out
}

// refused runs kubectl with a manifest and returns why it was refused.
func (u *user) refused(manifest string) string {
	GinkgoHelper()
	out, err := u.pipe(manifest)
	Expect(err).To(HaveOccurred(), "the API server took it:\n%s\n%s", manifest, out)
	return out
}

// apply applies a manifest. A webhook that had no time on a busy machine says to try again, so it is applied again then.
func (u *user) apply(manifest string) {
	GinkgoHelper()
	out, err := u.pipe(manifest)
	for tries := 0; err != nil && tries < 5 && strings.Contains(out, "try again: context deadline exceeded"); tries++ {
		out, err = u.pipe(manifest)
	}
	ran(err, out+"\n"+manifest, "kubectl", []string{"apply", "-f", "-"})
}

// pipe applies a manifest and returns what kubectl prints.
func (u *user) pipe(manifest string) (string, error) {
	file, err := os.CreateTemp("", "manifest-*.yaml")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	if _, err := file.WriteString(manifest); err != nil {
		return "", err
	}
	if err := file.Close(); err != nil {
		return "", err
	}
	return runKubectl(shared.installed.Kubeconfig, "-n", u.namespace, "apply", "-f", file.Name())
}

// why asks regatta why.
func (u *user) why(args ...string) string {
	GinkgoHelper()
	args = append([]string{"why", "-n", u.namespace}, args...)
	if e := shared.installed.Endpoint; e != "" {
		args = append(args, "--endpoint", e, "--insecure-skip-tls-verify")
	}
	out, err := u.try("regatta", args...)
	ran(err, out, "regatta", args)
	return out
}

func (u *user) cloneSet(name string) *v1beta1.CloneSet {
	GinkgoHelper()
	set := &v1beta1.CloneSet{}
	Expect(shared.k8s.Get(u.ctx, client.ObjectKey{Namespace: u.namespace, Name: name}, set)).To(Succeed())
	return set
}

// pods are the pods of an app that are not on their way out, by name.
func (u *user) pods(app string) map[string]*corev1.Pod {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(shared.k8s.List(u.ctx, list, client.InNamespace(u.namespace), client.MatchingLabels{"app": app})).To(Succeed())
	out := map[string]*corev1.Pod{}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			out[list.Items[i].Name] = &list.Items[i]
		}
	}
	return out
}

func (u *user) status(name string) string {
	s := u.cloneSet(name)
	return fmt.Sprintf("observed=%t updated=%d available=%d updatedAvailable=%d total=%d", s.Status.ObservedGeneration == s.Generation,
		s.Status.UpdatedReplicas, s.Status.AvailableReplicas, s.Status.UpdatedAvailableReplicas, s.Status.Replicas)
}

// settled is the status of a CloneSet whose n pods all are as they should be.
func settled(n int) string {
	return fmt.Sprintf("observed=true updated=%d available=%d updatedAvailable=%d total=%d", n, n, n, n)
}

func (u *user) events(name, reason string) []string {
	GinkgoHelper()
	list := &corev1.EventList{}
	Expect(shared.k8s.List(u.ctx, list, client.InNamespace(u.namespace))).To(Succeed())
	var out []string
	for _, e := range list.Items {
		if e.InvolvedObject.Name == name && e.Reason == reason {
			out = append(out, e.Message)
		}
	}
	return out
}
