// SPDX-License-Identifier: Apache-2.0

package imagepulljob

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/test/faultinjection"
	"github.com/regatta-sh/regatta/test/rules"
)

// newFaultScenario is a job with a pull secret for two nodes, one after the other, whose agents pull at once.
func newFaultScenario(t *testing.T) faultinjection.Scenario {
	t.Helper()
	e := rules.Engine(t, "")
	job := &kruise.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "warm", UID: "j"}}
	job.Spec.Image = "nginx:1.28"
	job.Spec.PullSecrets = []string{"login"}
	job.Spec.Parallelism = ptr.To(intstr.FromInt32(1))
	job.Spec.PullPolicy = &kruise.PullPolicy{TimeoutSeconds: ptr.To[int32](60), BackoffLimit: ptr.To[int32](2)}
	job.Spec.CompletionPolicy = kruise.CompletionPolicy{Type: kruise.AlwaysCompletionPolicyType, TTLSecondsAfterFinished: ptr.To[int32](7200)}
	objects := []client.Object{job, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "login"}, Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{}}`)}}}
	for _, name := range []string{"n1", "n2"} {
		objects = append(objects, &kruise.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{kruise.FakeNodeImageKey: "true"}}})
	}
	return faultinjection.Scenario{
		Objects: objects,
		New: func(_ testing.TB, env faultinjection.Environment) reconcile.Reconciler {
			return New(reconcile.Deps{Client: env.Client, Live: env.Client, Events: env.Events, Engine: e, Now: env.Clock}, WithRandom(func(int) int { return 0 }))
		},
		Requests:    faultinjection.RequestFor(job),
		Watches:     map[string]faultinjection.Changes{"Secret": faultinjection.NoChanges, "ImagePullJob": faultinjection.ChangesOfSpec},
		NoLateReads: []string{"Secret"}, // none is in the cache
		Others:      pullAtOnce,
		Delay:       7 * time.Minute,
	}
}

func pullAtOnce(c *faultinjection.Cluster) {
	list := &kruise.NodeImageList{}
	c.Must(c.Client.List(c.Context(), list))
	for i := range list.Items {
		o := &list.Items[i]
		before := o.DeepCopy()
		for name, image := range o.Spec.Images {
			for _, tag := range image.Tags {
				o.Status.ImageStatuses = map[string]kruise.ImageStatus{name: {Tags: []kruise.ImageTagStatus{{
					Tag: tag.Tag, Version: tag.Version, Phase: kruise.ImagePhaseSucceeded, CompletionTime: ptr.To(metav1.Unix(1_700_000_000, 0)),
				}}}}
			}
		}
		c.PatchStatus(o, before)
	}
}

func TestNoFailedCallLeavesAnImagePullJobUnfinished(t *testing.T) {
	newFaultScenario(t).Run(t)
}

func TestAnImagePullJobSaysThatItsSecretIsMissing(t *testing.T) {
	s := newFaultScenario(t)
	secret := s.Objects[1]
	s.Objects = append(s.Objects[:1:1], s.Objects[2:]...)
	job := s.Objects[0].(*kruise.ImagePullJob)
	job.Spec.CompletionPolicy = kruise.CompletionPolicy{Type: kruise.NeverCompletionPolicyType}
	s.Delay = 10 * time.Minute
	s.RunWait(t, faultinjection.Wait{
		Says:    "secret shop/login is not there",
		Resolve: func(c *faultinjection.Cluster) { c.Must(c.Client.Create(c.Context(), secret)) },
		Reaches: func(c *faultinjection.Cluster) string {
			list := &corev1.SecretList{}
			c.Must(c.Client.List(c.Context(), list, client.InNamespace(configNamespace)))
			if len(list.Items) == 0 {
				return "there is no copy of the secret"
			}
			return ""
		},
	})
}

func TestAnImagePullJobSaysThatItsNodesCannotBeAsked(t *testing.T) {
	s := newFaultScenario(t)
	s.Objects[0].(*kruise.ImagePullJob).Spec.PullSecrets = nil // they are looked at every few seconds
	s.RunWait(t, faultinjection.Wait{
		Refuse: func(c faultinjection.Call) bool { return c.Kind == "NodeImage" },
		Says:   "an admission webhook refuses it",
		Reaches: func(c *faultinjection.Cluster) string {
			job := &kruise.ImagePullJob{}
			c.Must(c.Client.Get(c.Context(), client.ObjectKey{Namespace: "shop", Name: "warm"}, job))
			if job.Status.Succeeded != 2 {
				return fmt.Sprintf("the status is %+v", job.Status)
			}
			return ""
		},
	})
}
