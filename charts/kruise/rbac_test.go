// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/regatta-sh/regatta/controllers/explain"
)

// roles are all of a release: the rules by whether they hold everywhere.
func roles(r release) (cluster, namespaced map[string][]rbacv1.PolicyRule) {
	cluster, namespaced = map[string][]rbacv1.PolicyRule{}, map[string][]rbacv1.PolicyRule{}
	for _, role := range all[*rbacv1.ClusterRole](r) {
		cluster[role.Name] = role.Rules
	}
	for _, role := range all[*rbacv1.Role](r) {
		namespaced[role.Name] = role.Rules
	}
	return cluster, namespaced
}

func TestNobodyMayDoEverything(t *testing.T) {
	for _, args := range [][]string{nil, {"--set", "installation.roleListGroups={*}"}, {"--set", "featureGates=EnableExternalCerts=true"}, {"--set", `featureGates=AllAlpha=true\,AllBeta=true`}} {
		cluster, namespaced := roles(render(t, args...))
		for _, set := range []map[string][]rbacv1.PolicyRule{cluster, namespaced} {
			for name, rules := range set {
				for _, rule := range rules {
					if name == "kruise-list-role" || readsScales(rule) { // TestGroupsThatMayBeListed
						continue
					}
					if words := slices.Concat(rule.Verbs, rule.Resources, rule.APIGroups, rule.NonResourceURLs); slices.ContainsFunc(words, func(s string) bool { return strings.Contains(s, "*") }) {
						t.Errorf("%s: %v", name, rule)
					}
				}
			}
		}
		for name, rules := range cluster {
			if name == "kruise-bundle-credentials" || name == "kruise-pull-secrets" { // Test...AreReadWhereTheirOwnersSaySo
				continue
			}
			if name == "kruise-distribution-role" { // TestTheManagerWritesCopiesOnly
				continue
			}
			for _, rule := range rules {
				for _, bad := range []string{"secrets", "configmaps", "serviceaccounts/token", "pods/exec", "roles", "clusterroles"} {
					if bad == "configmaps" && slices.Equal(rule.Resources, []string{bad}) && slices.Equal(rule.Verbs, []string{"get"}) {
						continue // a bundle names the one it is in
					}
					if bad == "configmaps" && slices.Equal(rule.Resources, []string{bad}) && slices.Equal(rule.Verbs, []string{"create", "update"}) {
						continue // each pod whose containers start in an order has one beside it; none is listed
					}
					if slices.Contains(rule.Resources, bad) {
						t.Errorf("%s may touch %s in every namespace", name, bad)
					}
				}
			}
		}
	}
}

// The status of a PolicyBundle says what every replica runs, so who owns a namespace
// may write the spec and not the status.
func TestOwnersOfANamespaceShipPoliciesThroughTheGate(t *testing.T) {
	cluster, _ := roles(render(t))
	for _, name := range []string{"aggregate-kruise-view", "aggregate-kruise-edit", "aggregate-kruise-admin"} {
		for _, verb := range []string{"update", "patch"} {
			if allowed(cluster[name], "policy.kruise.io", "policybundles/status", verb) {
				t.Errorf("%s may %s it", name, verb)
			}
		}
	}
	if !allowed(cluster["aggregate-kruise-edit"], "policy.kruise.io", "policybundles", "create") || !allowed(cluster["aggregate-kruise-view"], "policy.kruise.io", "policybundles", "get") {
		t.Error("no role may write policies of a namespace")
	}
	for _, verb := range []string{"create", "update", "patch", "delete"} {
		for _, name := range []string{"aggregate-kruise-edit", "aggregate-kruise-admin"} {
			if allowed(cluster[name], "policy.kruise.io", "clusterpolicybundles", verb) {
				t.Errorf("%s may %s policies of the platform", name, verb)
			}
		}
	}
}

// The role for credentials of bundles gets secrets and does no more, and is bound
// in the manager's own namespace only, until a user binds it elsewhere.
func TestCredentialsAreReadWhereTheirOwnersSaySo(t *testing.T) {
	const role = "kruise-bundle-credentials"
	r := render(t, "--set", "installation.namespace=other")
	rules := get[*rbacv1.ClusterRole](t, r, role).Rules
	if len(rules) != 1 || !slices.Equal(rules[0].Resources, []string{"secrets"}) || !slices.Equal(rules[0].Verbs, []string{"get"}) {
		t.Errorf("the rules are %v", rules)
	}
	for _, binding := range all[*rbacv1.ClusterRoleBinding](r) {
		if binding.RoleRef.Name == role {
			t.Errorf("%s binds it in every namespace", binding.Name)
		}
	}
	bound := 0
	for _, binding := range all[*rbacv1.RoleBinding](r) {
		if binding.RoleRef.Name == role {
			bound++
			if binding.RoleRef.Kind != "ClusterRole" || binding.Namespace != "other" {
				t.Errorf("%s binds it in %s", binding.Name, binding.Namespace)
			}
		}
	}
	if bound != 1 {
		t.Errorf("%d bindings", bound)
	}
}

// The secrets of namespaces are opened for ImagePullJobs one namespace at a time, and only
// where the gate is on.
func TestPullSecretsAreReadWhereTheirOwnersSaySo(t *testing.T) {
	const role = "kruise-pull-secrets"
	if r := render(t, "--set", "imagePullJobs.secretNamespaces={shop}"); has[*rbacv1.ClusterRole](r, role) || has[*rbacv1.Role](r, "kruise-pull-secret-copies") {
		t.Error("secrets are opened without the gate")
	}
	for _, gates := range []string{"ImagePullJobGate=true", "PreDownloadImageForInPlaceUpdate=true", "AllAlpha=true"} {
		r := render(t, "--set", "imagePullJobs.secretNamespaces={shop,lab}", "--set", "featureGates="+gates)
		rules := get[*rbacv1.ClusterRole](t, r, role).Rules
		if len(rules) != 1 || !slices.Equal(rules[0].Resources, []string{"secrets"}) || !slices.Equal(rules[0].Verbs, []string{"get"}) {
			t.Errorf("%s: the rules are %v", gates, rules)
		}
		var bound []string
		for _, binding := range all[*rbacv1.RoleBinding](r) {
			if binding.RoleRef.Name == role {
				bound = append(bound, binding.Namespace)
			}
		}
		if slices.Sort(bound); !slices.Equal(bound, []string{"lab", "shop"}) {
			t.Errorf("%s: bound in %v", gates, bound)
		}
		if copies := get[*rbacv1.Role](t, r, "kruise-pull-secret-copies"); copies.Namespace != "kruise-daemon-config" || slices.Contains(copies.Rules[0].Verbs, "list") {
			t.Errorf("%s: copies by %+v", gates, copies)
		}
	}
	for _, binding := range all[*rbacv1.ClusterRoleBinding](render(t, "--set", "featureGates=ImagePullJobGate=true")) {
		if binding.RoleRef.Name == role {
			t.Errorf("%s binds it in every namespace", binding.Name)
		}
	}
}

// readsScales is the other one: how many pods a workload of whatever kind is to have.
func readsScales(rule rbacv1.PolicyRule) bool {
	return slices.Equal(rule.APIGroups, []string{"*"}) && slices.Equal(rule.Resources, []string{"*/scale"}) && slices.Equal(rule.Verbs, []string{"get"})
}

// Besides the rule that reads scales, the only rules with a star let the manager list the resources of a
// group that installation.roleListGroups names. A star there does not add the group of the secrets.
func TestGroupsThatMayBeListed(t *testing.T) {
	if has[*rbacv1.ClusterRole](render(t, "--set-json", `installation.roleListGroups=["*",""]`), "kruise-list-role") {
		t.Error("the manager may list everything")
	}
	rules := get[*rbacv1.ClusterRole](t, render(t, "--set-json", `installation.roleListGroups=["*","x.example","stable.example.com"]`), "kruise-list-role").Rules
	if len(rules) != 1 || !slices.Equal(rules[0].APIGroups, []string{"x.example", "stable.example.com"}) || !slices.Equal(rules[0].Resources, []string{"*"}) || !slices.Equal(rules[0].Verbs, []string{"list"}) {
		t.Errorf("the rules are %v", rules)
	}
}

// The manager may write only named objects of admission. The exception is create,
// since RBAC cannot restrict create by name.
func TestAdmissionIsWrittenByName(t *testing.T) {
	for _, rule := range get[*rbacv1.ClusterRole](t, render(t), "kruise-manager-role").Rules {
		if !slices.Contains(rule.APIGroups, "admissionregistration.k8s.io") {
			continue
		}
		if len(rule.ResourceNames) == 0 && (!slices.Equal(rule.Verbs, []string{"create"}) || slices.Contains(rule.Resources, "validatingwebhookconfigurations")) {
			t.Errorf("%v", rule)
		}
	}
}

// What carries a CA is written by its name.
func TestCertificatesAreWrittenByName(t *testing.T) {
	r := render(t)
	_, namespaced := roles(r)
	rules := slices.Concat(get[*rbacv1.ClusterRole](t, r, "kruise-certs-role").Rules, namespaced["kruise-webhook-role"])
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			if reads := verb == "list" || verb == "watch"; reads != (len(rule.ResourceNames) == 0) {
				t.Errorf("%s of %v, names %v", verb, rule.Resources, rule.ResourceNames)
			}
		}
	}
}

// marker is a +kubebuilder:rbac line of the code.
var marker = regexp.MustCompile(`(?m)^// \+kubebuilder:rbac:groups=(\S*),resources=(\S*),verbs=(\S*)$`)

// urlMarker is one for paths that are of no object.
var urlMarker = regexp.MustCompile(`(?m)^// \+kubebuilder:rbac:urls=(\S*),verbs=(\S*)$`)

// The code says what it needs beside what needs it; this compares.
func TestTheManagerMayDoWhatTheCodeAsksFor(t *testing.T) {
	r := render(t, "--set", `featureGates=ResourceDistributionGate=true\,ImagePullJobGate=true`)
	granted := get[*rbacv1.ClusterRole](t, r, "kruise-distribution-role").Rules
	for _, role := range []string{"kruise-manager-role", "kruise-certs-role", "kruise-bundle-credentials"} {
		granted = slices.Concat(granted, get[*rbacv1.ClusterRole](t, r, role).Rules)
	}
	_, namespaced := roles(r)
	for _, rules := range namespaced {
		granted = slices.Concat(granted, rules)
	}
	found := 0
	err := filepath.WalkDir("../../controllers", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, match := range marker.FindAllStringSubmatch(string(source), -1) {
			found++
			for _, group := range strings.Split(match[1], ";") {
				for _, resource := range strings.Split(match[2], ";") {
					for _, verb := range strings.Split(match[3], ";") {
						if !allowed(granted, strings.Trim(group, `"`), resource, verb) {
							t.Errorf("%s needs %s of %s in group %s, which no role grants", path, verb, resource, group)
						}
					}
				}
			}
		}
		for _, match := range urlMarker.FindAllStringSubmatch(string(source), -1) {
			for _, url := range strings.Split(match[1], ";") {
				if !slices.ContainsFunc(granted, func(rule rbacv1.PolicyRule) bool {
					return slices.Contains(rule.NonResourceURLs, url) && slices.Contains(rule.Verbs, match[2])
				}) {
					t.Errorf("%s needs %s of %s, which no role grants", path, match[2], url)
				}
			}
		}
		return nil
	})
	if err != nil || found == 0 {
		t.Errorf("%d markers: %v", found, err)
	}
}

func allowed(rules []rbacv1.PolicyRule, group, resource, verb string) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.APIGroups, group) && slices.Contains(rule.Resources, resource) && slices.Contains(rule.Verbs, verb)
	})
}

// Every account that a binding names exists, and so does the role.
func TestBindingsLead(t *testing.T) {
	r := render(t)
	accounts := map[string]bool{}
	for _, object := range r {
		if object.GetObjectKind().GroupVersionKind().Kind == "ServiceAccount" {
			accounts[object.GetNamespace()+"/"+object.GetName()] = true
		}
	}
	check := func(name string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
		if ref.Kind == "ClusterRole" && !has[*rbacv1.ClusterRole](r, ref.Name) || ref.Kind == "Role" && !has[*rbacv1.Role](r, ref.Name) && ref.Name != "extension-apiserver-authentication-reader" {
			t.Errorf("%s binds %v", name, ref)
		}
		for _, subject := range subjects {
			if !accounts[subject.Namespace+"/"+subject.Name] {
				t.Errorf("%s binds to %v", name, subject)
			}
		}
	}
	for _, binding := range all[*rbacv1.ClusterRoleBinding](r) {
		check(binding.Name, binding.RoleRef, binding.Subjects)
	}
	for _, binding := range all[*rbacv1.RoleBinding](r) {
		check(binding.Name, binding.RoleRef, binding.Subjects)
	}
}

// Users get answers about what they may get, so that it goes with viewing a namespace. No user needs a
// way into the network of a pod for it, and no user may ask one manager alone, which would not
// look at what they may get.
func TestAskingWhyNeedsNoWayToAPod(t *testing.T) {
	r := render(t)
	cluster, namespaced := roles(r)
	for _, set := range []map[string][]rbacv1.PolicyRule{cluster, namespaced} {
		for name, rules := range set {
			for _, rule := range rules {
				if slices.ContainsFunc(rule.Resources, func(s string) bool {
					return strings.HasPrefix(s, "pods/port") || strings.HasPrefix(s, "pods/proxy") || strings.HasPrefix(s, "services/proxy")
				}) {
					t.Errorf("%s: %v", name, rule)
				}
				if len(rule.NonResourceURLs) > 0 && name != "kruise-manager-role" {
					t.Errorf("%s: %v", name, rule)
				}
			}
		}
	}
	const group = explain.Group
	for _, resource := range []string{explain.Explanations, explain.ClusterExplanations} {
		if !allowed(cluster["kruise-decision-reader"], group, resource, "get") {
			t.Errorf("who may ask may not get %s", resource)
		}
	}
	if rules := cluster["kruise-decision-reader"]; !allowed(rules, group, explain.Refusals, "list") || allowed(rules, group, explain.Decisions, "list") {
		t.Errorf("who may ask may do %v", rules)
	}
	if rules := cluster["kruise-decisions-reader"]; !allowed(rules, group, explain.Decisions, "list") {
		t.Errorf("who may read records may do %v", rules)
	}
	if labels := get[*rbacv1.ClusterRole](t, r, "kruise-decision-reader").Labels; labels["rbac.authorization.k8s.io/aggregate-to-view"] != "true" {
		t.Errorf("it is labelled %v", labels)
	}
	if labels := get[*rbacv1.ClusterRole](t, r, "kruise-decisions-reader").Labels; labels["rbac.authorization.k8s.io/aggregate-to-view"] != "" || labels["rbac.authorization.k8s.io/aggregate-to-admin"] != "true" {
		t.Errorf("it is labelled %v", labels)
	}
}

// The API server finds the managers by the Service that their certificate is for, and the manager
// may write its CA there, unless another tool does.
func TestTheAPIOfDecisions(t *testing.T) {
	const flag = "--decisions-api-service"
	writes := func(r release) bool {
		return allowed(get[*rbacv1.ClusterRole](t, r, "kruise-certs-role").Rules, "apiregistration.k8s.io", "apiservices", "update")
	}
	r := render(t, "--set", "manager.decisions.port=18443", "--set", "installation.namespace=other")
	spec, _, err := unstructured.NestedMap(get[*unstructured.Unstructured](t, r, explain.APIService).Object, "spec")
	want := map[string]any{
		"group": explain.Group, "version": explain.Version, "groupPriorityMinimum": int64(1000), "versionPriority": int64(15),
		"service": map[string]any{"name": "kruise-webhook-service", "namespace": "other", "port": int64(18443)},
	}
	if diff := cmp.Diff(want, spec); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
	if ports := get[*corev1.Service](t, r, "kruise-webhook-service").Spec.Ports; len(ports) != 2 || ports[1].Port != 18443 || ports[1].TargetPort.StrVal != "decisions" {
		t.Errorf("the service has %v", ports)
	}
	if !slices.Contains(container(t, r).Args, flag) || !writes(r) {
		t.Error("the manager does not write the CA")
	}
	for name, args := range map[string][]string{
		"off": {"--set", "manager.decisions.apiService.enabled=false"}, "the manager is elsewhere": {"--set", "manager.replicas=0,webhookConfiguration.url=https://localhost:9443"},
	} {
		if r := render(t, args...); has[*unstructured.Unstructured](r, explain.APIService) || slices.Contains(container(t, r).Args, flag) || writes(r) {
			t.Errorf("%s: there is an APIService, or what writes its CA", name)
		}
	}
	r = render(t, "--set", "featureGates=EnableExternalCerts=true", "--set-json", `externalCerts.annotations={"cert-manager.io/inject-ca-from":"kruise-system/kruise-webhook-certs"}`)
	if a := get[*unstructured.Unstructured](t, r, explain.APIService).GetAnnotations(); a["cert-manager.io/inject-ca-from"] == "" || writes(r) {
		t.Errorf("with another tool that makes certificates: %v, written by the manager: %t", a, writes(r))
	}
}
