// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

var errDown = errors.New("the API server is down")

// written moves a pod and returns it as the API server has it, with the number of
// writes that were tried. failing is the write that fails, 0 for none.
func written(t *testing.T, p *corev1.Pod, s kruise.LifecycleStateType, l *kruise.Lifecycle, rehook bool, failing int) (stored, told *corev1.Pod, writes int, err error) {
	t.Helper()
	attempt := func() error {
		writes++
		if writes == failing {
			return errDown
		}
		return nil
	}
	base := fake.NewClientBuilder().WithObjects(p).WithStatusSubresource(&corev1.Pod{}).Build()
	c := interceptor.NewClient(base, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := attempt(); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := attempt(); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	stored = &corev1.Pod{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(p), stored); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	told, err = Writer{Client: c, Now: func() time.Time { return now }}.MoveToState(t.Context(), stored, s, l, rehook)
	if e := c.Get(t.Context(), client.ObjectKeyFromObject(p), stored); e != nil {
		t.Fatal(e)
	}
	return stored, told, writes, err
}

func gated(p *corev1.Pod, message string) *corev1.Pod {
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.KruisePodReady}}
	status := corev1.ConditionTrue
	if message != "" {
		status = corev1.ConditionFalse
	}
	p.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue},
		{Type: kruise.KruisePodReady, Status: status, Message: message, LastTransitionTime: metav1.NewTime(time.Unix(1, 0))},
	}
	return p
}

func kruiseReady(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == kruise.KruisePodReady {
			return string(c.Status) + " " + c.Message
		}
	}
	return ""
}

const (
	update = `{"userAgent":"Lifecycle","key":"preUpdateHook"}`
	remove = `{"userAgent":"Lifecycle","key":"preDeleteHook"}`
	other  = `{"userAgent":"ContainerRecreateRequest","key":"shop/crr"}`
)

func TestMove(t *testing.T) {
	marking := &kruise.Lifecycle{InPlaceUpdate: hook(), PreDelete: hook()}
	marking.InPlaceUpdate.MarkPodNotReady, marking.PreDelete.MarkPodNotReady = true, true
	plain := &kruise.Lifecycle{InPlaceUpdate: hook(), PreDelete: hook()}
	tests := map[string]struct {
		pod    *corev1.Pod
		to     kruise.LifecycleStateType
		l      *kruise.Lifecycle
		writes int
		ready  string
	}{
		"a state is one write":                                  {gated(pod("Normal"), ""), kruise.LifecycleStatePreparingDelete, plain, 1, "True "},
		"the same state is none":                                {gated(pod("Normal"), ""), kruise.LifecycleStateNormal, plain, 0, "True "},
		"a hook that marks makes the pod not ready first":       {gated(pod("Normal"), ""), kruise.LifecycleStatePreparingUpdate, marking, 2, "False [" + update + "]"},
		"so does that of a deletion":                            {gated(pod("Normal"), ""), kruise.LifecycleStatePreparingDelete, marking, 2, "False [" + remove + "]"},
		"beside other keys, in order":                           {gated(pod("Normal"), "["+other+"]"), kruise.LifecycleStatePreparingDelete, marking, 2, "False [" + other + "," + remove + "]"},
		"once":                                                  {gated(pod("Normal"), "["+remove+"]"), kruise.LifecycleStatePreparingDelete, marking, 1, "False [" + remove + "]"},
		"even if the state is there already":                    {gated(pod("PreparingDelete"), ""), kruise.LifecycleStatePreparingDelete, marking, 1, "False [" + remove + "]"},
		"a pod without the gate is left alone":                  {pod("Normal"), kruise.LifecycleStatePreparingDelete, marking, 1, ""},
		"an updated pod loses the mark of the update":           {gated(pod("Updating"), "["+update+"]"), kruise.LifecycleStateUpdated, plain, 2, "True "},
		"so does one that goes straight to normal":              {gated(pod("Updating"), "["+update+"]"), kruise.LifecycleStateNormal, nil, 2, "True "},
		"and only that mark":                                    {gated(pod("Updating"), "["+other+","+remove+","+update+"]"), kruise.LifecycleStateNormal, marking, 2, "False [" + other + "," + remove + "]"},
		"a pod that is updating keeps it":                       {gated(pod("PreparingUpdate"), "["+update+"]"), kruise.LifecycleStateUpdating, marking, 1, "False [" + update + "]"},
		"an unreadable message does not keep a pod from Normal": {gated(pod("Updating"), "busy"), kruise.LifecycleStateNormal, nil, 1, "False busy"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, told, writes, err := written(t, tc.pod, tc.to, tc.l, false, 0)
			if err != nil {
				t.Fatal(err)
			}
			if PodState(got) != tc.to || writes != tc.writes || kruiseReady(got) != tc.ready {
				t.Errorf("state %s, %d writes, %q; want %d writes, %q", PodState(got), writes, kruiseReady(got), tc.writes, tc.ready)
			}
			if (told != nil) != (writes > 0) || (told != nil && told.ResourceVersion != got.ResourceVersion) {
				t.Error("the returned pod is not the one written")
			}
		})
	}
}

func TestATimeIsWrittenWithTheState(t *testing.T) {
	got, _, _, err := written(t, pod("Normal"), kruise.LifecycleStateUpdating, nil, false, 0)
	if err != nil || got.Annotations[kruise.LifecycleTimestampKey] != "2026-01-02T03:04:05Z" {
		t.Errorf("%v, annotations %v", err, got.Annotations)
	}
}

func TestAnotherKeyDoesNotMoveTheTimeOfTheCondition(t *testing.T) {
	l := &kruise.Lifecycle{PreDelete: &kruise.LifecycleHook{MarkPodNotReady: true}}
	got, _, _, err := written(t, gated(pod("Normal"), "["+other+"]"), kruise.LifecycleStatePreparingDelete, l, false, 0)
	if err != nil {
		t.Fatal(err)
	}
	if at := got.Status.Conditions[1].LastTransitionTime; !at.Time.Equal(time.Unix(1, 0)) {
		t.Errorf("the condition changed at %s, but it was False before", at)
	}
}

func TestRehookPutsAllMarksBack(t *testing.T) {
	p := pod("Updated", "f", "fother")
	got, _, writes, err := written(t, p, kruise.LifecycleStatePreparingUpdate, &kruise.Lifecycle{InPlaceUpdate: hook()}, true, 0)
	if err != nil || writes != 1 || !AllHooked(hook(), got) || len(got.Finalizers) != 2 || !slices.Contains(got.Finalizers, "fother") {
		t.Errorf("%v, %d writes, labels %v, finalizers %v", err, writes, got.Labels, got.Finalizers)
	}
}

// The caller gets a pod that was taken out of its services, though its state was not
// written: it must not count the pod as available.
func TestAFailureHalfWayTellsWhatWasWritten(t *testing.T) {
	l := &kruise.Lifecycle{PreDelete: &kruise.LifecycleHook{MarkPodNotReady: true}}
	for failing, told := range map[int]bool{1: false, 2: true} {
		got, pod, _, err := written(t, gated(pod("Normal"), ""), kruise.LifecycleStatePreparingDelete, l, false, failing)
		if !errors.Is(err, errDown) || (pod != nil) != told {
			t.Fatalf("write %d fails: %v, told %v", failing, err, pod != nil)
		}
		if pod != nil && (PodState(pod) != "Normal" || pod.ResourceVersion != got.ResourceVersion || !strings.HasPrefix(kruiseReady(pod), "False")) {
			t.Errorf("told %s %s", PodState(pod), kruiseReady(pod))
		}
	}
}

func TestAMessageThatNobodyCanReadIsNotOverwritten(t *testing.T) {
	l := &kruise.Lifecycle{PreDelete: &kruise.LifecycleHook{MarkPodNotReady: true}}
	got, _, _, err := written(t, gated(pod("Normal"), "busy"), kruise.LifecycleStatePreparingDelete, l, false, 0)
	if err == nil || kruiseReady(got) != "False busy" {
		t.Errorf("%v, %q", err, kruiseReady(got))
	}
}
