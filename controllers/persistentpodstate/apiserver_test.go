// SPDX-License-Identifier: Apache-2.0

package persistentpodstate

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
	"github.com/regatta-sh/regatta/controllers/workload/scale"
	"github.com/regatta-sh/regatta/test/apiserver"
)

// gameServers is a kind of a CRD that only this test has.
var gameServers = schema.GroupVersionKind{Group: "games.example.com", Version: "v1", Kind: "GameServerSet"}

func gameServerCRD() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "gameserversets.games.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: gameServers.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "gameserversets", Singular: "gameserverset", Kind: gameServers.Kind, ListKind: "GameServerSetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: gameServers.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}},
			}},
		},
	}
}

// Objects of a kind of the white list have their PersistentPodState while the list has the kind:
// from when its CRD is there, and again after it was taken off the list.
func TestKindsOfTheWhiteList(t *testing.T) {
	env, c := apiserver.Serve(t)
	mgr, err := ctrl.NewManager(env.Config, ctrl.Options{Scheme: apiserver.Scheme(t), Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	k := &customs{mgr: mgr, running: map[schema.GroupVersionKind]context.CancelFunc{}, Reconciler: New(
		reconcile.Deps{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), NewRateLimiter: workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]},
		Options{Finder: scale.NewFinder(mgr.GetClient(), nil), Configuration: rules.Configuration{Reader: mgr.GetAPIReader(), Namespace: "default"}},
	)}
	apiserver.Run(t, mgr)
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	follow := func() {
		t.Helper()
		do(k.syncWhiteList(t.Context()))
	}
	object := func(name string, annotations map[string]string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(gameServers)
		o.SetNamespace("default")
		o.SetName(name)
		o.SetAnnotations(annotations)
		return o
	}
	asking := map[string]string{kruise.AutoGeneratePersistentPodStateKey: "true", kruise.RequiredPersistentTopologyKey: "zone"}
	get := func(name string) (*kruise.PersistentPodState, error) {
		state := &kruise.PersistentPodState{}
		return state, c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, state)
	}
	has := func(name string) *kruise.PersistentPodState {
		t.Helper()
		var state *kruise.PersistentPodState
		apiserver.Eventually(t, "a PersistentPodState of "+name, func() string {
			var err error
			if state, err = get(name); err != nil {
				return err.Error()
			}
			return ""
		})
		return state
	}
	list := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: rules.ConfigurationName}}
	lists := func(text string) {
		t.Helper()
		list.Data = map[string]string{kruise.PersistentPodStateWhiteListKey: text}
		do(c.Update(t.Context(), list))
		follow()
	}

	follow() // there is no list
	do(c.Create(t.Context(), list))
	whole := `{"workloads":[{"Group":"games.example.com","Version":"v1","Kind":"GameServerSet"},{"Group":"apps","Version":"v1","Kind":"StatefulSet"}]}`
	lists(whole) // and no CRD yet
	if len(k.running) != 0 {
		t.Errorf("controllers of %v run", k.running)
	}
	apiserver.Install(t, env, []*apiextensionsv1.CustomResourceDefinition{gameServerCRD()})
	apiserver.Eventually(t, "the controller of the kind", func() string {
		if follow(); len(k.running) != 1 {
			return "it does not run"
		}
		return ""
	})
	lobby := object("lobby", asking)
	do(c.Create(t.Context(), lobby))
	state := has("lobby")
	want := kruise.TargetReference{APIVersion: "games.example.com/v1", Kind: "GameServerSet", Name: "lobby"}
	if state.Spec.TargetReference != want || state.Spec.RequiredPersistentTopology.Keys[0] != "zone" || !metav1.IsControlledBy(state, lobby) {
		t.Errorf("got %+v of %v", state.Spec, state.OwnerReferences)
	}
	do(c.Delete(t.Context(), state))
	if again := has("lobby"); again.UID == state.UID {
		t.Error("the deleted one is still there")
	}

	lists(`{"workloads":[]}`)
	do(c.Create(t.Context(), object("arena", asking)))
	list.Data[kruise.PersistentPodStateWhiteListKey] = "no JSON"
	do(c.Update(t.Context(), list))
	if err := k.syncWhiteList(t.Context()); err == nil {
		t.Error("a list that cannot be read is no error")
	}
	if _, err := get("arena"); !apierrors.IsNotFound(err) || len(k.running) != 0 {
		t.Errorf("a kind that the list does not have: %v, %v", err, k.running)
	}
	lists(whole)
	has("arena")
	unasked := object("lobby", nil)
	unasked.SetResourceVersion(lobby.GetResourceVersion())
	do(c.Update(t.Context(), unasked))
	apiserver.Eventually(t, "the end of one that the annotations no longer ask for", func() string {
		if _, err := get("lobby"); !apierrors.IsNotFound(err) {
			return "it is still there"
		}
		return ""
	})
}
