// SPDX-License-Identifier: Apache-2.0

package shipped

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/policybundle/bundlerevision"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/test/apiserver"
)

// shop is an API server, and a user who types commands.
type shop struct {
	*testing.T
	client.Client
	kubeconfig string
	config     *rest.Config
}

func open(t *testing.T) *shop {
	t.Helper()
	env, c := apiserver.Serve(t)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, env.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return &shop{t, c, path, env.Config}
}

func (s *shop) do(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// types runs a command and returns what it printed and its exit code.
func (s *shop) types(line string) (string, int) {
	s.Helper()
	root := &cobra.Command{Use: "policy", SilenceUsage: true}
	root.AddCommand(NewCommands(func(path string) (*bundle.Bundle, error) { return bundle.FromFS("local", os.DirFS(path)) })...)
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(append(strings.Fields(line), "--kubeconfig", s.kubeconfig))
	err := exit.WithExitCodes(root).ExecuteContext(s.Context())
	return out.String(), exit.Code(err)
}

func (s *shop) want(line string, code int, parts ...string) {
	s.Helper()
	got, is := s.types(line)
	if is != code {
		s.Errorf("%s ended with %d, want %d: %s", line, is, code, got)
	}
	for _, part := range parts {
		if !strings.Contains(got, part) {
			s.Errorf("%s printed\n%s\nwhich has no %q", line, got, part)
		}
	}
}

func rule(reason string) map[string]string {
	return map[string]string{"a.rego": fmt.Sprintf("package extend.rollout.a\n\nhold contains {\"reason\": %q, \"message\": \"m\"}\n", reason)}
}

// keep keeps a revision as the manager does.
func (s *shop) keep(of *v1alpha1.ClusterPolicyBundle, reason string) v1alpha1.PolicyArtifact {
	s.Helper()
	b, err := bundle.FromFiles(of.Name, rule(reason))
	s.do(err)
	var archive bytes.Buffer
	s.do(b.BuildArchive(&archive, bundle.Build{}))
	kept, err := bundlerevision.Store{Client: s, Reader: s, Namespace: "kruise-system"}.SaveArchive(s.Context(), of, archive.Bytes(), "files")
	s.do(err)
	return v1alpha1.PolicyArtifact{Revision: bundle.ShortRevision(b.Revision), Content: b.Revision, Digest: bundlerevision.ArchiveDigest(archive.Bytes()), Reference: "files", KeptIn: kept, Generation: 1, Time: metav1.Now()}
}

// stand plays the manager: it says that all replicas run what the spec says.
func (s *shop) stand(name string, change func(*v1alpha1.ClusterPolicyBundle)) {
	s.Helper()
	b := &v1alpha1.ClusterPolicyBundle{}
	s.do(s.Get(s.Context(), client.ObjectKey{Name: name}, b))
	b.Status.ObservedGeneration = b.Generation
	b.Status.Conditions = nil
	for _, c := range append(v1alpha1.PolicyBundleStages(), v1alpha1.PolicyBundleReady) {
		b.Status.Conditions = append(b.Status.Conditions, metav1.Condition{
			Type: c, Status: metav1.ConditionTrue, Reason: "Passed", Message: "It is so.", LastTransitionTime: metav1.Now(), ObservedGeneration: b.Generation,
		})
	}
	change(b)
	b.Status.ActiveRevision = ""
	r := v1alpha1.PolicyReplica{Name: "one"}
	if b.Status.Active != nil {
		b.Status.ActiveRevision, r.Revision = b.Status.Active.Revision, b.Status.Active.Revision
	}
	if b.Status.Candidate != nil {
		r.Candidate = b.Status.Candidate.Revision
		if b.Status.Candidate.Mode == v1alpha1.PolicyModeShadow {
			r.Shadow = &v1alpha1.PolicyShadow{Since: metav1.Now(), Compared: 40, Looser: 3, Stopped: "3 decisions in a row did not end in time", Differences: []v1alpha1.PolicyDifference{
				{Point: "rollout/plan", Kind: "looser", Reason: "Hold One", Candidate: "Go", Count: 3},
			}}
		}
	}
	b.Status.Replicas = []v1alpha1.PolicyReplica{r, r}
	b.Status.Replicas[1].Name = "two"
	s.do(s.Status().Update(s.Context(), b))
}

// wantKept checks which revisions the cluster keeps of the bundles of the platform and of all namespaces.
func (s *shop) wantKept(platform ...string) {
	s.Helper()
	own, err := bundle.FromFiles("own", rule("Own"))
	s.do(err)
	var archive bytes.Buffer
	s.do(own.BuildArchive(&archive, bundle.Build{}))
	tenant := &v1alpha1.PolicyBundle{ObjectMeta: metav1.ObjectMeta{Name: "own", Namespace: "shop"}}
	tenant.Spec.Files = map[string]v1alpha1.FileText{"a.rego": v1alpha1.FileText(rule("Own")["a.rego"])}
	s.do(s.Create(s.Context(), tenant))
	kept, err := bundlerevision.Store{Client: s, Reader: s, Namespace: "kruise-system"}.SaveArchive(s.Context(), tenant, archive.Bytes(), "files")
	s.do(err)
	artifact := v1alpha1.PolicyArtifact{Revision: bundle.ShortRevision(own.Revision), Content: own.Revision, Digest: bundlerevision.ArchiveDigest(archive.Bytes()), Reference: "files", KeptIn: kept, Generation: 1, Time: metav1.Now()}
	gone := artifact
	gone.Revision, gone.Content, gone.Digest, gone.KeptIn = "abcdef123456", "abcdef", "sha256:00", "gone"
	tenant.Status.Active, tenant.Status.History = &artifact, []v1alpha1.PolicyArtifact{gone}
	s.do(s.Status().Update(s.Context(), tenant))

	bundles, err := NewBundles(s.config, "kruise-system")
	s.do(err)
	found, warnings, err := bundles.KeptBundles(s.Context())
	s.do(err)
	var got []string
	for _, b := range found {
		got = append(got, b.Revision)
		if (b.Namespace == "shop") != (b.Name == "own") {
			s.Errorf("bundle %s is of namespace %q", b.Name, b.Namespace)
		}
	}
	slices.Sort(got)
	want := append(slices.Clone(platform), own.Revision)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.Errorf("the cluster keeps %v, want %v", got, want)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0].Error(), "PolicyBundle shop/own: reading revision abcdef123456") {
		s.Errorf("the warnings are %v", warnings)
	}
	s.do(s.Delete(s.Context(), tenant))
}

func TestCommands(t *testing.T) {
	s := open(t)
	for _, ns := range []string{"kruise-system", "shop"} {
		s.do(s.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	}
	s.want("status", 0, "There are no ClusterPolicyBundles; -n NAMESPACE is for the PolicyBundles of a namespace.")
	s.want("status none", 3, "there is no ClusterPolicyBundle none")
	s.want("status -n shop", 0, "There are no PolicyBundles in namespace shop.")
	s.want("status none -n shop", 3, "there is no PolicyBundle shop/none")
	s.want("status -o yaml", 2, "it is one of text, json")

	b := &v1alpha1.ClusterPolicyBundle{ObjectMeta: metav1.ObjectMeta{Name: "freeze"}}
	b.Spec.Files = map[string]v1alpha1.FileText{"a.rego": v1alpha1.FileText(rule("Two")["a.rego"])}
	b.Spec.Mode = v1alpha1.PolicyModeShadow
	b.Spec.Canary = &v1alpha1.PolicyCanary{Namespaces: []string{"shop"}}
	s.do(s.Create(t.Context(), b))
	s.want("status", 1, "freeze", "Unknown", "NotYet")
	s.want("promote freeze", 1, "It has not passed the gate")
	one, two := s.keep(b, "One"), s.keep(b, "Two")
	two.Mode = v1alpha1.PolicyModeShadow
	s.stand("freeze", func(b *v1alpha1.ClusterPolicyBundle) { b.Status.Active, b.Status.Candidate = &one, &two })

	s.want("status", 0, "freeze   Shadow   True    "+one.Revision+"   "+two.Revision+"   2/2        Passed")
	s.want("status freeze", 0, "ReplayOK     True", "2 of 2 run", "80 decisions compared: 0 stricter, 6 looser", "tries "+two.Revision+"; compares no more: 3 decisions in a row", "6 looser   rollout/plan: Hold One -> Go")
	s.want("status freeze -o json", 0, `"activeRevision": "`+one.Revision)
	s.wantKept(one.Content, two.Content)
	s.want("diff freeze", 0, "--- "+one.Revision+"/a.rego", `-hold contains {"reason": "One"`, `+hold contains {"reason": "Two"`)
	s.want("diff freeze --from "+two.Revision[:6]+" --to "+one.Revision[:6], 0, `+hold contains {"reason": "One"`)
	s.want("diff freeze --to abcabc", 2, "revision abcabc is not kept; kept are "+one.Revision)
	dir := t.TempDir()
	s.do(os.WriteFile(filepath.Join(dir, "a.rego"), []byte(rule("Mine")["a.rego"]), 0o600))
	s.want("diff freeze "+dir, 0, `+hold contains {"reason": "Mine"`)

	s.do(os.WriteFile(filepath.Join(dir, "b.rego"), []byte("package extend.rollout.b\n\nrank := {}"), 0o600))
	if got, _ := s.types("diff freeze " + dir); !strings.HasSuffix(got, "/b.rego\n@@ -0,0 +1,3 @@\n+package extend.rollout.b\n+\n+rank := {}\n") {
		s.Errorf("a file that is new is\n%s", got)
	}

	s.want("promote freeze", 1, "In shadow, 6 decisions were looser", "In shadow, two compares no more: 3 decisions in a row")
	s.want("promote freeze --force --timeout 0s", 0)
	s.do(s.Get(t.Context(), client.ObjectKey{Name: "freeze"}, b))
	if b.Spec.Mode != v1alpha1.PolicyModeCanary {
		t.Errorf("the mode is %s", b.Spec.Mode)
	}
	two.Mode, two.Namespaces = v1alpha1.PolicyModeCanary, []string{"shop"}
	s.stand("freeze", func(b *v1alpha1.ClusterPolicyBundle) { b.Status.Candidate = &two })
	go func() { // the manager, a moment later
		for s.Context().Err() == nil {
			b := &v1alpha1.ClusterPolicyBundle{}
			if s.Get(s.Context(), client.ObjectKey{Name: "freeze"}, b) == nil && b.Spec.Mode == v1alpha1.PolicyModeEnforce {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		s.stand("freeze", func(b *v1alpha1.ClusterPolicyBundle) {
			b.Status.Active, b.Status.Candidate, b.Status.History = &two, nil, []v1alpha1.PolicyArtifact{one}
		})
	}()
	s.want("promote freeze", 0, "freeze: It is so. 2 of 2 replicas run it.")
	s.want("promote freeze --to Sideways", 2, "want Canary or Enforce")

	s.want("diff freeze", 2, "no revision of freeze is tried now", "a revision that is kept: "+two.Revision+", "+one.Revision)
	s.want("diff freeze --from "+one.Revision, 0, "+++ "+two.Revision+"/a.rego", `+hold contains {"reason": "Two"`)

	s.want("rollback freeze --to abcabc", 2, "is not kept")
	s.want("rollback freeze --timeout 0s", 0)
	s.do(s.Get(t.Context(), client.ObjectKey{Name: "freeze"}, b))
	if b.Spec.RollbackTo != one.Revision {
		t.Errorf("it goes back to %q", b.Spec.RollbackTo)
	}
	s.want("rollback freeze --timeout 1s", 3, "not all replicas of the manager ran it after 1s")
	s.want("promote freeze --force --timeout 0s", 0)
	s.do(s.Get(t.Context(), client.ObjectKey{Name: "freeze"}, b))
	if b.Spec.RollbackTo != "" {
		t.Error("promote does not take the rollback away")
	}
	revs := &appsv1.ControllerRevisionList{}
	s.do(s.List(t.Context(), revs, client.InNamespace("kruise-system")))
	s.do(s.Delete(t.Context(), &revs.Items[0]))
	s.do(s.Delete(t.Context(), &revs.Items[1]))
	s.want("diff freeze "+dir, 3, "reading revision")
}
