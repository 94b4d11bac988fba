// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/test/apiserver"
)

// The API server itself lets all pods of the manager into a restricted namespace, and refuses the agent there.
func TestPodSecurityIsThatOfTheAPIServer(t *testing.T) {
	env := apiserver.Start(t)
	api, err := client.New(env.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, level := range []string{"restricted", "privileged"} {
		o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: level, Labels: map[string]string{levelKey: level}}}
		if err := api.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	create := func(namespace string, spec corev1.PodSpec) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "pod-"}, Spec: spec}
		pod.Spec.ServiceAccountName, pod.Spec.PriorityClassName = "", ""
		return api.Create(t.Context(), pod, client.DryRunAll)
	}
	for name, args := range map[string][]string{
		"by default": nil, "with files of users": {"-f", "testdata/introduction.yaml"}, "on OpenShift": {"-f", "clusters/openshift.yaml"},
		"with all that it mounts": slices.Concat(decisionsToEverywhere(), verified()),
	} {
		r := render(t, args...)
		for _, pod := range append(pods(t, r), get[*batchv1.Job](t, r, "kruise-upgrade-check").Spec.Template.Spec) {
			if err := create("restricted", pod); err != nil {
				t.Errorf("%s: %s: %v", name, pod.Containers[0].Name, err)
			}
		}
	}
	agent := agentPod(t, render(t))
	if err := create("restricted", agent); err == nil || !strings.Contains(err.Error(), "violates PodSecurity") {
		t.Errorf("the agent is let in: %v", err)
	}
	if err := create("privileged", agent); err != nil {
		t.Error(err)
	}
}
