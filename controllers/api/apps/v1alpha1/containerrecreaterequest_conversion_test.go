// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"github.com/regatta-sh/regatta/controllers/api/apitest"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/api/conversiondata"
	"github.com/regatta-sh/regatta/test/proptest"
)

const (
	syncKey     = v1beta1.ContainerRecreateRequestSyncStatusesKey
	acquiredKey = v1beta1.ContainerRecreateRequestUnreadyAcquiredKey
)

func TestRecreateRequestFromTheHub(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 7, 2, 8, 0, 0, 0, time.UTC))
	grace := graceCondition(at)
	denied := grace
	denied.Status = metav1.ConditionFalse
	other := metav1.Condition{Type: "Other", Status: metav1.ConditionTrue, LastTransitionTime: at, Reason: "R"}
	const otherJSON = `{"type":"Other","status":"True","lastTransitionTime":"2026-07-02T08:00:00Z","reason":"R","message":""}`
	for _, tc := range []struct {
		name   string
		status v1beta1.ContainerRecreateRequestStatus
		before map[string]string
		want   map[string]string
	}{
		{name: "a status without both needs no annotation"},
		{
			name:   "the snapshot is an annotation",
			status: v1beta1.ContainerRecreateRequestStatus{ContainerStatusSnapshot: []v1beta1.ContainerStatusSnapshot{{Name: "a", Ready: true, RestartCount: 2, ContainerID: "c"}}},
			want:   map[string]string{syncKey: `[{"name":"a","ready":true,"restartCount":2,"containerID":"c"}]`},
		},
		{
			name:   "the time of the grace is an annotation",
			status: v1beta1.ContainerRecreateRequestStatus{Conditions: []metav1.Condition{grace}},
			want:   map[string]string{acquiredKey: "2026-07-02T08:00:00Z"},
		},
		{
			name:   "other conditions are kept",
			status: v1beta1.ContainerRecreateRequestStatus{Conditions: []metav1.Condition{grace, other}},
			want:   map[string]string{acquiredKey: "2026-07-02T08:00:00Z", conversiondata.NewerKey: `{"conditions":[` + otherJSON + `]}`},
		},
		{
			name:   "a grace that was not given is no annotation",
			status: v1beta1.ContainerRecreateRequestStatus{Conditions: []metav1.Condition{denied}},
			want: map[string]string{conversiondata.NewerKey: `{"conditions":[{"type":"PreRecreateGrace","status":"False","lastTransitionTime":"2026-07-02T08:00:00Z",` +
				`"reason":"PreRecreateGrace","message":"Pod has been forced to not-ready for unreadyGracePeriodSeconds drain"}]}`},
		},
		{
			name:   "an annotation of the hub that contradicts the field is kept aside",
			status: v1beta1.ContainerRecreateRequestStatus{Conditions: []metav1.Condition{grace}},
			before: map[string]string{acquiredKey: "soon"},
			want:   map[string]string{acquiredKey: "2026-07-02T08:00:00Z", conversiondata.NewerKey: `{"annotations":{"crr.apps.kruise.io/unready-acquired":{"is":"stale","text":"soon"}}}`},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			hub := &v1beta1.ContainerRecreateRequest{Status: tc.status}
			hub.Annotations = tc.before
			old := apitest.ConvertFromHub[ContainerRecreateRequest](t, hub)
			if diff := cmp.Diff(tc.want, old.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			apitest.RequireEqual(t, "the hub came back changed", hub, apitest.Hub[v1beta1.ContainerRecreateRequest](t, old))
		})
	}
}

func TestRecreateRequestToTheHub(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 7, 2, 8, 0, 0, 0, time.UTC))
	later := metav1.NewTime(at.Add(time.Hour))
	special := graceCondition(at)
	special.ObservedGeneration = 4
	moved := special
	moved.LastTransitionTime = later
	for _, tc := range []struct {
		name   string
		before map[string]string
		kept   []metav1.Condition
		want   v1beta1.ContainerRecreateRequestStatus
		left   map[string]string
	}{
		{
			name:   "annotations are fields, and go",
			before: map[string]string{acquiredKey: "2026-07-02T08:00:00Z", syncKey: `[{"name":"a","ready":false,"restartCount":0}]`},
			want: v1beta1.ContainerRecreateRequestStatus{
				Conditions:              []metav1.Condition{graceCondition(at)},
				ContainerStatusSnapshot: []v1beta1.ContainerStatusSnapshot{{Name: "a"}},
			},
		},
		{
			name:   "annotations that cannot be read stay",
			before: map[string]string{acquiredKey: "yesterday", syncKey: `{"a":1}`},
			left:   map[string]string{acquiredKey: "yesterday", syncKey: `{"a":1}`},
		},
		{
			name:   "a time with another offset is the same time, in the words of its writer",
			before: map[string]string{acquiredKey: "2026-07-02T10:00:00+02:00"},
			want:   v1beta1.ContainerRecreateRequestStatus{Conditions: []metav1.Condition{graceCondition(at)}},
			left:   map[string]string{conversiondata.OlderKey: `{"annotations":{"crr.apps.kruise.io/unready-acquired":"2026-07-02T10:00:00+02:00"}}`},
		},
		{
			name:   "an empty snapshot is none, so that there is no status",
			before: map[string]string{syncKey: "[]"},
			left:   map[string]string{conversiondata.OlderKey: `{"annotations":{"crr.apps.kruise.io/sync-container-statuses":"[]"}}`},
		},
		{name: "a condition whose annotation is gone goes too", kept: []metav1.Condition{special}},
		{
			name:   "a condition whose annotation has changed changes",
			before: map[string]string{acquiredKey: "2026-07-02T09:00:00Z"}, kept: []metav1.Condition{special},
			want: v1beta1.ContainerRecreateRequestStatus{Conditions: []metav1.Condition{moved}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			old := &ContainerRecreateRequest{}
			old.Annotations = tc.before
			if err := conversiondata.StoreFields(&old.Annotations, conversiondata.NewerKey, recreateRequestKept{Conditions: tc.kept}); err != nil {
				t.Fatal(err)
			}
			hub := apitest.Hub[v1beta1.ContainerRecreateRequest](t, old)
			if diff := cmp.Diff(tc.want, hub.Status); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.left, hub.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if tc.kept == nil {
				apitest.RequireEqual(t, "the old version came back changed", old, apitest.ConvertFromHub[ContainerRecreateRequest](t, hub))
			}
		})
	}
}

func TestARecreateRequestThatNobodyReportedOnHasNoStatus(t *testing.T) {
	hub := apitest.Hub[v1beta1.ContainerRecreateRequest](t, &ContainerRecreateRequest{})
	text, err := json.Marshal(hub)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "status") {
		t.Errorf("got %s", text)
	}
}

func recreateTexts() map[string][]string {
	return map[string][]string{
		syncKey: {
			`[{"name":"a","ready":true,"restartCount":1,"containerID":"c"}]`, `[ {"name":"a", "more":1} ]`, `[]`, ` null`, `{}`, ``, `[{"name":"<"}]`,
		},
		acquiredKey: {
			"2026-07-02T08:00:00Z", "2026-07-02T10:00:00+02:00", "2026-07-02T08:00:00.5Z", "9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00Z", "x", "",
		},
	}
}

func recreateFiller(seed int64) *randfill.Filler {
	return apitest.NewWithAnnotations(seed, recreateTexts(), func(condition *metav1.Condition, c randfill.Continue) {
		var at metav1.Time
		c.Fill(&at)
		if c.Intn(8) == 0 {
			at = metav1.Time{}
		}
		*condition = graceCondition(at)
		if c.Bool() {
			c.FillNoCustom(condition)
			condition.Type = []string{"A", "B", v1beta1.ContainerRecreateRequestPreRecreateGrace}[c.Intn(3)]
			condition.Status = []metav1.ConditionStatus{"True", "False", "x"}[c.Intn(3)]
		}
	})
}

// What a client of the old version writes on an object that came from the hub, it reads again.
func TestWritersOfOldRecreateRequestsAreHeard(t *testing.T) {
	filler := recreateFiller(3)
	for range proptest.Often(300) {
		hub, written := &v1beta1.ContainerRecreateRequest{}, &ContainerRecreateRequest{}
		filler.Fill(hub)
		filler.Fill(written)
		old := apitest.ConvertFromHub[ContainerRecreateRequest](t, hub)
		for key := range recreateTexts() {
			conversiondata.RemoveMetadata(&old.Annotations, key)
			if text, ok := written.Annotations[key]; ok {
				conversiondata.SetMetadata(&old.Annotations, key, text)
			}
		}
		again := apitest.ConvertFromHub[ContainerRecreateRequest](t, apitest.Hub[v1beta1.ContainerRecreateRequest](t, old))
		conversiondata.RemoveMetadata(&old.Annotations, conversiondata.NewerKey)
		conversiondata.RemoveMetadata(&again.Annotations, conversiondata.NewerKey)
		apitest.RequireEqual(t, "the client reads something else", old, again)
	}
}

func TestContainerRecreateRequestsSurviveTheOtherVersion(t *testing.T) {
	apitest.RoundTrip(t, recreateFiller(1), &ContainerRecreateRequest{}, &v1beta1.ContainerRecreateRequest{})
}
