// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Pods that OpenKruise left behind carry these documents, and other tools read them: keys and forms must stay.
func TestDocumentsOnPods(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 7, 2, 8, 0, 0, 0, time.UTC))
	cpu := corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
	ref := map[string]ContainerRefMetadata{"a": {Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"n": "2"}}}
	for _, tc := range []struct {
		name      string
		in, empty any
		want      string
	}{
		{
			name: "the least state", in: &InPlaceUpdateState{Revision: "r", UpdateTimestamp: at}, empty: &InPlaceUpdateState{},
			want: `{"revision":"r","updateTimestamp":"2026-07-02T08:00:00Z","lastContainerStatuses":null}`,
		},
		{
			name: "a full state",
			in: &InPlaceUpdateState{
				Revision: "r", UpdateTimestamp: at, LastContainerStatuses: map[string]InPlaceUpdateContainerStatus{"a": {ImageID: "i"}},
				UpdateEnvFromMetadata: true, UpdateResources: true, UpdateImages: true, NextContainerImages: map[string]string{"a": "x"},
				NextContainerRefMetadata: ref, NextContainerResources: map[string]corev1.ResourceRequirements{"a": cpu},
				PreCheckBeforeNext:     &InPlaceUpdatePreCheckBeforeNext{ContainersRequiredReady: []string{"b"}},
				ContainerBatchesRecord: []InPlaceUpdateContainerBatch{{Timestamp: at, Containers: []string{"b"}}},
			},
			empty: &InPlaceUpdateState{},
			want: `{"revision":"r","updateTimestamp":"2026-07-02T08:00:00Z","lastContainerStatuses":{"a":{"imageID":"i"}},"updateEnvFromMetadata":true,"updateResources":true,"updateImages":true,` +
				`"nextContainerImages":{"a":"x"},"nextContainerRefMetadata":{"a":{"labels":{"l":"1"},"annotations":{"n":"2"}}},"nextContainerResources":{"a":{"limits":{"cpu":"1"}}},` +
				`"preCheckBeforeNext":{"containersRequiredReady":["b"]},"containerBatchesRecord":[{"timestamp":"2026-07-02T08:00:00Z","containers":["b"]}]}`,
		},
		{
			name: "a pending update",
			in: &UpdateSpec{
				Revision: "r", ContainerImages: map[string]string{"a": "x"}, ContainerRefMetadata: ref, ContainerResources: map[string]corev1.ResourceRequirements{"a": cpu},
				MetaDataPatch: []byte(`{}`), UpdateEnvFromMetadata: true, GraceSeconds: 5,
			},
			empty: &UpdateSpec{},
			want: `{"revision":"r","containerImages":{"a":"x"},"containerRefMetadata":{"a":{"labels":{"l":"1"},"annotations":{"n":"2"}}},"containerResources":{"a":{"limits":{"cpu":"1"}}},` +
				`"metaDataPatch":"e30=","updateEnvFromMetadata":true,"graceSeconds":5}`,
		},
		{
			name: "what containers run",
			in: &RuntimeContainerMetaSet{Containers: []RuntimeContainerMeta{{
				Name: "a", ContainerID: "c", RestartCount: 2, Hashes: RuntimeContainerHashes{PlainHash: 1<<64 - 1, ExtractedEnvFromMetadataHash: 7},
			}}},
			empty: &RuntimeContainerMetaSet{},
			want:  `{"containers":[{"name":"a","containerID":"c","restartCount":2,"hashes":{"plainHash":18446744073709551615,"extractedEnvFromMetadataHash":7}}]}`,
		},
		{
			name: "who holds a pod not ready", in: &[]PodReadinessMessage{{UserAgent: LifecycleUserAgent, Key: PreDeleteHookKey}}, empty: &[]PodReadinessMessage{},
			want: `[{"userAgent":"Lifecycle","key":"preDeleteHook"}]`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := json.Marshal(tc.in)
			if err != nil || string(got) != tc.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, tc.want)
			}
			if err := json.Unmarshal([]byte(tc.want), tc.empty); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.in, tc.empty); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAddToScheme(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"CloneSet", "CloneSetList"} {
		if !scheme.Recognizes(GroupVersion.WithKind(kind)) {
			t.Errorf("the scheme does not know %s", kind)
		}
	}
	if got := Resource("clonesets").String() + " " + Kind("CloneSet").String(); got != "clonesets.apps.kruise.io CloneSet.apps.kruise.io" {
		t.Errorf("got %s", got)
	}
}
