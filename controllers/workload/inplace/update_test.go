package inplace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

func start(t testing.TB, w *world, d Difference, grace int32) (*corev1.Pod, time.Duration) {
	t.Helper()
	spec, err := d.Spec("web-2", grace, true)
	if err != nil {
		t.Fatal(err)
	}
	pod, left, err := w.u.Start(context.Background(), w.pod(), spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	return pod, left
}

func TestAnImageIsChangedInTwoWrites(t *testing.T) {
	from, to := twoContainers(), twoContainers()
	to.Spec.Containers[0].Image = "main:2"
	w := newWorld(t, podOf(from, true))
	w.kubelet()
	written, _ := start(t, w, between(t, from, to), 0)
	if w.writes != 2 {
		t.Errorf("%d writes, want 2", w.writes)
	}
	got := w.pod()
	if written.ResourceVersion != got.ResourceVersion {
		t.Error("what is returned is not what was written last")
	}
	if got.Spec.Containers[0].Image != "main:2" || got.Labels[revisionLabel] != "web-2" || got.Labels["pod-template-hash"] != "2" {
		t.Errorf("the pod is %v %v", got.Spec.Containers[0].Image, got.Labels)
	}
	if diff := cmp.Diff([]string{"InPlaceUpdateReady=False StartInPlaceUpdate", "Ready=False ReadinessGatesNotReady"}, conditions(got)); diff != "" {
		t.Error(diff)
	}
	s, err := State(got)
	if err != nil || s.Revision != "web-2" || !s.UpdateImages || s.UpdateResources || len(s.LastContainerStatuses) != 1 || s.LastContainerStatuses["main"].ContainerID != "c1" {
		t.Errorf("the record is %+v, %v", s, err)
	}
	if len(s.ContainerBatchesRecord) != 1 || !slices.Equal(s.ContainerBatchesRecord[0].Containers, []string{"main"}) {
		t.Errorf("the batches are %+v", s.ContainerBatchesRecord)
	}
	w.finish()
	if !WantsReady(w.pod()) {
		t.Error("the gate is not to be opened")
	}
	if _, err := w.u.MarkReady(context.Background(), w.pod()); err != nil {
		t.Fatal(err)
	}
	if WantsReady(w.pod()) {
		t.Error("the gate is still to be opened")
	}
	if Condition(w.pod(), corev1.PodReady).Status != corev1.ConditionFalse {
		t.Error("Ready is the kubelet's to set")
	}
}

func TestMetadataAloneIsOneWriteAndLeavesThePodReady(t *testing.T) {
	from, to := twoContainers(), twoContainers()
	to.Labels = map[string]string{"tier": "gold"}
	to.Annotations = map[string]string{"note": "x"}
	w := newWorld(t, podOf(from, true))
	w.kubelet()
	start(t, w, between(t, from, to), 0)
	got := w.pod()
	if w.writes != 1 || Condition(got, corev1.PodReady).Status != corev1.ConditionTrue {
		t.Errorf("%d writes, %v", w.writes, conditions(got))
	}
	if _, ok := got.Labels["app"]; ok || got.Labels["tier"] != "gold" || got.Labels["instance"] != "a" || got.Annotations["note"] != "x" {
		t.Errorf("labels %v, annotations %v", got.Labels, got.Annotations)
	}
	if why := Incomplete(got); why != "" {
		t.Errorf("it is not complete at once: %s", why)
	}
}

func TestAPodWithoutTheGateIsChangedInOneWrite(t *testing.T) {
	from, to := twoContainers(), twoContainers()
	to.Spec.Containers[0].Image = "main:2"
	w := newWorld(t, podOf(from, false))
	start(t, w, between(t, from, to), 0)
	if w.writes != 1 {
		t.Errorf("%d writes, want 1", w.writes)
	}
}

func TestEqualTemplatesOnlyChangeTheLabel(t *testing.T) {
	w := newWorld(t, podOf(twoContainers(), true))
	w.kubelet()
	start(t, w, between(t, twoContainers(), twoContainers()), 0)
	got := w.pod()
	if w.writes != 1 || got.Labels[revisionLabel] != "web-2" || Incomplete(got) != "" {
		t.Errorf("%d writes, label %s, %q", w.writes, got.Labels[revisionLabel], Incomplete(got))
	}
}

func TestTheGracePeriodComesBetweenNotReadyAndTheChange(t *testing.T) {
	from, to := twoContainers(), twoContainers()
	to.Spec.Containers[0].Image, to.Labels["tier"] = "main:2", "gold"
	w := newWorld(t, podOf(from, true))
	w.kubelet()
	_, left := start(t, w, between(t, from, to), 30)
	got := w.pod()
	if left != 30*time.Second || got.Spec.Containers[0].Image != "main:1" || got.Labels["tier"] != "" || got.Labels[revisionLabel] != "web-2" {
		t.Errorf("after the start: %s left, image %s, labels %v", left, got.Spec.Containers[0].Image, got.Labels)
	}
	if Condition(got, corev1.PodReady).Status != corev1.ConditionFalse || Incomplete(got) == "" {
		t.Error("it is ready, or complete, in its grace period")
	}
	w.now = w.now.Add(28500 * time.Millisecond)
	if next, left, err := w.u.Step(w.pod()); next != Nothing || left != 2*time.Second || err != nil {
		t.Errorf("after 28.5 s: %q, %s, %v; want to wait 2 s", next, left, err)
	}
	w.now = w.now.Add(1500 * time.Millisecond)
	if next, _, _ := w.u.Step(w.pod()); next != Grace {
		t.Errorf("after 30 s: %q", next)
	}
	w.finish()
	got = w.pod()
	if got.Spec.Containers[0].Image != "main:2" || got.Labels["tier"] != "gold" || InGrace(got) {
		t.Errorf("after it: image %s, labels %v", got.Spec.Containers[0].Image, got.Labels)
	}
}

func TestAPodOfAnotherRevisionOnlyLosesItsGrace(t *testing.T) {
	from, to := twoContainers(), twoContainers()
	to.Spec.Containers[0].Image = "main:2"
	w := newWorld(t, podOf(from, true))
	w.kubelet()
	start(t, w, between(t, from, to), 30)
	other := w.pod()
	other.Labels[revisionLabel] = "web-3"
	if err := w.client.Update(context.Background(), other); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(time.Minute)
	w.finish()
	if got := w.pod(); InGrace(got) || got.Spec.Containers[0].Image != "main:1" {
		t.Errorf("image %s, annotations %v", got.Spec.Containers[0].Image, got.Annotations)
	}
}

// OpenKruise writes null for what has no entries; such a pod once stopped the
// whole controller.
func TestAPodInTheGracePeriodOfOpenKruiseGoesOn(t *testing.T) {
	pod := podOf(twoContainers(), false)
	pod.Annotations = map[string]string{
		kruise.InPlaceUpdateStateLegacyKey: `{"revision":"web-1","updateTimestamp":"2026-01-01T00:00:00Z","lastContainerStatuses":null}`,
		kruise.InPlaceUpdateGraceLegacyKey: `{"revision":"web-1","containerImages":{"main":"main:2"},"graceSeconds":30}`,
	}
	w := newWorld(t, pod)
	w.kubelet()
	w.finish()
	got := w.pod()
	if got.Spec.Containers[0].Image != "main:2" || len(got.Annotations) != 1 || got.Annotations[kruise.InPlaceUpdateStateKey] == "" {
		t.Errorf("image %s, annotations %v", got.Spec.Containers[0].Image, got.Annotations)
	}
}

func TestAGracePeriodWithoutARecordIsOver(t *testing.T) {
	pod := podOf(twoContainers(), false)
	pod.Annotations = map[string]string{kruise.InPlaceUpdateGraceKey: `{"revision":"web-1","containerImages":{"main":"main:2"},"graceSeconds":30}`}
	w := newWorld(t, pod)
	w.kubelet()
	w.finish()
	if got := w.pod(); got.Spec.Containers[0].Image != "main:2" || InGrace(got) {
		t.Errorf("image %s, annotations %v", got.Spec.Containers[0].Image, got.Annotations)
	}
}

func TestBatchesWaitUntilTheContainersBeforeThemAreReady(t *testing.T) {
	template := func(version string) *corev1.PodTemplateSpec {
		p := &corev1.PodTemplateSpec{Spec: barriered("a/p_1", "b/p_9", "c").Spec}
		for i := range p.Spec.Containers {
			p.Spec.Containers[i].Image = p.Spec.Containers[i].Name + ":" + version
		}
		return p
	}
	w := newWorld(t, podOf(template("1"), true))
	w.kubelet()
	start(t, w, between(t, template("1"), template("2")), 0)
	got := w.pod()
	if s, _ := State(got); !slices.Equal(s.PreCheckBeforeNext.ContainersRequiredReady, []string{"b", "c"}) || s.NextContainerImages["a"] != "a:2" {
		t.Errorf("the record is %+v", s)
	}
	if got.Spec.Containers[0].Image != "a:1" || got.Spec.Containers[1].Image != "b:2" || got.Spec.Containers[2].Image != "c:2" {
		t.Error("not the containers of the first batch were changed")
	}
	w.kubelet()
	notReady := w.pod()
	statusOf(notReady, "c").Ready = false
	if err := w.client.Status().Update(context.Background(), notReady); err != nil {
		t.Fatal(err)
	}
	if next, _, _ := w.u.Step(w.pod()); next != Nothing {
		t.Errorf("%q, though a container is not ready", next)
	}
	w.kubelet()
	if next, _, _ := w.u.Step(w.pod()); next != Batch {
		t.Errorf("%q, though all are ready", next)
	}
	w.finish()
	got = w.pod()
	s, _ := State(got)
	if got.Spec.Containers[0].Image != "a:2" || len(s.ContainerBatchesRecord) != 2 || s.PreCheckBeforeNext != nil {
		t.Errorf("image %s, record %+v", got.Spec.Containers[0].Image, s)
	}
}

func conflict() error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "web-a", errors.New("somebody was first"))
}

// What is written before a failure is told, so that nobody takes the pod for
// ready who just took it out of its services.
func TestAFailureHalfWayTellsWhatWasWritten(t *testing.T) {
	from, to := twoContainers(), twoContainers()
	to.Spec.Containers[0].Image = "main:2"
	d := between(t, from, to)
	for write, wantTold := range map[int]bool{1: false, 2: true} {
		w := newWorld(t, podOf(from, true))
		w.kubelet()
		w.fail = func(n int) error {
			if n == write {
				return conflict()
			}
			return nil
		}
		spec, err := d.Spec("web-2", 0, true)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := w.u.Start(context.Background(), w.pod(), spec, nil)
		if !apierrors.IsConflict(err) {
			t.Fatalf("the error is %v", err)
		}
		if (got != nil) != wantTold {
			t.Fatalf("write %d fails: told %v", write, got != nil)
		}
		if got != nil && (got.ResourceVersion != w.pod().ResourceVersion || cmp.Diff(got.Labels, w.pod().Labels) != "") {
			t.Errorf("write %d fails: what is told is not what was written", write)
		}
	}
}

// The kubelet answers a pod that is not ready with a status of its own, and may be faster than the change.
func TestAKubeletThatIsFasterCostsNoWriteMore(t *testing.T) {
	from, to := twoContainers(), twoContainers()
	to.Spec.Containers[0].Image = "main:2"
	d := between(t, from, to)
	for _, tc := range []struct {
		name   string
		races  int
		other  func(*corev1.Pod)
		writes int
		lost   bool
	}{
		{name: "once", races: 1, writes: 3},
		{name: "as often as may be", races: 3, writes: 5},
		{name: "too often", races: 4, writes: 5, lost: true},
		{name: "somebody else wrote the pod", races: 1, other: func(p *corev1.Pod) { p.Labels["theirs"] = "x" }, writes: 2, lost: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, podOf(from, true))
			w.kubelet()
			w.u.Live = w.client
			w.fail = func(n int) error {
				if n < 2 || n > 1+tc.races {
					return nil
				}
				pod := w.pod()
				if tc.other != nil {
					tc.other(pod)
					if err := w.client.Update(context.Background(), pod); err != nil {
						t.Fatal(err)
					}
				}
				return conflict()
			}
			spec, err := d.Spec("web-2", 0, true)
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := w.u.Start(context.Background(), w.pod(), spec, nil)
			if apierrors.IsConflict(err) != tc.lost || w.writes != tc.writes || got == nil {
				t.Errorf("%d writes, %v", w.writes, err)
			}
			if !tc.lost && (w.pod().Spec.Containers[0].Image != "main:2" || got.ResourceVersion != w.pod().ResourceVersion) {
				t.Errorf("got %v", w.pod().Spec.Containers)
			}
		})
	}
}

func resized() (from, to *corev1.PodTemplateSpec) {
	from, to = twoContainers(), twoContainers()
	to.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("2")
	return from, to
}

// The label must not say that a pod has resources which were not written.
func TestResourcesAreWrittenBeforeTheLabel(t *testing.T) {
	from, to := resized()
	w := newWorld(t, podOf(from, true))
	w.kubelet()
	w.fail = func(n int) error {
		if n == 2 {
			return conflict()
		}
		return nil
	}
	spec, err := between(t, from, to).Spec("web-2", 0, true)
	if err != nil {
		t.Fatal(err)
	}
	told, _, err := w.u.Start(context.Background(), w.pod(), spec, nil)
	got := w.pod()
	if err == nil || got.Labels[revisionLabel] != "web-1" || told == nil || told.ResourceVersion != got.ResourceVersion {
		t.Fatalf("after the first write: %v, label %s, told %v", err, got.Labels[revisionLabel], told != nil)
	}
	w.fail = nil
	start(t, w, between(t, from, to), 0)
	got = w.pod()
	if cpu := got.Spec.Containers[0].Resources.Limits["cpu"]; got.Labels[revisionLabel] != "web-2" || cpu.String() != "2" {
		t.Errorf("after all writes: label %s, cpu %s", got.Labels[revisionLabel], cpu.String())
	}
	if Incomplete(got) == "" {
		t.Error("it is complete before the kubelet has seen it")
	}
	w.finish()
}

func TestAnOldAPIServerTakesResourcesWithTheRest(t *testing.T) {
	from, to := resized()
	w := newWorld(t, podOf(from, true))
	w.kubelet()
	w.fail = func(n int) error {
		if n == 1 {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "pods/resize"}, "web-a")
		}
		return nil
	}
	start(t, w, between(t, from, to), 0)
	got := w.pod()
	if cpu := got.Spec.Containers[0].Resources.Limits["cpu"]; got.Labels[revisionLabel] != "web-2" || cpu.String() != "2" {
		t.Errorf("label %s, cpu %s", got.Labels[revisionLabel], cpu.String())
	}
}

func TestWhatRestartsContainers(t *testing.T) {
	cpu := corev1.ResourceList{"cpu": resource.MustParse("2")}
	policy := func(name corev1.ResourceName, p corev1.ResourceResizeRestartPolicy) *corev1.Pod {
		pod := barriered("a", "b")
		pod.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: name, RestartPolicy: p}}
		return pod
	}
	sized := func(container string, r corev1.ResourceRequirements) *kruise.UpdateSpec {
		return &kruise.UpdateSpec{ContainerResources: map[string]corev1.ResourceRequirements{container: r}}
	}
	tests := map[string]struct {
		pod  *corev1.Pod
		spec *kruise.UpdateSpec
		want bool
	}{
		"an image does":                            {barriered("a"), &kruise.UpdateSpec{ContainerImages: images("a")}, true},
		"what an env reads does":                   {barriered("a"), &kruise.UpdateSpec{ContainerRefMetadata: map[string]kruise.ContainerRefMetadata{"a": reads("k")}}, true},
		"metadata does not":                        {barriered("a"), &kruise.UpdateSpec{MetaDataPatch: []byte("{}")}, false},
		"nothing does not":                         {barriered("a"), &kruise.UpdateSpec{}, false},
		"a limit without a policy does not":        {barriered("a", "b"), sized("a", corev1.ResourceRequirements{Limits: cpu}), false},
		"a limit whose policy says so does":        {policy("cpu", corev1.RestartContainer), sized("a", corev1.ResourceRequirements{Limits: cpu}), true},
		"a request whose policy says so does":      {policy("cpu", corev1.RestartContainer), sized("a", corev1.ResourceRequirements{Requests: cpu}), true},
		"the policy of another resource does not":  {policy("memory", corev1.RestartContainer), sized("a", corev1.ResourceRequirements{Limits: cpu}), false},
		"the policy of another container does not": {policy("cpu", corev1.RestartContainer), sized("b", corev1.ResourceRequirements{Limits: cpu}), false},
		"a policy that needs no restart does not":  {policy("cpu", corev1.NotRequired), sized("a", corev1.ResourceRequirements{Limits: cpu}), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := RestartsContainers(tc.pod, tc.spec); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestBothGatesAreOpenedInOneWrite(t *testing.T) {
	pod := podOf(twoContainers(), true)
	pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: kruise.KruisePodReady})
	pod.Status.Conditions = nil
	w := newWorld(t, pod)
	if !WantsReady(w.pod()) {
		t.Fatal("the gates are not to be opened")
	}
	if _, err := w.u.MarkReady(context.Background(), w.pod()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"InPlaceUpdateReady=True ", "KruisePodReady=True "}, conditions(w.pod())); diff != "" || w.writes != 1 || WantsReady(w.pod()) {
		t.Errorf("%d writes, %s", w.writes, diff)
	}
}

func TestReadyIsSetOnlyOnThePodAsItWasSeen(t *testing.T) {
	w := newWorld(t, podOf(twoContainers(), true))
	stale := w.pod()
	w.kubelet()
	if _, err := w.u.MarkReady(context.Background(), stale); !apierrors.IsConflict(err) {
		t.Errorf("the error is %v, want a conflict", err)
	}
}

func TestANewPodIsOpenedWhoeverWroteItMeanwhile(t *testing.T) {
	w := newWorld(t, podOf(twoContainers(), true))
	created := w.pod()
	w.kubelet()
	if _, err := w.u.MarkCreated(context.Background(), created); err != nil {
		t.Fatal(err)
	}
	if WantsReady(w.pod()) {
		t.Error("its gates are not open")
	}
}

// drawTemplate is any template that differs from others of its kind only by what
// can be changed in place.
func drawTemplate(t *rapid.T, containers []string) *corev1.PodTemplateSpec {
	p := &corev1.PodTemplateSpec{Spec: *barriered(containers...).Spec.DeepCopy()}
	keys := func(label string) map[string]string {
		out := map[string]string{"always": rapid.SampledFrom([]string{"1", "2"}).Draw(t, "value")}
		for _, k := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"k", "l", "m/n"}), 0, 3, rapid.ID).Draw(t, label) {
			out[k] = rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "value")
		}
		return out
	}
	p.Labels, p.Annotations = keys("labels"), keys("annotations")
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		c.Image = c.Name + ":" + rapid.SampledFrom([]string{"1-a", "1-b", "2-a"}).Draw(t, "image")
		for _, key := range []string{"labels['k']", "annotations['l']", "labels['m/n']"}[:1+i%3] {
			c.Env = append(c.Env, corev1.EnvVar{Name: "X", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata." + key}}})
		}
		c.Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse(rapid.SampledFrom([]string{"1", "2"}).Draw(t, "cpu"))}
	}
	return p
}

// Wherever an update is overtaken by the next one, in a batch, between batches or
// before the kubelet has seen it, the pod comes to be as the last template says.
func TestAPodBecomesWhatItsLastTemplateSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var containers []string
		for i := range rapid.IntRange(1, 3).Draw(t, "containers") {
			name := fmt.Sprint("c", i)
			if rapid.Bool().Draw(t, "has a barrier") {
				name += fmt.Sprint("/p_", rapid.IntRange(0, 2).Draw(t, "barrier"))
			}
			containers = append(containers, name)
		}
		at := drawTemplate(t, containers)
		w := newWorld(t, podOf(at, rapid.Bool().Draw(t, "gate")))
		w.kubelet()
		for i := range rapid.IntRange(1, 3).Draw(t, "updates") {
			to := drawTemplate(t, containers)
			from, err := classify(at, to)
			if err != nil {
				t.Fatal(err)
			}
			spec, err := from.Spec(fmt.Sprint("web-", i+2), int32(rapid.SampledFrom([]int{0, 0, 5}).Draw(t, "grace")), true)
			if err != nil {
				t.Fatal(err)
			}
			from.Resume(spec, w.pod())
			if _, _, err := w.u.Start(context.Background(), w.pod(), spec, nil); err != nil {
				t.Fatal(err)
			}
			at = to
			for range rapid.IntRange(0, 4).Draw(t, "steps before the next") {
				if rapid.Bool().Draw(t, "kubelet") {
					w.kubelet()
					continue
				}
				next, left, err := w.u.Step(w.pod())
				if err != nil {
					t.Fatal(err)
				}
				w.now = w.now.Add(left)
				if next == Batch || next == Grace {
					if _, err := w.u.Continue(context.Background(), w.pod(), next); err != nil {
						t.Fatal(err)
					}
				}
			}
			for InGrace(w.pod()) { // such a pod is no candidate
				next, left, err := w.u.Step(w.pod())
				if err != nil {
					t.Fatal(err)
				}
				w.now = w.now.Add(left)
				if next == Grace {
					if _, err := w.u.Continue(context.Background(), w.pod(), next); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		w.finish()
		w.kubelet()
		got := w.pod()
		for i := range at.Spec.Containers {
			want, has := at.Spec.Containers[i], got.Spec.Containers[i]
			if has.Image != want.Image {
				t.Fatalf("container %s has image %s, want %s", want.Name, has.Image, want.Image)
			}
			if diff := cmp.Diff(want.Resources, has.Resources); diff != "" {
				t.Fatalf("container %s: %s", want.Name, diff)
			}
			if w.running[want.Name] != w.wants(got, &has) {
				t.Fatalf("container %s runs %s", want.Name, w.running[want.Name])
			}
		}
		for _, k := range []string{revisionLabel, shortLabel, "instance"} {
			delete(got.Labels, k)
		}
		delete(got.Annotations, kruise.InPlaceUpdateStateKey)
		if !maps.Equal(got.Labels, at.Labels) || !maps.Equal(got.Annotations, at.Annotations) {
			t.Fatalf("labels %v, annotations %v; want %v, %v", got.Labels, got.Annotations, at.Labels, at.Annotations)
		}
	})
}

func FuzzAnnotationsOfAPod(f *testing.F) {
	f.Add(`{"revision":"web-1","updateTimestamp":"2026-01-01T00:00:00Z","lastContainerStatuses":null}`, `{"revision":"web-1","containerImages":{"a":"a:2"},"graceSeconds":30}`)
	f.Add(`{"nextContainerImages":{"a":"a:2","gone":"x"},"preCheckBeforeNext":{"containersRequiredReady":["a"]}}`, "")
	f.Add(`{"nextContainerResources":{"a":{"limits":{"cpu":"2"}}},"updateResources":true}`, "")
	f.Add(`{"nextContainerRefMetadata":{"a":{"labels":{"k":"v"}}}}`, `{"metaDataPatch":"e30="}`)
	f.Add(`null`, `null`)
	f.Add(`{"lastContainerStatuses":{"a":null}}`, `{"metaDataPatch":"bnVsbA==","containerRefMetadata":{"a":{}}}`)
	f.Fuzz(func(t *testing.T, state, grace string) {
		pod := barriered("a/p_1", "b")
		pod.Name, pod.Namespace, pod.UID = "web-a", "shop", "uid"
		pod.Annotations = map[string]string{kruise.InPlaceUpdateStateKey: state}
		if grace != "" {
			pod.Annotations[kruise.InPlaceUpdateGraceKey] = grace
		}
		pod.Labels = map[string]string{revisionLabel: "web-1"}
		u := Updater{Client: accepting{}, Now: func() time.Time { return time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC) }}
		for range 10 {
			_, _ = Incomplete(pod), WantsReady(pod)
			Difference{New: twoContainers()}.Resume(&kruise.UpdateSpec{}, pod)
			next, left, err := u.Step(pod)
			if err != nil || left > 0 || (next != Batch && next != Grace) {
				return
			}
			if pod, err = u.Continue(context.Background(), pod, next); err != nil {
				return
			}
			for i := range pod.Spec.Containers {
				pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: pod.Spec.Containers[i].Name, ImageID: "x", Ready: true})
			}
		}
		t.Error("it never comes to an end")
	})
}

// accepting is an API server that takes any pod as it is.
type accepting struct{ client.Client }

func (accepting) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return nil
}
func (a accepting) SubResource(string) client.SubResourceClient { return acceptingSub{} }

type acceptingSub struct{ client.SubResourceClient }

func (acceptingSub) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return nil
}
