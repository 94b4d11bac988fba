// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/test/apiserver"
)

// What is logged as an error is told by the status, and nothing else is.
func TestWhatIsReported(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	conflict, broken := apierrors.NewConflict(pods, "a", errors.New("newer")), errors.New("broken")
	for name, tc := range map[string]struct {
		err    error
		report error // of the report
		rounds int   // before the one that is judged
		want   string
		fails  bool
	}{
		"that it went well":                  {want: "nothing"},
		"a failure":                          {err: broken, want: "broken", fails: true},
		"a lost race":                        {err: conflict},
		"an object that is gone":             {err: apierrors.NewNotFound(pods, "a")},
		"another object that is gone":        {err: apierrors.NewNotFound(pods, "b"), want: `pods "b" not found`, fails: true},
		"a failure beside a conflict":        {err: errors.Join(conflict, broken), want: conflict.Error() + "\nbroken", fails: true},
		"the sixth race in a row":            {err: conflict, rounds: requeue.MostLostRaces, want: conflict.Error(), fails: true},
		"a report that fails":                {report: broken, want: "nothing", fails: true},
		"a race that is lost for the report": {report: conflict, want: "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(apiserver.Scheme(t)).WithObjects(pod("a")).Build()
			told := ""
			pods := reconcile.NewObjectReconciler(reconcile.Deps{Client: c}, reconcile.ObjectFuncs[*corev1.Pod]{
				Reconcile: func(context.Context, *corev1.Pod) (time.Duration, error) { return 0, tc.err },
				Report: func(_ context.Context, _ *corev1.Pod, err error) error {
					if told = "nothing"; err != nil {
						told = err.Error()
					}
					return tc.report
				},
			})
			r := requeue.NewRetrier(pods, nil, time.Now)
			req := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pod("a"))}
			for range tc.rounds {
				if _, err := r.Reconcile(t.Context(), req); err != nil || told != "" {
					t.Fatalf("told is %q: %v", told, err)
				}
			}
			if _, err := r.Reconcile(t.Context(), req); told != tc.want || (err != nil) != tc.fails {
				t.Errorf("told is %q, want %q: %v", told, tc.want, err)
			}
		})
	}
}
