// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var statefulSet = kind{
	native:   fmt.Sprintf(statefulManifest, "apps/v1"),
	advanced: fmt.Sprintf(statefulManifest, "apps.kruise.io/v1beta1"),
	see:      seeStatefulSet,
}

const statefulManifest = `
apiVersion: %s
kind: StatefulSet
metadata: {name: web}
spec:
  serviceName: web
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: "app:v1"}]
`

// seeStatefulSet has the pods, what the status says, and the claims and revisions.
func seeStatefulSet(ctx context.Context, o *side) (string, error) {
	pods, err := o.describe(ctx)
	if err != nil {
		return "", err
	}
	counts, err := o.status(ctx, "replicas", "readyReplicas", "updatedReplicas")
	if err != nil {
		return "", err
	}
	var claims corev1.PersistentVolumeClaimList
	if err := o.c.List(ctx, &claims, client.InNamespace(o.namespace)); err != nil {
		return "", fmt.Errorf("listing claims: %w", err)
	}
	var names []string
	for _, claim := range claims.Items {
		names = append(names, claim.Name)
	}
	slices.Sort(names)
	var revisions appsv1.ControllerRevisionList
	if err := o.c.List(ctx, &revisions, client.InNamespace(o.namespace)); err != nil {
		return "", fmt.Errorf("listing revisions: %w", err)
	}
	text := fmt.Sprintf("%s; status %s; %d revisions", pods, counts, len(revisions.Items))
	if len(names) > 0 {
		text += "; claims " + strings.Join(names, " ")
	}
	return text, nil
}

const (
	inParallel = `{"op": "add", "path": "/spec/podManagementPolicy", "value": "Parallel"}`
	withClaims = `{"op": "add", "path": "/spec/volumeClaimTemplates", "value": [{"metadata": {"name": "data"},
		"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}}]}`
	withGate = `{"op": "add", "path": "/spec/template/spec/readinessGates", "value": [{"conditionType": "example.com/ok"}]}`
	onDelete = `{"op": "add", "path": "/spec/updateStrategy", "value": {"type": "OnDelete"}}`
)

func list(operations ...string) string { return "[" + strings.Join(operations, ",") + "]" }

func partition(n int) func(context.Context, *side) error {
	return change(fmt.Sprintf(`[{"op": "add", "path": "/spec/updateStrategy", "value": {"type": "RollingUpdate", "rollingUpdate": {"partition": %d}}}]`, n))
}

// three is what a set of three pods looks like before anything is changed.
const three = "web-0=v1 web-1=v1 web-2=v1; status 3/3/3; 1 revisions"

func statefulSets() []scenario {
	return []scenario{
		{name: "pods come and go one after the other", steps: []step{
			{does: "created", want: three},
			{does: "scaled in", act: replicas(1), want: "web-0=v1; status 1/1/1; 1 revisions"},
			{does: "scaled out", act: replicas(4), want: "web-0=v1 web-1=v1 web-2=v1 web-3=v1; status 4/4/4; 1 revisions"},
			{does: "scaled to nothing", act: replicas(0), want: "; status 0/0/0; 1 revisions"},
		}},
		{name: "pods come and go all at once in Parallel", edit: list(inParallel), unordered: true, steps: []step{
			{does: "created", want: three},
			{does: "scaled in", act: replicas(0), want: "; status 0/0/0; 1 revisions"},
			{does: "scaled out", act: replicas(3), want: three},
		}},
		{name: "an update goes down to the partition", steps: []step{
			{does: "created", want: three},
			{does: "partition 2", act: partition(2), want: three},
			{does: "updated", act: image("v2"), want: "web-0=v1 web-1=v1 web-2=v2; status 3/3/1; 2 revisions", still: 2 * time.Second},
			{does: "a pod below the partition is deleted", act: deletePod("web-1"), want: "web-0=v1 web-1=v1 web-2=v2; status 3/3/1; 2 revisions"},
			{does: "scaled out beyond", act: replicas(4), want: "web-0=v1 web-1=v1 web-2=v2 web-3=v2; status 4/4/2; 2 revisions"},
			{does: "partition 0", act: partition(0), want: "web-0=v2 web-1=v2 web-2=v2 web-3=v2; status 4/4/4; 2 revisions"},
		}},
		{name: "an update takes the pods of a Parallel set from the last to the first", edit: list(inParallel, `{"op": "replace", "path": "/spec/replicas", "value": 1}`), steps: []step{
			{does: "created with one pod, so that pods come in order", want: "web-0=v1; status 1/1/1; 1 revisions"},
			{does: "two pods", act: replicas(2), want: "web-0=v1 web-1=v1; status 2/2/2; 1 revisions"},
			{does: "updated", act: image("v2"), want: "web-0=v2 web-1=v2; status 2/2/2; 2 revisions"},
			{does: "rolled back", act: image("v1"), want: "web-0=v1 web-1=v1; status 2/2/2; 2 revisions"},
		}},
		{name: "a pod that is not ready keeps the next one from being created", edit: list(withGate), steps: []step{
			{does: "created", want: "web-0=v1(unready); status 1/0/1; 1 revisions", still: 2 * time.Second},
			{does: "the first is ready", act: open("web-0", corev1.ConditionTrue), want: "web-0=v1 web-1=v1(unready); status 2/1/2; 1 revisions", still: 2 * time.Second},
			{does: "the second is ready", act: open("web-1", corev1.ConditionTrue), want: "web-0=v1 web-1=v1 web-2=v1(unready); status 3/2/3; 1 revisions"},
			{does: "the third is ready", act: open("web-2", corev1.ConditionTrue), want: three},
		}},
		{name: "a pod that is not ready stops the update", edit: list(withGate), steps: []step{
			{does: "created", want: "web-0=v1(unready); status 1/0/1; 1 revisions"},
			{does: "the first is ready", act: open("web-0", corev1.ConditionTrue), want: "web-0=v1 web-1=v1(unready); status 2/1/2; 1 revisions"},
			{does: "the second is ready", act: open("web-1", corev1.ConditionTrue), want: "web-0=v1 web-1=v1 web-2=v1(unready); status 3/2/3; 1 revisions"},
			{does: "the third is ready", act: open("web-2", corev1.ConditionTrue), want: three},
			{does: "updated", act: image("v2"), want: "web-0=v1 web-1=v1 web-2=v2(unready); status 3/2/1; 2 revisions", still: 2 * time.Second},
			{does: "the new one is ready", act: open("web-2", corev1.ConditionTrue), want: "web-0=v1 web-1=v2(unready) web-2=v2; status 3/2/2; 2 revisions"},
		}},
		{name: "a revision that never becomes ready is replaced by ours alone", apart: true, steps: []step{
			{does: "created", want: three},
			{does: "updated to what never is ready", act: gated("v2"), want: "web-0=v1 web-1=v1 web-2=v2(unready); status 3/2/1; 2 revisions", still: 2 * time.Second},
			{
				does: "updated again", act: ungated("v3"), want: "web-0=v1 web-1=v1 web-2=v2(unready); status 3/2/0; 3 revisions", still: 2 * time.Second,
				advanced: "web-0=v3 web-1=v3 web-2=v3; status 3/3/3; 3 revisions",
			},
			{does: "a user deletes the pod", act: deletePod("web-2"), want: "web-0=v3 web-1=v3 web-2=v3; status 3/3/3; 3 revisions"},
		}},
		{name: "claims stay, and come back with their pods", edit: list(withClaims), steps: []step{
			{does: "created", want: three + "; claims data-web-0 data-web-1 data-web-2"},
			{does: "scaled in", act: replicas(1), want: "web-0=v1; status 1/1/1; 1 revisions; claims data-web-0 data-web-1 data-web-2"},
			{does: "scaled out", act: replicas(2), want: "web-0=v1 web-1=v1; status 2/2/2; 1 revisions; claims data-web-0 data-web-1 data-web-2"},
		}},
		{
			name: "claims go with pods that a scale-in removes, where the policy says so",
			edit: list(withClaims, `{"op": "add", "path": "/spec/persistentVolumeClaimRetentionPolicy", "value": {"whenScaled": "Delete", "whenDeleted": "Retain"}}`),
			steps: []step{
				{does: "created", want: three + "; claims data-web-0 data-web-1 data-web-2"},
				{does: "a pod is deleted", act: deletePod("web-2"), want: three + "; claims data-web-0 data-web-1 data-web-2"},
				{does: "scaled in", act: replicas(1), want: "web-0=v1; status 1/1/1; 1 revisions; claims data-web-0"},
			},
		},
		{name: "ordinals start where they are said to", edit: list(`{"op": "add", "path": "/spec/ordinals", "value": {"start": 5}}`), steps: []step{
			{does: "created", want: "web-5=v1 web-6=v1 web-7=v1; status 3/3/3; 1 revisions"},
			{does: "scaled in", act: replicas(2), want: "web-5=v1 web-6=v1; status 2/2/2; 1 revisions"},
			{does: "updated", act: image("v2"), want: "web-5=v2 web-6=v2; status 2/2/2; 2 revisions"},
		}},
		{name: "OnDelete updates what a user deletes", edit: list(onDelete), steps: []step{
			{does: "created", want: three},
			{does: "updated", act: image("v2"), want: "web-0=v1 web-1=v1 web-2=v1; status 3/3/0; 2 revisions", still: 2 * time.Second},
			{does: "a pod is deleted", act: deletePod("web-1"), want: "web-0=v1 web-1=v2 web-2=v1; status 3/3/1; 2 revisions"},
		}},
		{name: "a pod is available after minReadySeconds", edit: list(`{"op": "add", "path": "/spec/minReadySeconds", "value": 2}`), steps: []step{
			{does: "created", want: three},
			{does: "updated", act: image("v2"), want: "web-0=v2 web-1=v2 web-2=v2; status 3/3/3; 2 revisions"},
		}},
		{name: "revisions beyond the limit go", edit: list(`{"op": "add", "path": "/spec/revisionHistoryLimit", "value": 1}`, `{"op": "replace", "path": "/spec/replicas", "value": 1}`), steps: []step{
			{does: "created", want: "web-0=v1; status 1/1/1; 1 revisions"},
			{does: "updated", act: image("v2"), want: "web-0=v2; status 1/1/1; 2 revisions"},
			{does: "updated again", act: image("v3"), want: "web-0=v3; status 1/1/1; 2 revisions"},
		}},
	}
}
