// SPDX-License-Identifier: Apache-2.0

package ephemeraljob

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
)

func reasonOf(code int32) metav1.StatusReason {
	return map[int32]metav1.StatusReason{http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusBadRequest: metav1.StatusReasonBadRequest, http.StatusNotFound: metav1.StatusReasonNotFound}[code]
}

// A job ends, whatever keeps its containers from a pod.
func TestPodsThatCannotHaveTheContainer(t *testing.T) {
	c := serve(t, "refused")
	run, api := c.run, c.api

	run("a pod that cannot have the container keeps no other from it", func(w *world) {
		w.job(func(j *kruise.EphemeralJob) { j.Spec.Template.EphemeralContainers[0].TargetContainerName = "sidecar" })
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "d", Labels: map[string]string{"app": "web"}}}
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "nginx"}, {Name: "sidecar", Image: "nginx"}}
		w.do(api.Create(w.Context(), pod))
		for range 4 {
			_, _ = w.try()
		}
		w.having("d")
		w.status("Unknown 4/0/0/0/3", kruise.EphemeralJobConditionFailed)
		if c := w.get().Status.Conditions[1]; c.Reason != "CreateFailed" || !strings.Contains(c.Message, "sidecar") || !strings.HasPrefix(c.Message, "the containers of 3 of 4 pods failed; adding containers to pod a: ") {
			w.Errorf("got %+v", c)
		}
		if got := w.told(); !strings.Contains(got, "Warning CreateFailed adding containers to pod a: ") {
			w.Errorf("told is %q", got)
		}
		w.becomes(ended(0), "d")
		w.round()
		w.status("Failed 4/0/1/0/3", kruise.EphemeralJobConditionFailed)
		if w.get().Status.CompletionTime == nil {
			w.Error("it has not ended")
		}
	})
	foreign := func(w *world, name string) {
		pod := &corev1.Pod{}
		w.do(api.Get(w.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, pod))
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "dbg", Image: "busybox"}}}
		w.do(api.SubResource("ephemeralcontainers").Update(w.Context(), pod))
	}
	run("a container of the name that another has added", func(w *world) {
		foreign(w, "a")
		w.job(nil)
		w.round()
		w.having("b")
		w.status("Unknown 3/0/0/0/1", kruise.EphemeralJobConditionFailed)
		if c := w.get().Status.Conditions[1]; c.Message != "the containers of 1 of 3 pods failed; pod a has an ephemeral container of the same name already" {
			w.Errorf("got %+v", c)
		}
		w.becomes(ended(0), "b")
		w.round()
		w.becomes(ended(0), "c")
		w.round()
		w.status("Failed 3/0/2/0/1", kruise.EphemeralJobConditionFailed)
	})
	run("all pods have a container of the name that another has added", func(w *world) {
		for _, name := range []string{"a", "b", "c"} {
			foreign(w, name)
		}
		w.job(nil)
		w.round()
		w.status("Failed 3/0/0/0/3", kruise.EphemeralJobConditionFailed)
	})
	run("replicas prefer pods that can have the container", func(w *world) {
		foreign(w, "a")
		w.job(func(j *kruise.EphemeralJob) { j.Spec.Parallelism, j.Spec.Replicas = ptr.To[int32](9), ptr.To[int32](2) })
		w.round()
		w.having("b c")
		w.status("Unknown 2/0/0/0/0")
	})
	run("a container of the name that the pod itself has ends the job at once", func(w *world) {
		w.job(func(j *kruise.EphemeralJob) {
			j.Spec.Template.EphemeralContainers[0].Name, j.Spec.Parallelism = "main", ptr.To[int32](9)
		})
		if after := w.round(); after != 30*time.Minute {
			w.Errorf("it is looked at again in %s", after)
		}
		w.status("Failed 3/0/0/0/3", kruise.EphemeralJobConditionFailed)
		if c := w.get().Status.Conditions[1]; c.Reason != "CreateFailed" || !strings.Contains(c.Message, "adding containers to pod c: ") {
			w.Errorf("got %+v", c)
		}
	})
	run("a pod that goes is none of the job, however many it asks for", func(w *world) {
		w.job(func(j *kruise.EphemeralJob) { j.Spec.Parallelism, j.Spec.Replicas = ptr.To[int32](9), ptr.To[int32](3) })
		w.round()
		w.becomes(ended(0), "a", "b")
		w.do(api.Delete(w.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "c"}}, client.GracePeriodSeconds(0)))
		w.round()
		w.status("Succeeded 2/0/2/0/0", kruise.EphemeralJobConditionSucceeded)
	})
	run("a container whose image has no proper name has failed", func(w *world) {
		w.job(func(j *kruise.EphemeralJob) { j.Spec.Parallelism = ptr.To[int32](9) })
		w.round()
		w.becomes(waits("InvalidImageName"), "a", "b", "c")
		w.round()
		w.status("Failed 3/0/0/0/3", kruise.EphemeralJobConditionFailed)
	})
	for name, code := range map[string]int32{"a webhook": http.StatusForbidden, "a request that is malformed": http.StatusBadRequest, "an API server without the subresource": http.StatusNotFound} {
		run("a refusal that may pass fails the job after a minute: "+name, func(w *world) {
			refuses := true
			watching, err := client.NewWithWatch(c.config, client.Options{Scheme: api.Scheme()})
			w.do(err)
			w.r.Client = interceptor.NewClient(watching, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				if refuses && sub == "ephemeralcontainers" {
					return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reasonOf(code), Message: "not you"}}
				}
				return c.SubResource(sub).Patch(ctx, o, patch, opts...)
			}})
			w.job(func(j *kruise.EphemeralJob) { j.Spec.Parallelism = ptr.To[int32](9) })
			if _, err := w.try(); err == nil {
				w.Error("nothing tries it again")
			}
			w.status("Unknown 3/0/0/0/0", kruise.EphemeralJobConditionFailed)
			w.now = w.now.Add(time.Minute - time.Second)
			_, _ = w.try()
			refuses = name == "a webhook"
			w.now = w.now.Add(time.Second)
			_, _ = w.try()
			if refuses {
				w.status("Failed 3/0/0/0/3", kruise.EphemeralJobConditionFailed)
				return
			}
			w.having("a b c")
			w.status("Unknown 3/0/0/0/0")
		})
	}
}
