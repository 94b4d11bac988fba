// SPDX-License-Identifier: Apache-2.0

package failure_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/fakeclient"
	_ "github.com/regatta-sh/regatta/test/proptest"
)

// round is how a round goes.
type round struct {
	Ending  string
	Refuses string // which writes of statuses the API server refuses
	Cause   string // of a failure
	Summary kstatus.Summary
}

// The ends of rounds.
const (
	succeeds     = "succeeds"
	waits        = "succeeds before it knows the state"
	failsFirst   = "fails before it writes the status"
	failsKnowing = "fails, and then writes the status"
	failsLast    = "fails after it has written the status"
)

// Which writes are refused.
const (
	nothing = "nothing"
	patches = "patches"
	updates = "updates"
	all     = "all"
)

// How a kind writes its status in a round.
const (
	// inBetween keeps FailedReconcile. The end of the round removes it.
	inBetween = "in between"
	// keeping is the same, and the object keeps what could not be written. The report writes that, too.
	keeping = "in between, and keeps what is refused"
	// atLast removes FailedReconcile: nothing that can fail follows.
	atLast = "at last"
)

// controller plays rounds of a kind as their controllers make them.
type controller[T client.Object] struct {
	round
	api     client.Client
	status  func(T) any
	style   string
	updates bool // rather than patches
	now     time.Time
	written int
}

func (c *controller[T]) reconcileObject(ctx context.Context, o T) (time.Duration, error) {
	switch c.Ending {
	case failsFirst:
		return 0, errors.New(c.Cause)
	case waits:
		return time.Second, nil
	}
	before, _ := o.DeepCopyObject().(T)
	set := kstatus.SetConditions
	if c.style == atLast {
		set = failure.SetSummary
	}
	set(c.status(o), c.Summary, o.GetGeneration(), c.now)
	err := c.writeStatus(ctx, o, before)
	if c.Ending == failsKnowing || c.Ending == failsLast && err == nil {
		err = errors.Join(errors.New(c.Cause), err)
	}
	return 0, err
}

func (c *controller[T]) writeStatus(ctx context.Context, o, before T) error {
	if equality.Semantic.DeepEqual(o, before) {
		return nil
	}
	var err error
	if c.updates {
		err = c.api.Status().Update(ctx, o)
	} else {
		err = c.api.Status().Patch(ctx, o, client.MergeFrom(before))
	}
	if err != nil && c.style != keeping {
		reflect.ValueOf(c.status(o)).Elem().Set(reflect.ValueOf(c.status(before)).Elem())
	}
	return err
}

// countWrite counts a write of a status, or refuses it.
func (c *controller[T]) countWrite(kind string) error {
	if c.Refuses == kind || c.Refuses == all {
		return errors.New(kind + " of statuses are refused")
	}
	c.written++
	return nil
}

// playRounds plays rounds that end in any way, and then the same round again and again. Only the first two of these may write: the second one
// where the report of the first has stored what the round could not.
func playRounds[T client.Object](o T, status func(T) any) func(*testing.T) {
	return func(t *testing.T) {
		scheme := apiserver.Scheme(t)
		rapid.Check(t, func(t *rapid.T) {
			c := &controller[T]{status: status, now: time.Unix(1_800_000_000, 0)}
			c.style = rapid.SampledFrom([]string{inBetween, keeping, atLast}).Draw(t, "writes")
			c.updates = rapid.Bool().Draw(t, "updates")
			o, _ := o.DeepCopyObject().(T)
			o.SetNamespace("shop")
			o.SetName("web")
			o.SetGeneration(2)
			ended := endJob(t, status(o))
			c.api = fakeclient.NewClientBuilder(scheme).WithObjects(o).WithStatusSubresource(o).WithInterceptorFuncs(interceptor.Funcs{
				SubResourceUpdate: func(ctx context.Context, api client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
					if err := c.countWrite(updates); err != nil {
						return err
					}
					return api.SubResource(sub).Update(ctx, o, opts...)
				},
				SubResourcePatch: func(ctx context.Context, api client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
					if err := c.countWrite(patches); err != nil {
						return err
					}
					return api.SubResource(sub).Patch(ctx, o, patch, opts...)
				},
			}).Build()
			funcs := reconcile.ObjectFuncs[T]{Reconcile: c.reconcileObject, Status: status}
			if c.style != atLast {
				funcs.Summarize = func(T) kstatus.Summary { return c.Summary }
			}
			r := reconcile.NewObjectReconciler(reconcile.Deps{Client: c.api, Now: func() time.Time { return c.now }}, funcs)
			run := func() error {
				c.now, c.written = c.now.Add(time.Minute), 0
				_, err := r.Reconcile(context.Background(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
				return err
			}
			for _, c.round = range rapid.SliceOfN(drawRound(c.style), 0, 8).Draw(t, "before") {
				_ = run()
			}
			c.round = drawRound(c.style).Draw(t, "round")
			var err error
			for n := range 5 {
				err = run()
				if c.written > 0 && n > 1 || c.written > 2 {
					t.Fatalf("the status is written %d times in round %d of the same", c.written, n+1)
				}
			}
			if c.Refuses != nothing {
				return
			}
			if err := c.api.Get(context.Background(), client.ObjectKeyFromObject(o), o); err != nil {
				t.Fatal(err)
			}
			if wrong := c.checkStatus(status(o), err, ended); wrong != "" {
				t.Fatalf("%s, and the status is %+v", wrong, status(o))
			}
		})
	}
}

// drawRound draws how a round goes. Where the status is written at last, no round fails after that.
func drawRound(style string) *rapid.Generator[round] {
	endings := []string{succeeds, waits, failsFirst, failsKnowing, failsLast}
	if style == atLast {
		endings = endings[:3]
	}
	return rapid.Custom(func(t *rapid.T) round {
		return round{
			Ending:  rapid.SampledFrom(endings).Draw(t, "ending"),
			Refuses: rapid.SampledFrom([]string{nothing, patches, updates, all}).Draw(t, "refuses"),
			Cause:   rapid.SampledFrom([]string{"no answer", "quota exceeded"}).Draw(t, "cause"),
			Summary: rapid.SampledFrom([]kstatus.Summary{
				kstatus.NewReady("Done", "all is well"), kstatus.NewReconciling(kruise.ProgressingReason, "1 of 3"), kstatus.NewReconciling("Held", "frozen"),
				kstatus.NewStalled("Late", "timed out"),
			}).Draw(t, "summary"),
		}
	})
}

// endJob has a job end, in some draws, and reports whether it did.
func endJob(t *rapid.T, status any) bool {
	at := reflect.ValueOf(status).Elem().FieldByName("CompletionTime")
	if !at.IsValid() || !rapid.Bool().Draw(t, "ended") {
		return false
	}
	end := metav1.Unix(1_700_000_000, 0)
	at.Set(reflect.ValueOf(&end))
	return true
}

// checkStatus says what is wrong with a status at rest. err is what the last round returned.
func (c *controller[T]) checkStatus(status any, err error, ended bool) string {
	failed, is := condition.FindCondition(status, failure.ConditionType)
	ready, _ := condition.FindCondition(status, kruise.ConditionReady)
	isReady := ready.Status == metav1.ConditionTrue
	switch {
	case c.Ending == waits && c.style == atLast: // the next round that knows the state writes it
	case err != nil && (!is || failed.Message != err.Error()):
		return fmt.Sprintf("FailedReconcile is not %q", err)
	case err != nil && isReady && !ended:
		return "it is ready though it fails"
	case err == nil && is:
		return "FailedReconcile is there though it does not fail"
	case err == nil && c.Ending == succeeds && (isReady != (c.Summary.Type == kruise.ConditionReady) || ready.Reason != c.Summary.Reason):
		return "the summary is not that of the round"
	}
	return ""
}

func TestAStatusComesToRestHoweverRoundsEnd(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"AdvancedCronJob": playRounds(&kruise.AdvancedCronJob{}, func(o *kruise.AdvancedCronJob) any { return &o.Status }),
		"BroadcastJob":    playRounds(&kruise.BroadcastJob{}, func(o *kruise.BroadcastJob) any { return &o.Status }),
		"CloneSet":        playRounds(&kruise.CloneSet{}, func(o *kruise.CloneSet) any { return &o.Status }),
		"ContainerRecreateRequest": playRounds(&kruise.ContainerRecreateRequest{}, func(o *kruise.ContainerRecreateRequest) any {
			return &o.Status
		}),
		"DaemonSet":          playRounds(&kruise.DaemonSet{}, func(o *kruise.DaemonSet) any { return &o.Status }),
		"ImageListPullJob":   playRounds(&kruise.ImageListPullJob{}, func(o *kruise.ImageListPullJob) any { return &o.Status }),
		"ImagePullJob":       playRounds(&kruise.ImagePullJob{}, func(o *kruise.ImagePullJob) any { return &o.Status }),
		"PersistentPodState": playRounds(&kruise.PersistentPodState{}, func(o *kruise.PersistentPodState) any { return &o.Status }),
		"PodProbeMarker":     playRounds(&v1alpha1.PodProbeMarker{}, func(o *v1alpha1.PodProbeMarker) any { return &o.Status }),
		"PodUnavailableBudget": playRounds(&policy.PodUnavailableBudget{}, func(o *policy.PodUnavailableBudget) any {
			return &o.Status
		}),
		"SidecarSet":       playRounds(&kruise.SidecarSet{}, func(o *kruise.SidecarSet) any { return &o.Status }),
		"StatefulSet":      playRounds(&kruise.StatefulSet{}, func(o *kruise.StatefulSet) any { return &o.Status }),
		"UnitedDeployment": playRounds(&kruise.UnitedDeployment{}, func(o *kruise.UnitedDeployment) any { return &o.Status }),
	} {
		t.Run(name, test)
	}
}
