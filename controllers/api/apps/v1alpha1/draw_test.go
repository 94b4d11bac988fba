// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/api/conversiondata"
)

type otherHub struct{ runtime.Object }

func (otherHub) Hub() {}

func of(strategy CloneSetUpdateStrategy) CloneSet {
	return CloneSet{Spec: CloneSetSpec{UpdateStrategy: strategy}}
}

func rollingHub(kind v1beta1.CloneSetUpdateStrategyType, rolling *v1beta1.RollingUpdateCloneSetStrategy, annotations map[string]string) v1beta1.CloneSet {
	return v1beta1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Annotations: annotations},
		Spec:       v1beta1.CloneSetSpec{UpdateStrategy: v1beta1.CloneSetUpdateStrategy{Type: kind, RollingUpdate: rolling}},
	}
}

func converted(t *testing.T, in *CloneSet) *v1beta1.CloneSet {
	t.Helper()
	out := &v1beta1.CloneSet{}
	if err := in.ConvertTo(out); err != nil {
		t.Fatalf("converting to the hub: %v", err)
	}
	return out
}

func older(t *testing.T, in *v1beta1.CloneSet) *CloneSet {
	t.Helper()
	out := &CloneSet{}
	if err := out.ConvertFrom(in); err != nil {
		t.Fatalf("converting from the hub: %v", err)
	}
	return out
}

func drawIntOrPercent(t *rapid.T, label string) *intstr.IntOrString {
	return rapid.SampledFrom([]*intstr.IntOrString{nil, {IntVal: 0}, {IntVal: 7}, {Type: intstr.String, StrVal: "25%"}}).Draw(t, label)
}

func drawInt32(t *rapid.T, label string) *int32 {
	return rapid.Ptr(rapid.Int32(), true).Draw(t, label)
}

func drawMarks(t *rapid.T, label string, values map[string][]string) map[string]string {
	var drawn map[string]string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if text := rapid.SampledFrom(append(values[key], "")).Draw(t, label+" "+key); text != "" {
			conversiondata.SetMetadata(&drawn, key, text)
		}
	}
	return drawn
}

func drawSpec(t *rapid.T) CloneSetSpec {
	return CloneSetSpec{
		Replicas: drawInt32(t, "replicas"), RevisionHistoryLimit: drawInt32(t, "history"),
		ProgressDeadlineSeconds: drawInt32(t, "deadline"), MinReadySeconds: rapid.Int32().Draw(t, "minReadySeconds"),
		Selector: rapid.SampledFrom([]*metav1.LabelSelector{nil, {MatchLabels: map[string]string{"app": "x"}}}).Draw(t, "selector"),
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Name: rapid.String().Draw(t, "template")}},
		VolumeClaimTemplates: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) corev1.PersistentVolumeClaim {
			return corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: rapid.String().Draw(t, "claim")}}
		}), 1, 2).Draw(t, "claims"),
		Lifecycle: rapid.SampledFrom([]*v1beta1.Lifecycle{nil, {}, {PreDelete: &v1beta1.LifecycleHook{MarkPodNotReady: true}}}).Draw(t, "lifecycle"),
		ScaleStrategy: CloneSetScaleStrategy{
			PodsToDelete: rapid.SampledFrom([][]string{nil, {"a", "b"}}).Draw(t, "podsToDelete"), MaxUnavailable: drawIntOrPercent(t, "scale maxUnavailable"),
			DisablePVCReuse: rapid.Bool().Draw(t, "disablePVCReuse"),
		},
		UpdateStrategy: CloneSetUpdateStrategy{
			Partition: drawIntOrPercent(t, "partition"), MaxUnavailable: drawIntOrPercent(t, "maxUnavailable"), MaxSurge: drawIntOrPercent(t, "maxSurge"),
			Paused: rapid.Bool().Draw(t, "paused"),
			PriorityStrategy: rapid.SampledFrom([]*v1beta1.UpdatePriorityStrategy{
				nil, {OrderPriority: []v1beta1.UpdatePriorityOrderTerm{{OrderedKey: "k"}}}, {WeightPriority: []v1beta1.UpdatePriorityWeightTerm{{Weight: 4}}},
			}).Draw(t, "priority"),
			ScatterStrategy: rapid.SampledFrom([]v1beta1.CloneSetUpdateScatterStrategy{nil, {{Key: "k", Value: "v"}}}).Draw(t, "scatter"),
		},
	}
}

func drawOld(t *rapid.T) *CloneSet {
	in := &CloneSet{
		ObjectMeta: metav1.ObjectMeta{
			Name:   rapid.String().Draw(t, "name"),
			Labels: drawMarks(t, "label", map[string][]string{exclude: {"true", "false"}, "other": {"x"}}),
			Annotations: drawMarks(t, "annotation", map[string][]string{
				parallelism: {"5", "010%", "x", "-1"}, timeout: {"600", "+7", "1e3"}, minReady: {"0", "99999999999"}, "other": {"x"},
			}),
		},
		Spec:   drawSpec(t),
		Status: drawStatus(t),
	}
	in.Spec.UpdateStrategy.Type = rapid.SampledFrom([]CloneSetUpdateStrategyType{
		RecreateCloneSetUpdateStrategyType, InPlaceIfPossibleCloneSetUpdateStrategyType, InPlaceOnlyCloneSetUpdateStrategyType, OnDeleteCloneSetUpdateStrategyType,
	}).Draw(t, "type")
	if grace := rapid.Int32Min(0).Draw(t, "grace"); grace > 0 {
		in.Spec.UpdateStrategy.InPlaceUpdateStrategy = &v1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: grace}
	}
	if in.Spec.UpdateStrategy.Type == OnDeleteCloneSetUpdateStrategyType && rapid.Bool().Draw(t, "no rolling update") {
		in.Spec.UpdateStrategy = CloneSetUpdateStrategy{Type: OnDeleteCloneSetUpdateStrategyType}
	} else if in.Spec.UpdateStrategy.Type == OnDeleteCloneSetUpdateStrategyType {
		conversiondata.SetMetadata(&in.Annotations, PodUpdatePolicyKey, rapid.SampledFrom([]string{"", "ReCreate", "InPlaceOnly"}).Draw(t, "kept policy"))
	}
	return in
}

func drawStatus(t *rapid.T) v1beta1.CloneSetStatus {
	return v1beta1.CloneSetStatus{
		ObservedGeneration: rapid.Int64().Draw(t, "generation"), Replicas: rapid.Int32().Draw(t, "status replicas"),
		CollisionCount: drawInt32(t, "collisions"), Conditions: []v1beta1.CloneSetCondition{{Type: v1beta1.CloneSetConditionFailedScale}},
		UpdateRevision: rapid.String().Draw(t, "revision"), LabelSelector: rapid.String().Draw(t, "label selector"),
	}
}

// drawHub draws the shared parts as the old version has them, and what only the hub has by itself.
func drawHub(t *rapid.T) *v1beta1.CloneSet {
	spec := drawSpec(t)
	hub := &v1beta1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      drawMarks(t, "label", map[string][]string{exclude: {"true", "false"}, "other": {"x"}}),
			Annotations: drawMarks(t, "annotation", map[string][]string{parallelism: {"5", "x"}, timeout: {"600", "1e3"}, PodUpdatePolicyKey: {"junk"}}),
		},
		Spec: v1beta1.CloneSetSpec{
			Replicas: spec.Replicas, Selector: spec.Selector, Template: spec.Template, VolumeClaimTemplates: spec.VolumeClaimTemplates,
			RevisionHistoryLimit: spec.RevisionHistoryLimit, MinReadySeconds: spec.MinReadySeconds, Lifecycle: spec.Lifecycle,
			ProgressDeadlineSeconds: spec.ProgressDeadlineSeconds,
			ScaleStrategy: v1beta1.CloneSetScaleStrategy{
				PodsToDelete: spec.ScaleStrategy.PodsToDelete, MaxUnavailable: spec.ScaleStrategy.MaxUnavailable,
				EnablePVCReuse:         rapid.Bool().Draw(t, "enablePVCReuse"),
				ExcludePreparingDelete: rapid.Bool().Draw(t, "excludePreparingDelete"),
			},
		},
		Status: drawStatus(t),
	}
	strategy := &hub.Spec.UpdateStrategy
	strategy.Type = rapid.SampledFrom([]v1beta1.CloneSetUpdateStrategyType{
		v1beta1.RollingUpdateCloneSetUpdateStrategyType, v1beta1.OnDeleteCloneSetUpdateStrategyType,
	}).Draw(t, "type")
	if strategy.Type == v1beta1.OnDeleteCloneSetUpdateStrategyType && rapid.Bool().Draw(t, "no rolling update") {
		return hub
	}
	old := spec.UpdateStrategy
	strategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{
		Partition: old.Partition, MaxUnavailable: old.MaxUnavailable, MaxSurge: old.MaxSurge, Paused: old.Paused,
		PriorityStrategy: old.PriorityStrategy, ScatterStrategy: old.ScatterStrategy,
		PodUpdatePolicy: rapid.SampledFrom([]v1beta1.PodUpdatePolicyType{
			v1beta1.RecreatePodUpdatePolicyType, v1beta1.InPlaceIfPossiblePodUpdatePolicyType, v1beta1.InPlaceOnlyPodUpdatePolicyType,
		}).Draw(t, "policy"),
	}
	if rapid.Bool().Draw(t, "in place") {
		strategy.RollingUpdate.InPlaceUpdateStrategy = &v1beta1.InPlaceUpdateStrategy{
			GracePeriodSeconds:                  rapid.Int32Range(0, 2).Draw(t, "grace"),
			ImagePreDownloadParallelism:         drawIntOrPercent(t, "parallelism"),
			ImagePreDownloadTimeoutSeconds:      drawInt32(t, "timeout"),
			ImagePreDownloadMinUpdatedReadyPods: drawInt32(t, "min ready"),
		}
	}
	return hub
}

// Whatever a client sends, conversion neither panics nor keeps changing the object.
func FuzzConversion(f *testing.F) {
	f.Add([]byte(`{"spec":{"updateStrategy":{"type":"InPlaceOnly","partition":"10%"},"scaleStrategy":{"disablePVCReuse":true}}}`))
	f.Add([]byte(`{"metadata":{"annotations":{"apps.kruise.io/image-predownload-parallelism":"5%"},"labels":{"apps.kruise.io/cloneset-scaling-exclude-preparing-delete":"true"}}}`))
	f.Add([]byte(`{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":{"podUpdatePolicy":"x","inPlaceUpdateStrategy":{"imagePreDownloadParallelism":"x"}}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		old, hub := &CloneSet{}, &v1beta1.CloneSet{}
		if json.Unmarshal(data, old) != nil || json.Unmarshal(data, hub) != nil {
			return
		}
		for _, first := range []*v1beta1.CloneSet{converted(t, old), hub} {
			once := older(t, first)
			again := older(t, converted(t, once))
			if diff := cmp.Diff(once, again); diff != "" {
				t.Errorf("a second trip changed the object (-once +again):\n%s", diff)
			}
		}
	})
}
