// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/kinds/adapters"
	"github.com/regatta-sh/regatta/controllers/simulation"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/policies"
	"github.com/regatta-sh/regatta/test/proptest"
)

func start() time.Time { return time.Date(2026, 12, 21, 10, 0, 0, 0, time.UTC) }

// fleet has six pods in two zones, which are to have another image.
func fleet(t testing.TB, edit func(*kruise.CloneSetSpec)) simulation.ClusterState {
	t.Helper()
	labels := map[string]string{"app": "web"}
	set := &kruise.CloneSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", Generation: 1}}
	set.Spec = kruise.CloneSetSpec{
		Replicas: ptr.To(int32(6)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
		},
	}
	set.Spec.UpdateStrategy.RollingUpdate = &kruise.RollingUpdateCloneSetStrategy{
		PodUpdatePolicy: kruise.InPlaceIfPossiblePodUpdatePolicyType, MaxUnavailable: ptr.To(intstr.FromInt32(2)),
	}
	if edit != nil {
		edit(&set.Spec)
	}
	f := simulation.ClusterState{Workload: set, Kind: adapters.NewFactory(set), Room: map[string]int{}}
	for _, zone := range []string{"a", "b"} {
		f.Room["node-"+zone] = 3
		f.Nodes = append(f.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + zone, Labels: map[string]string{corev1.LabelTopologyZone: zone}}})
	}
	f, err := simulation.GrowFleet(t.Context(), policies.Builtin, f, start(), 1)
	if err != nil {
		t.Fatal(err)
	}
	grown := f.Workload.(*kruise.CloneSet)
	grown.Spec.Template.Spec.Containers[0].Image = "web:2"
	grown.Generation++
	return f
}

func run(t testing.TB, f simulation.ClusterState, rego string, opts ...simulation.Option) simulation.Report {
	t.Helper()
	var set bundle.Set
	if rego != "" {
		b, err := bundle.FromFiles("x", map[string]string{"x.rego": rego})
		if err != nil {
			t.Fatal(err)
		}
		set = bundle.Set{b}
	}
	s, err := simulation.New(policies.Builtin, set, f, start(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestASimulationWithCompiledPoliciesIsTheSame(t *testing.T) {
	b, err := bundle.FromFiles("x", map[string]string{"x.rego": "package extend.rollout.x\n\nhold contains {\"reason\": \"Night\", \"message\": \"m\", \"until\": \"2026-12-21T11:00:00Z\"} if input.now < time.parse_rfc3339_ns(\"2026-12-21T11:00:00Z\")\n"})
	if err != nil {
		t.Fatal(err)
	}
	simulate := func(opts ...simulation.Option) (string, []engine.CompiledPolicies) {
		s, err := simulation.New(policies.Builtin, bundle.Set{b}, fleet(t, nil), start(), opts...)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		r, err := s.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return story(r), s.CompiledPolicies()
	}
	first, compiled := simulate(simulation.WithSeed(7))
	again, _ := simulate(simulation.WithSeed(7), simulation.WithCompiled(compiled...))
	if !strings.Contains(first, "Night") || again != first {
		t.Errorf("with compiled policies:\n%s\nwithout:\n%s", again, first)
	}
}

func story(r simulation.Report) string {
	out := ""
	for _, s := range r.Steps {
		out += fmt.Sprintf("%s wave %d moved %d available %d of %d updated %d %s %s %s %s\n", s.At.Format(time.RFC3339), s.Wave, len(s.Moved), s.Available, s.Pods, s.Updated, s.Verdict, s.Reason, s.Undecided, s.Error)
		for _, y := range s.Why {
			out += "    " + y.DisplayText() + "\n"
		}
	}
	return out + fmt.Sprintf("%s after %s, %v", r.End.How, r.TotalDuration(), r.Violations)
}

func TestSomebodyIsToldOfTheProgress(t *testing.T) {
	f := fleet(t, nil)
	var told []simulation.Progress
	r := run(t, f, "", simulation.WithProgress(func(p simulation.Progress) { told = append(told, p) }))
	if len(told) <= len(r.Steps) {
		t.Fatalf("told %d times in %d rounds", len(told), len(r.Steps))
	}
	if first, want := told[0], (simulation.Progress{At: start(), Pods: 6, Replicas: 6}); first != want {
		t.Errorf("first %+v, want %+v", first, want)
	}
	if last, want := told[len(told)-1], (simulation.Progress{At: r.End.At, Wave: r.Waves, Pods: 6, Updated: 6, Replicas: 6}); last != want {
		t.Errorf("last %+v, want %+v", last, want)
	}
	if !slices.IsSortedFunc(told, func(a, b simulation.Progress) int {
		return cmp.Or(a.At.Compare(b.At), a.Wave-b.Wave, a.Updated-b.Updated)
	}) {
		t.Errorf("it goes back: %+v", told)
	}
}

// override answers a point itself.
func override(point, answer string) string {
	return fmt.Sprintf(`package override.rollout

import future.keywords.not

# METADATA
# title: Nonsense
# entrypoint: true
# labels:
#   id: x.nonsense
%s := %s
`, point, answer)
}

func extend(rules string) string {
	return "package extend.rollout.x\n\nimport future.keywords.not\n\n" + rules
}

// shapesFor are the fleets that a test case is tried on: with the race detector one
// is enough, another for each case.
func shapesFor(i int, fleets map[string]simulation.ClusterState) []string {
	names := slices.Sorted(maps.Keys(fleets))
	if proptest.Race {
		return names[i%len(names):][:1]
	}
	return names
}

// Whatever policies answer, no promise is broken, and every rollout that waits has
// a reason.
func TestPoliciesThatAnswerNonsense(t *testing.T) {
	shapes := map[string]func(*kruise.CloneSetSpec){
		"in place": nil,
		"recreated": func(s *kruise.CloneSetSpec) {
			s.UpdateStrategy.RollingUpdate.PodUpdatePolicy = kruise.RecreatePodUpdatePolicyType
		},
		"with surge": func(s *kruise.CloneSetSpec) {
			s.UpdateStrategy.RollingUpdate.PodUpdatePolicy = kruise.RecreatePodUpdatePolicyType
			s.UpdateStrategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt32(2))
			s.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(0))
		},
		"with a partition": func(s *kruise.CloneSetSpec) {
			s.UpdateStrategy.RollingUpdate.Partition = ptr.To(intstr.FromInt32(2))
		},
		"with a hook": func(s *kruise.CloneSetSpec) {
			s.Template.Labels = map[string]string{"app": "web", "hooked": "yes"}
			h := &kruise.LifecycleHook{LabelsHandler: map[string]string{"hooked": "yes"}, MarkPodNotReady: true}
			s.Lifecycle = &kruise.Lifecycle{InPlaceUpdate: h, PreDelete: h}
		},
	}
	fleets := map[string]simulation.ClusterState{}
	for name, edit := range shapes {
		fleets[name] = fleet(t, edit)
	}
	hold := `{"reason": "No", "message": "No.", %s}`
	for i, tc := range []struct {
		name, rego, how string
	}{
		{"none at all", "", simulation.Done},
		{"a plan that allows everything", override("plan", `{"limit": 1000000000, "maxUnavailable": 1000000000, "holds": [], "scatter": []}`), simulation.Done},
		{"a plan of less than nothing", override("plan", `{"limit": -5, "maxUnavailable": -5, "holds": [], "scatter": []}`), simulation.Stuck},
		{"a plan that is no plan", override("plan", `"yes"`), simulation.Stuck},
		{"a plan that cannot be made", override("plan", `{"limit": 1 / (input.update - input.update), "maxUnavailable": 1, "holds": [], "scatter": []}`), simulation.Stuck},
		{"a plan that scatters by nothing", override("plan", `{"limit": 6, "maxUnavailable": 6, "holds": [], "scatter": [{"key": "", "value": ""}]}`), simulation.Done},
		{"an order of pods that are none", override("rows", `{"order": ["nobody", "nobody", ""]}`), simulation.Stuck},
		{"an order that has each pod twice", override("rows", `{"order": array.concat([p.name | some p in input.rows], [p.name | some p in input.rows])}`), simulation.Done},
		{"more pods than there may be", override("scale", `{"create": 1000, "createCurrent": -1000, "delete": 1000, "deleteCurrent": 1000}`), simulation.Done},
		{"no pods ever", override("scale", `{"create": 0, "createCurrent": 0, "delete": 0, "deleteCurrent": 0}`), ""},
		{"a change that is no word", override("change", `{"action": "Explode"}`), ""},
		{"a hold that ends when it began", extend(`hold contains ` + fmt.Sprintf(hold, `"until": "1970-01-01T00:00:00Z"`)), simulation.Stuck},
		{"a hold that ends at no time", extend(`hold contains ` + fmt.Sprintf(hold, `"until": "soon"`)), simulation.Stuck},
		{"a hold of a zone that is none", extend(`hold contains ` + fmt.Sprintf(hold, `"where": {"zone": "z"}`)), simulation.Done},
		{"a hold of one zone", extend(`hold contains ` + fmt.Sprintf(hold, `"where": {"zone": "b"}`)), simulation.Stuck},
		{"a hold that follows what is updated", extend(`hold contains ` + fmt.Sprintf(hold, `"where": {"zone": zone}`) + ` if { some zone, g in input.groups.zone; g.updated > 0 }`), ""},
		{"ranks beyond all numbers", extend(`rank := {p.name: 1e300 | some p in input.pods}`), simulation.Done},
		{"ranks that are no numbers", extend(`rank := {p.name: "first" | some p in input.pods}`), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, name := range shapesFor(i, fleets) {
				r := run(t, fleets[name], tc.rego, simulation.WithSeed(2))
				if len(r.Violations) > 0 {
					t.Errorf("%s: it breaks promises: %s", name, story(r))
				}
				if tc.how != "" && r.End.How != tc.how && name == "in place" {
					t.Errorf("%s: want it %s, got %s", name, tc.how, story(r))
				}
				if last := r.Steps[len(r.Steps)-1]; r.End.How == simulation.Stuck && last.Message == "" {
					t.Errorf("%s: it is stuck, and no step says why: %s", name, story(r))
				}
			}
		})
	}
}

func TestHowItEnds(t *testing.T) {
	closed := extend(`hold contains {"reason": "Closed", "message": "Closed.", "until": "2026-12-28T08:00:00Z"} if input.now < time.parse_rfc3339_ns("2026-12-28T08:00:00Z")`)
	for _, tc := range []struct {
		name, rego string
		opts       []simulation.Option
		how        string
		took       time.Duration
		waves      int
	}{
		{"pods that become ready let the next ones go", "", nil, simulation.Done, 90 * time.Second, 3},
		{"the clock is moved to the end of a hold", closed, nil, simulation.Done, 166*time.Hour + 90*time.Second, 3},
		{"a hold that is longer than patience", closed, []simulation.Option{simulation.WithPatience(time.Hour)}, simulation.Stuck, 0, 0},
		{"as long as it was to last", closed, []simulation.Option{simulation.WithUntil(start().Add(time.Hour))}, simulation.Stopped, time.Hour, 0},
		{"as many waves as there were to be", "", []simulation.Option{simulation.WithWaves(2)}, simulation.Stopped, 30 * time.Second, 2},
		{"pods that are slow", "", []simulation.Option{simulation.WithReadyAfter(time.Hour)}, simulation.Done, 3 * time.Hour, 3},
		{"steps that are long", "", []simulation.Option{simulation.WithStep(time.Minute)}, simulation.Done, 3 * time.Minute, 3},
		{"as many pods that fail as may be unavailable", "", []simulation.Option{simulation.WithFailures(2)}, simulation.Stuck, 0, 1},
		{"fewer pods that fail", "", []simulation.Option{simulation.WithFailures(1)}, simulation.Stuck, 150 * time.Second, 5},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := run(t, fleet(t, nil), tc.rego, tc.opts...)
			if r.End.How != tc.how || r.TotalDuration() != tc.took || r.Waves != tc.waves {
				t.Errorf("want %s after %s in %d waves, got %s", tc.how, tc.took, tc.waves, story(r))
			}
		})
	}
}

func TestAPodThatIsNamedFailsInWhateverTakesItsPlace(t *testing.T) {
	f := fleet(t, func(s *kruise.CloneSetSpec) {
		s.UpdateStrategy.RollingUpdate.PodUpdatePolicy = kruise.RecreatePodUpdatePolicyType
	})
	r := run(t, f, "", simulation.WithBroken(f.Pods[0].Name))
	last := r.Steps[len(r.Steps)-1]
	if r.End.How != simulation.Stuck || last.Available != 5 || last.Updated != 6 {
		t.Errorf("want one of six to be left, got %s", story(r))
	}
}
