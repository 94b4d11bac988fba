// SPDX-License-Identifier: Apache-2.0

package imagepulljob

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/test/fakeclient"
	"github.com/regatta-sh/regatta/test/rules"
)

// A job that OpenKruise ended, and one that it has begun with, are taken over without a
// pull and without a write.
func TestTakingOverFromOpenKruisePullsNothingAgain(t *testing.T) {
	const neverEnds = "a job that never ends"
	raw, err := os.ReadFile("testdata/openkruise.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*kruise.ImagePullJob){
		"a job that has ended": func(*kruise.ImagePullJob) {},
		neverEnds: func(job *kruise.ImagePullJob) {
			job.Finalizers = []string{kruise.ImagePullJobFinalizer}
			job.Spec.CompletionPolicy = kruise.CompletionPolicy{Type: kruise.NeverCompletionPolicyType}
			job.Status.CompletionTime, job.Status.Message = nil, "job is running, progress 100.0%"
		},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := kruise.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			b := fakeclient.NewClientBuilder(scheme).WithStatusSubresource(&kruise.ImagePullJob{})
			job := &kruise.ImagePullJob{}
			nodes := 0
			for reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw))); ; {
				document, err := reader.Read()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				var o client.Object = &kruise.NodeImage{}
				if bytes.Contains(document, []byte("kind: ImagePullJob\nmetadata")) {
					o = job
				} else {
					nodes++
				}
				if err := yaml.UnmarshalStrict(document, o); err != nil {
					t.Fatal(err)
				}
				if node, ok := o.(*kruise.NodeImage); ok {
					if policy := node.Spec.Images["nginx"].Tags[0].PullPolicy; name == neverEnds {
						policy.TTLSecondsAfterFinished, policy.ActiveDeadlineSeconds = ptr.To[int32](86400), ptr.To[int64](1800)
					}
					b = b.WithObjects(o)
				}
			}
			edit(job)
			if job.Name != "warm" || nodes != 4 {
				t.Fatalf("read were job %q and %d nodes", job.Name, nodes)
			}
			written := 0
			refuse := func(o client.Object) error {
				t.Errorf("%T %s was written", o, o.GetName())
				return nil
			}
			c := b.WithObjects(job).WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
					return refuse(o)
				},
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
					if pulls, ok := o.(*kruise.ImagePullJob); ok {
						status := *pulls.Status.DeepCopy()
						kstatus.RemoveConditions(&status)
						if !equality.Semantic.DeepEqual(status, job.Status) {
							t.Errorf("the status is %+v, more than our conditions", pulls.Status)
						}
						written++
						return c.SubResource(sub).Patch(ctx, o, patch, opts...)
					}
					return refuse(o)
				},
				Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
					return refuse(o)
				},
			}).Build()
			e := rules.Engine(t, "")
			r := New(reconcile.Deps{
				Client: c, Live: c, Events: record.NewFakeRecorder(10), Engine: e, Now: func() time.Time { return job.CreationTimestamp.Add(time.Minute) },
			})
			for range 3 {
				if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)}); err != nil {
					t.Fatal(err)
				}
			}
			if written > 1 {
				t.Errorf("the status was written %d times", written)
			}
		})
	}
}
