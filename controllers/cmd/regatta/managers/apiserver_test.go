// SPDX-License-Identifier: Apache-2.0

package managers

import (
	"context"
	"encoding/base64"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/explain/serve"
	"github.com/regatta-sh/regatta/controllers/explain/whatif"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/cluster/addresses"
	"github.com/regatta-sh/regatta/test/cluster/credentials"
	"github.com/regatta-sh/regatta/test/rules"
)

// aggregate has an API server pass on requests for the API to a manager at a port of this machine.
func aggregate(t *testing.T, api client.Client, config *rest.Config, store *explain.Store) {
	t.Helper()
	ports, err := addresses.AnyPorts(1)
	if err != nil {
		t.Fatal(err)
	}
	const host = "decisions.default.svc"
	cert, key, err := certutil.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string][]byte{"tls.crt": cert, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	who, may, err := serve.NewDelegatedAuth(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	ready, records := make(chan struct{}), record.NewBuffer()
	close(ready)
	records.RecordDecision(decision.Record{ID: 1, Time: time.Now(), Point: rollout.PlanPoint().Name, Input: rollout.PlanInput{}, Outcome: decision.Decided, Output: rollout.PlanOutput{}})
	server := &serve.Server{
		Addr: net.JoinHostPort("localhost", strconv.Itoa(ports[0])), CertDir: dir, Ready: ready, Store: store, Replica: "manager-1",
		Who: who, May: may, Records: records, Lines: record.NewEncoder(),
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	service := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": explain.APIService},
		"spec": map[string]any{
			"group": explain.Group, "version": explain.Version, "groupPriorityMinimum": int64(1000), "versionPriority": int64(15),
			"service":  map[string]any{"namespace": "default", "name": "decisions", "port": int64(ports[0])},
			"caBundle": base64.StdEncoding.EncodeToString(cert),
		},
	}}
	for _, o := range []client.Object{
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "decisions"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}},
		service,
	} {
		if err := api.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// allow lets a user do something, in a namespace or in the whole cluster.
func allow(t *testing.T, api client.Client, user, namespace string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "x-"}, Rules: rules}
	if err := api.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}
	var binding client.Object = &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{GenerateName: "x-", Namespace: namespace}, RoleRef: ref, Subjects: subjects}
	if namespace == "" {
		binding = &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{GenerateName: "x-"}, RoleRef: ref, Subjects: subjects}
	}
	if err := api.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
}

// pausedBasis is a decision about a workload that is paused.
func pausedBasis(t *testing.T) *whatif.Basis {
	t.Helper()
	e := rules.Engine(t, "")
	subject := decision.Subject{Group: "apps.kruise.io", Kind: "CloneSet", Namespace: "shop", Name: "web"}
	return &whatif.Basis{Engine: e, Records: []decision.Record{{
		Point: rollout.PlanPoint().Name, Subject: subject, Revision: e.ActiveSnapshot().RevisionFor(subject),
		Input: rollout.PlanInput{Update: 3, MaxUnavailable: 1, Strategy: rollout.Strategy{Type: "RollingUpdate", Paused: true}},
	}}}
}

// A user of the cluster asks the API server with a kubeconfig, and needs nothing else.
func TestThroughAnAPIServerThatAggregates(t *testing.T) {
	pki := t.TempDir()
	if err := credentials.WriteCertificates(pki, time.Now()); err != nil {
		t.Fatal(err)
	}
	env := apiserver.Start(t, func(e *envtest.Environment) {
		for flag, value := range credentials.FrontProxyFlags(pki) {
			e.ControlPlane.GetAPIServer().Configure().Set(flag, value)
		}
	})
	api, err := client.New(env.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := ask(t, env.Config, Flags{}, web); !contains(err, "it has no API decisions.kruise.io") {
		t.Errorf("before it is installed: %v", err)
	}
	store := explain.NewStore()
	for _, namespace := range []string{"shop", "other"} {
		if err := api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
			t.Fatal(err)
		}
		store.PutRefusal(explain.Answer{
			Subject: decision.Subject{Namespace: namespace, Name: "web-1"}, Decided: time.Unix(1, 0),
			Request: &explain.Request{UID: "of-" + namespace, User: "bob", Resource: "pods"},
			Basis:   pausedBasis(t),
		})
	}
	aggregate(t, api, env.Config, store)
	apiserver.Eventually(t, "asking as an administrator", func() string {
		_, _, err := ask(t, env.Config, Flags{}, web)
		if err != nil {
			return err.Error()
		}
		return ""
	})

	asking := []rbacv1.PolicyRule{
		{APIGroups: []string{explain.Group}, Resources: []string{explain.Explanations}, Verbs: []string{"get"}},
		{APIGroups: []string{explain.Group}, Resources: []string{explain.Refusals}, Verbs: []string{"list"}},
	}
	pods := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}
	configs := map[string]*rest.Config{"admin": env.Config}
	for _, name := range []string{"jane", "blind"} {
		user, err := env.AddUser(envtest.User{Name: name}, nil)
		if err != nil {
			t.Fatal(err)
		}
		configs[name] = user.Config()
	}
	allow(t, api, "jane", "shop", append(asking, pods)...)
	allow(t, api, "jane", "other", pods)
	allow(t, api, "blind", "", asking...)
	configs["an administrator as jane"] = rest.CopyConfig(env.Config)
	configs["an administrator as jane"].Impersonate.UserName = "jane"
	other := Question{Kind: "Pod", Namespace: "other", Name: "web-1"}
	for name, tc := range map[string]struct {
		user string
		q    Question
		err  []string
	}{
		"a pod":                              {"jane", web, nil},
		"a pod, as another user":             {"an administrator as jane", web, nil},
		"a pod where she may not ask":        {"jane", other, []string{"cannot get resource \"explanations\"", "--clusterrole=kruise-decision-reader"}},
		"that, as another user":              {"an administrator as jane", other, []string{"cannot get resource \"explanations\""}},
		"a pod that they may not get":        {"blind", web, []string{"blind may not get pods shop/web-1", "Only users who may get the object itself"}},
		"a request in the namespace":         {"jane", Question{Request: "of-shop", Namespace: "shop"}, nil},
		"a request of another namespace":     {"jane", Question{Request: "of-other", Namespace: "shop"}, []string{"no manager remembers"}},
		"a request anywhere":                 {"jane", Question{Request: "of-shop"}, []string{"name it with -n"}},
		"a request about what is not theirs": {"blind", Question{Request: "of-shop"}, []string{"no manager remembers"}},
		"all of a user":                      {"admin", Question{User: "bob"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := ask(t, configs[tc.user], Flags{}, tc.q)
			if !contains(err, tc.err...) || err == nil && got != "manager-1" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}

	// A changed fact needs no other permission.
	changed := web
	changed.If = []string{`workload.annotations["a b/c"]=x&y=%z`, "strategy.paused=false"}
	for user, allowed := range map[string]bool{"jane": true, "blind": false} {
		a, err := New(configs[user], Flags{})
		if err != nil {
			t.Fatal(err)
		}
		reply, _, err := a.FetchExplanation(t.Context(), changed)
		w := reply.Answer.WhatIf
		var no *RefusedError
		switch {
		case !allowed && !errors.As(err, &no), allowed && (err != nil || w == nil || len(w.Decisions) != 1 || len(w.Facts) != 2):
			t.Errorf("%s is told %+v, %v", user, w, err)
		case allowed && (w.Decisions[0].Is != "Go" || w.Facts[0].Is == nil || *w.Facts[0].Is != "x&y=%z"):
			t.Errorf("the facts %+v would give %+v", w.Facts, w.Decisions)
		}
	}
	changed.If = []string{"strategy.paused"}
	if _, _, err := ask(t, configs["jane"], Flags{}, changed); !contains(err, "parameter if: ", "there is no value") {
		t.Errorf("of what is no change: %v", err)
	}

	for user, allowed := range map[string]bool{"admin": true, "jane": false} {
		a, err := New(configs[user], Flags{})
		if err != nil {
			t.Fatal(err)
		}
		var no *RefusedError
		if records, _, err := a.FetchDecisions(t.Context(), Decisions{}); allowed && (err != nil || len(records) != 1) || !allowed && !errors.As(err, &no) {
			t.Errorf("%s gets %d records, %v", user, len(records), err)
		}
	}

	found, err := discovery.NewDiscoveryClientForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	apiserver.Eventually(t, "discovery", func() string {
		groups, lists, err := found.ServerGroupsAndResources()
		if err != nil {
			return err.Error()
		}
		for _, list := range lists {
			if list.GroupVersion == explain.Group+"/"+explain.Version && len(list.APIResources) == len(explain.APIResources().APIResources) {
				return ""
			}
		}
		return strings.TrimSpace("the API is not there: " + groups[len(groups)-1].Name)
	})
}
