// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/policy"
	"github.com/regatta-sh/regatta/controllers/kinds/adapters"
	"github.com/regatta-sh/regatta/controllers/simulation"
	"github.com/regatta-sh/regatta/policies"
)

// exactly types a command that varies in nothing.
func exactly(t *testing.T, line string) (string, int) {
	t.Helper()
	cmd := policy.New(policies.Builtin)
	var out strings.Builder
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceUsage = true
	cmd.SetArgs(strings.Fields(line))
	code := exit.Code(cmd.ExecuteContext(t.Context()))
	return out.String(), code
}

// Each file has a command, which is typed where the examples are, what it prints
// and what it ends with.
func TestSimulatePrintsWhatTheFilesShow(t *testing.T) {
	files, err := filepath.Glob("testdata/simulate/*.txt")
	if err != nil || len(files) < 10 {
		t.Fatalf("there are %d files: %v", len(files), err)
	}
	folder, err := filepath.Abs("testdata/simulate")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("../../../../policies/examples")
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(folder, filepath.Base(file)))
			if err != nil {
				t.Fatal(err)
			}
			first, want, _ := strings.Cut(string(text), "\n")
			out, code := exactly(t, strings.ReplaceAll(strings.TrimPrefix(first, "$ regatta policy "), "TESTDATA", folder))
			if got := fmt.Sprintf("%sexit %d\n", out, code); got != want {
				t.Errorf("%s prints\n%s\nwant\n%s", first, got, want)
			}
		})
	}
}

func TestSimulateAsJSONIsTheSameBytes(t *testing.T) {
	t.Chdir("../../../../policies/examples")
	const line = "simulate --at 2026-12-24T10:00Z --zones a=3,b=3 --bundle change-freeze --bundle one-zone-at-a-time -o json"
	first, code := exactly(t, line)
	var report simulation.Report
	if err := json.Unmarshal([]byte(first), &report); err != nil || code != 0 {
		t.Fatalf("it ended with %d: %v\n%s", code, err, first)
	}
	if report.End.How != simulation.Done || report.Waves == 0 || report.Steps[0].Rule != "change-freeze.closed" {
		t.Errorf("want it held and then done, got %s", first)
	}
	if again, _ := exactly(t, line); again != first {
		t.Errorf("once it prints\n%s\nand then\n%s", first, again)
	}
	if other, _ := exactly(t, line+" --seed 2"); other == first {
		t.Error("another seed prints the same")
	}
}

// list writes objects as kubectl get prints them.
func list(t *testing.T, file string, objects ...any) {
	t.Helper()
	text, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// dumped writes fleet.yaml, which has all there is of six pods, some.yaml, which
// has no revisions, and next.yaml, which is applied next.
func dumped(t *testing.T) {
	t.Helper()
	kind := func(version, kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: version, Kind: kind} }
	labels := map[string]string{"app": "web"}
	set := &kruise.CloneSet{TypeMeta: kind("apps.kruise.io/v1beta1", "CloneSet"), ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}}
	set.Spec = kruise.CloneSetSpec{
		Replicas: ptr.To(int32(6)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			Containers:    []corev1.Container{{Name: "main", Image: "web:1", TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: "File", ImagePullPolicy: "IfNotPresent"}},
			RestartPolicy: "Always", DNSPolicy: "ClusterFirst", SchedulerName: "default-scheduler", TerminationGracePeriodSeconds: ptr.To(int64(30)), SecurityContext: &corev1.PodSecurityContext{},
		}},
	}
	set.Spec.UpdateStrategy.Type = kruise.RollingUpdateCloneSetUpdateStrategyType
	set.Spec.UpdateStrategy.RollingUpdate = &kruise.RollingUpdateCloneSetStrategy{
		PodUpdatePolicy: kruise.InPlaceIfPossiblePodUpdatePolicyType, MaxUnavailable: ptr.To(intstr.FromInt32(2)), Partition: ptr.To(intstr.FromInt32(0)),
	}
	f := simulation.ClusterState{Workload: set, Kind: adapters.NewFactory(set), Room: map[string]int{}}
	for _, z := range []string{"a", "b"} {
		f.Room["node-"+z] = 3
		f.Nodes = append(f.Nodes, &corev1.Node{TypeMeta: kind("v1", "Node"), ObjectMeta: metav1.ObjectMeta{Name: "node-" + z, Labels: map[string]string{corev1.LabelTopologyZone: z}}})
	}
	f, err := simulation.GrowFleet(t.Context(), policies.Builtin, f, time.Date(2026, 12, 20, 0, 0, 0, 0, time.UTC), 1)
	if err != nil {
		t.Fatal(err)
	}
	f.Workload.GetObjectKind().SetGroupVersionKind(set.GroupVersionKind())
	all := []any{f.Workload}
	for _, n := range f.Nodes {
		all = append(all, n)
	}
	for _, p := range f.Pods {
		p.TypeMeta = kind("v1", "Pod")
		all = append(all, p)
	}
	list(t, "some.yaml", all...)
	for _, r := range f.Revisions {
		r.TypeMeta = kind("apps/v1", "ControllerRevision")
		all = append(all, r)
	}
	list(t, "fleet.yaml", all...)
	next := set.DeepCopy()
	next.Spec.Template.Spec.Containers[0].Image = "web:2"
	list(t, "next.yaml", next)
}

func TestSimulateADump(t *testing.T) {
	t.Chdir(t.TempDir())
	dumped(t)
	const when = "simulate --at 2026-12-21T10:00Z "
	updated, code := exactly(t, when+"--fleet fleet.yaml --update main=web:2 --name web")
	if code != 0 || !strings.Contains(updated, "wave 1: 2 moved (zone a 1, b 1); 4 of 6 available, 2 updated") || !strings.Contains(updated, "after 1m30s in 3 waves") {
		t.Errorf("it ended with %d\n%s", code, updated)
	}
	for _, tc := range []struct {
		name, line string
		code       int
		want       string
	}{
		{"a workload that is applied to it", "--fleet fleet.yaml --workload next.yaml", 0, updated},
		{"nothing that changes", "--fleet fleet.yaml", 0, "done at 2026-12-21T10:00:00Z, after 0s in 0 waves; 6 of 6 available, 6 updated"},
		{"without revisions pods are recreated", "--fleet some.yaml --workload next.yaml", 0, "warning: the fleet has no ControllerRevisions of web"},
		{"a pod that fails", "--fleet fleet.yaml --update main=web:2 --max-unavailable 1 --fail web-fb92r", 1, "1 updating: NotAvailable, such as web-fb92r"},
		{"a name that is none", "--fleet fleet.yaml --name nope", 2, "--fleet has 0 CloneSets"},
		{"a container that is none", "--fleet fleet.yaml --update nope=web:2", 2, "--update has \"nope=web:2\""},
		{"a fleet that is made up as well", "--fleet fleet.yaml --zones a=1", 2, "--zones and --label make up a fleet"},
		{"no pods of the workload", "--fleet next.yaml", 3, "the fleet has no pods of CloneSet shop/web"},
		{"a file that is not there", "--fleet nope.yaml", 3, "no such file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, code := exactly(t, when+tc.line)
			if code != tc.code || !strings.Contains(got, tc.want) {
				t.Errorf("it ended with %d, want %d\n%s\nwant\n%s", code, tc.code, got, tc.want)
			}
		})
	}
}

const budget = `apiVersion: policy.kruise.io/v1beta1
kind: PodUnavailableBudget
metadata: {name: other, namespace: shop}
spec:
`

// Budgets are read where they are and where they are applied, and their pods of
// other workloads count.
func TestSimulateBudgets(t *testing.T) {
	folder, err := filepath.Abs("testdata/simulate")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	dumped(t)
	next, err := os.ReadFile("next.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pods := "---\napiVersion: v1\nkind: List\nitems:\n"
	for i := range 4 {
		pods += fmt.Sprintf(`- {apiVersion: v1, kind: Pod, metadata: {name: db-%d, namespace: shop, uid: db-%d, labels: {tier: all}, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, uid: s, controller: true}]}, spec: {containers: [{name: x, image: x}]}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}
`, i, i)
	}
	for name, text := range map[string]string{
		"one.yaml":     string(next) + "---\n" + budget + "  targetRef: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: web}\n  maxUnavailable: 1\n",
		"clash.yaml":   string(next) + "---\n" + budget + "  selector: {matchLabels: {app: web}}\n  maxUnavailable: 1\n",
		"both.yaml":    string(next) + "---\n" + budget + "  selector: {matchLabels: {app: web}}\n  maxUnavailable: 1\n  minAvailable: 1\n",
		"neither.yaml": string(next) + "---\n" + budget + "  maxUnavailable: 1\n",
		"amount.yaml":  string(next) + "---\n" + budget + "  selector: {matchLabels: {app: web}}\n  maxUnavailable: some\n",
		"wide.yaml":    string(next) + "---\n" + budget + "  selector: {matchExpressions: [{key: app, operator: NotIn, values: [none]}]}\n  minAvailable: 9\n",
		"pods.yaml":    pods,
		"kruise.yaml":  strings.ReplaceAll(pods, "apps/v1", "apps.kruise.io/v1beta1"),
		"set.yaml":     "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db, namespace: shop, uid: s}\nspec: {replicas: 4}\n",
		"off.yaml":     "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {policy.kruise.io/protection: \"off\"}}\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const recreate = "simulate --at 2026-12-21T10:00Z --pod-update-policy ReCreate --update main=web:2 "
	shop := filepath.Join(folder, "fleet.yaml")
	for _, tc := range []struct {
		name, line string
		code       int
		want       string
	}{
		{"one that is applied with the workload", "--fleet fleet.yaml --workload one.yaml", 0, "budget other\n"},
		{"one that is applied where nothing runs yet", "--workload one.yaml --update main=web:3", 0, "in 6 waves"},
		{"one that is made up beside a dump", "--fleet fleet.yaml --budget 1", 0, "in 6 waves"},
		{"none that allows as many as the workload does", "--fleet fleet.yaml --budget 2", 0, "in 3 waves"},
		{"one that is made up beside one that there is", "--fleet " + shop + " --budget 1", 2, "--budget makes up a PodUnavailableBudget, and the files have web-budget"},
		{"one that is applied beside one of the same pods", "--fleet " + shop + " --workload clash.yaml", 3, "is in conflict with other PodUnavailableBudget web-budget"},
		{"one that says two things", "--workload both.yaml", 3, "it needs one of spec.maxUnavailable and spec.minAvailable"},
		{"one of no pods", "--workload neither.yaml", 3, "it needs one of spec.selector and spec.targetRef"},
		{"one of no amount", "--workload amount.yaml", 3, `spec.maxUnavailable is "some", want a number`},
		{"pods of others count", "--fleet fleet.yaml,pods.yaml,set.yaml --workload wide.yaml", 0, "in 6 waves"},
		{"unknown replicas of other workloads are a warning", "--fleet fleet.yaml,pods.yaml --workload wide.yaml", 0, "warning: PodUnavailableBudget other has pods of StatefulSet db"},
		{"a workload of another group does not count for that of the name", "--fleet fleet.yaml,kruise.yaml,set.yaml --workload wide.yaml", 0, "warning: PodUnavailableBudget other has pods of StatefulSet db"},
		{"a namespace that is switched off", "--fleet " + shop + ",off.yaml", 0, "in 3 waves"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, code := exactly(t, recreate+tc.line)
			if code != tc.code || !strings.Contains(got, tc.want) {
				t.Errorf("it ended with %d, want %d\n%s\nwant\n%s", code, tc.code, got, tc.want)
			}
		})
	}
	const line = recreate + "--budget 1 --replicas 4 --max-unavailable 2 -o json"
	first, _ := exactly(t, strings.ReplaceAll(line, "--update main=web:2 ", ""))
	var report simulation.Report
	if err := json.Unmarshal([]byte(first), &report); err != nil || len(report.Steps) == 0 || len(report.Steps[0].Refused) != 1 {
		t.Fatalf("want one refused, got %v\n%s", err, first)
	}
	if r := report.Steps[0].Refused[0]; r.Write != "delete" || r.Budget != "web" || r.Reason != "BudgetExceeded" || r.Rule != "protection.budget.exceeded" || r.Pod == "" || r.Message == "" {
		t.Errorf("refused: %+v", r)
	}
	if again, _ := exactly(t, strings.ReplaceAll(line, "--update main=web:2 ", "")); again != first {
		t.Errorf("once it prints\n%s\nand then\n%s", first, again)
	}
}

func TestSimulateRefuses(t *testing.T) {
	a := newAuthor(t)
	a.write("wrong.yaml", "apiVersion: apps.kruise.io/v1beta1\nkind: CloneSet\nmetadata: {name: web}\nspec: {replicas: -1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: c}}, spec: {containers: [{name: x, image: x}]}}}\n")
	a.write("text.yaml", "apiVersion: apps.kruise.io/v1beta1\nkind: CloneSet\nmetadata: {name: web}\nspec: {replicas: three}\n")
	a.write("pod.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: 3}\n")
	a.write("noise.yaml", "kind: [")
	a.write("stuck.rego", "package extend.rollout.stuck\n\nhold contains {\"reason\": \"No\", \"message\": \"No.\"}\n")
	a.write("broken.rego", "package extend.rollout.broken\nhold contains {")
	for _, tc := range []struct {
		name, line string
		code       int
		want       string
	}{
		{"no time", "simulate", 2, `required flag(s) "at"`},
		{"what is no time", "simulate --at tomorrow", 2, `--at has "tomorrow", which is no time such as 2026-12-24T10:00Z`},
		{"an end before the beginning", "simulate --at 2026-12-24T10:00Z --until 2026-12-24T09:00Z", 2, "--until is a time after --at"},
		{"no waves at all", "simulate --at 2026-12-24T10:00Z --until 0", 2, "--until is done, a time, or a number of waves"},
		{"zones without pods", "simulate --at 2026-12-24T10:00Z --zones a", 2, `--zones has "a", want NAME=PODS`},
		{"zones with what is no number", "simulate --at 2026-12-24T10:00Z --zones a=many", 2, `where "many" is no number of pods`},
		{"more labels than pods", "simulate --at 2026-12-24T10:00Z --replicas 2 --label a=b:3", 2, "--label a=b is for 1 pods more than there are"},
		{"labels without values", "simulate --at 2026-12-24T10:00Z --label a:3", 2, `--label has "a", want KEY=VALUE:PODS`},
		{"what is no amount", "simulate --at 2026-12-24T10:00Z --max-unavailable some", 2, "maxUnavailable"},
		{"time that runs back", "simulate --at 2026-12-24T10:00Z --ready-after -1s", 2, "--ready-after is a duration of at least 0"},
		{"a workload that no cluster takes", "simulate --at 2026-12-24T10:00Z --workload wrong.yaml", 3, "spec.replicas: Invalid value: -1"},
		{"fewer than no pods", "simulate --at 2026-12-24T10:00Z --replicas -5", 2, "--replicas is a number of at least 0"},
		{"a field of another type", "simulate --at 2026-12-24T10:00Z --workload text.yaml", 3, "reading CloneSet web: spec.replicas is a string, and must be an integer"},
		{"a pod with a field of another type", "simulate --at 2026-12-24T10:00Z --fleet pod.yaml", 3, "reading Pod web: spec.containers is a number, and must be a list"},
		{"what is no YAML", "simulate --at 2026-12-24T10:00Z --workload noise.yaml", 3, "reading noise.yaml"},
		{"a bundle that does not parse", "simulate --at 2026-12-24T10:00Z --bundle broken.rego", 1, "broken.rego:2:"},
		{"a hold without end", "simulate --at 2026-12-24T10:00Z --bundle stuck.rego", 1, "stuck since 2026-12-24T10:00:00Z, after 0 waves"},
		{"a budget that is no amount", "simulate --at 2026-12-24T10:00Z --budget -1", 2, `--budget has "-1", want how many pods`},
		{"a budget of something else", "simulate --at 2026-12-24T10:00Z --budget most=3", 2, `--budget has "most=3"`},
		{"a budget of too much", "simulate --at 2026-12-24T10:00Z --budget min=101%", 2, `--budget has "min=101%"`},
		{"a gate that is neither on nor off", "simulate --at 2026-12-24T10:00Z --feature-gates PodWebhook=maybe", 2, "want PodWebhook=true or PodWebhook=false"},
		{"a gate like no other", "simulate --at 2026-12-24T10:00Z --feature-gates Turbo=true", 2, "there is no feature gate Turbo; the README of the chart lists all; known are AllAlpha, AllBeta, CloneSet"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, code := a.types(tc.line)
			if code != tc.code || !strings.Contains(got, tc.want) {
				t.Errorf("it ended with %d, want %d\n%s\nwant\n%s", code, tc.code, got, tc.want)
			}
		})
	}
}
