// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/cri/critest"
	"github.com/regatta-sh/regatta/test/faultinjection"
)

// faultyAgent is an Agent with a registry that knows no image "broken", and wants a login for all others.
type faultyAgent struct {
	*Agent
	background *faultinjection.Background

	mu     sync.Mutex
	pulled map[string]int // how often each image was pulled
}

// isPulling reports whether a pull has not ended.
func (a *faultyAgent) isPulling() bool {
	a.Agent.mu.Lock()
	defer a.Agent.mu.Unlock()
	for _, p := range a.pulls {
		if p.status.CompletionTime == nil {
			return true
		}
	}
	return false
}

func (a *faultyAgent) answerPull(_ context.Context, q *runtimev1.PullImageRequest) error {
	a.background.WaitForRound()
	if q.GetImage().GetImage() == "broken:1" {
		return errors.New("no such image")
	}
	if q.GetAuth().GetUsername() == "" {
		return errors.New("it wants a login")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pulled[q.GetImage().GetImage()]++
	return nil
}

// countPulls returns how often each image was pulled.
func (a *faultyAgent) countPulls() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return fmt.Sprint(a.pulled)
}

// newFaultScenario is a node that is to pull two images, of which one is asked for once more when it is there.
func newFaultScenario(t *testing.T) faultinjection.Scenario {
	t.Helper()
	node := &kruise.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n"}}
	tag := func(second int64) []kruise.ImageTagSpec {
		return []kruise.ImageTagSpec{{Tag: "1", CreatedAt: ptr.To(metav1.Unix(1_700_000_000+second, 0)), PullPolicy: &kruise.ImageTagPullPolicy{BackoffLimit: ptr.To[int32](2)}}}
	}
	node.Spec.Images = map[string]kruise.ImageSpec{
		"nginx":  {Tags: tag(0), PullSecrets: []kruise.ReferenceObject{{Namespace: "kruise-daemon-config", Name: "login"}}},
		"broken": {Tags: tag(1)},
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-daemon-config", Name: "login"}, Type: corev1.SecretTypeDockerConfigJson}
	secret.Data = map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"docker.io":{"username":"me","password":"secret"}}}`)}
	counted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pulled"}} // the end state has what was pulled
	var agent *faultyAgent
	return faultinjection.Scenario{
		Objects: []client.Object{node, secret, counted},
		New: func(t testing.TB, e faultinjection.Environment) reconcile.Reconciler {
			runtime := critest.Start(t, "containerd")
			background := &faultinjection.Background{Environment: e}
			a := New(t.Context(), e.Client, e.Client, cri.NewNode(runtime.Socket), e.Events, WithWorkers(1), WithClock(background.Now, func(context.Context, time.Duration) {}))
			agent = &faultyAgent{Agent: a, background: background, pulled: map[string]int{}}
			runtime.OnPull = agent.answerPull
			background.Reconciler, background.News, background.IsBusy = a, a.StatusEvents(), agent.isPulling
			return background
		},
		Requests:    faultinjection.RequestFor(node),
		Watches:     map[string]faultinjection.Changes{"Secret": faultinjection.NoChanges, "ConfigMap": faultinjection.NoChanges},
		NoLateReads: []string{"Secret"}, // none is in the cache
		// A secret that cannot be read for longer than the tries take that its job lets a pull have is a pull that has failed.
		Skip: func(c faultinjection.Call, fault faultinjection.Fault) bool {
			return c.Kind == "Secret" && fault == faultinjection.InternalError
		},
		Others: func(c *faultinjection.Cluster) {
			counted := counted.DeepCopy()
			counted.Data = map[string]string{"pulled": agent.countPulls()}
			c.Must(c.Client.Update(c.Context(), counted))
			found := &kruise.NodeImage{}
			c.Must(c.Client.Get(c.Context(), client.ObjectKeyFromObject(node), found))
			if s := statusOf(found, key{"nginx", "1"}); s != nil && s.Phase == kruise.ImagePhaseSucceeded && found.Spec.Images["nginx"].Tags[0].Version == 0 {
				found.Spec.Images["nginx"].Tags[0].Version = 1
				c.Must(c.Client.Update(c.Context(), found))
			}
		},
	}
}

func TestNoFailedCallLeavesAnImageUnpulled(t *testing.T) {
	newFaultScenario(t).Run(t)
}

// A pull that waits for a login says so in the status of its node, and is made once the secret has one and the image is asked for again.
func TestANodeImageSaysThatAPullWantsALogin(t *testing.T) {
	login := func(c *faultinjection.Cluster, config string) {
		secret := &corev1.Secret{}
		c.Must(c.Client.Get(c.Context(), client.ObjectKey{Namespace: "kruise-daemon-config", Name: "login"}, secret))
		secret.Data[corev1.DockerConfigJsonKey] = []byte(config)
		c.Must(c.Client.Update(c.Context(), secret))
	}
	find := func(c *faultinjection.Cluster) *kruise.NodeImage {
		node := &kruise.NodeImage{}
		c.Must(c.Client.Get(c.Context(), client.ObjectKey{Name: "n1"}, node))
		return node
	}
	newFaultScenario(t).RunWait(t, faultinjection.Wait{
		Arrange: func(c *faultinjection.Cluster) { login(c, `{"auths":{}}`) },
		Says:    "it wants a login",
		Resolve: func(c *faultinjection.Cluster) {
			login(c, `{"auths":{"docker.io":{"username":"me","password":"secret"}}}`)
			node := find(c)
			node.Spec.Images["nginx"].Tags[0].Version = 1
			c.Must(c.Client.Update(c.Context(), node))
		},
		Reaches: func(c *faultinjection.Cluster) string {
			if s := statusOf(find(c), key{"nginx", "1"}); s == nil || s.Phase != kruise.ImagePhaseSucceeded {
				return fmt.Sprintf("the pull is %+v", s)
			}
			return ""
		},
	})
}
