// SPDX-License-Identifier: Apache-2.0

// Package waiting asks the library kstatus what tools that wait for an object, such as Flux and Helm, take it for.
package waiting

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// What an object is taken for.
const (
	Current    = status.CurrentStatus
	InProgress = status.InProgressStatus
	Failed     = status.FailedStatus
)

// JudgeObject returns what an object is taken for, as a client reads it, and the message about that.
func JudgeObject(t testing.TB, kind schema.GroupVersionKind, object any) (status.Status, string) {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(kind)
	got, err := status.Compute(u)
	if err != nil {
		t.Fatal(err)
	}
	return got.Status, got.Message
}
