// SPDX-License-Identifier: Apache-2.0

package server

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
)

// The manager refuses a privileged container in the template of any kind that has one, if its
// flag says so.
func TestPrivilegedContainersAreRefusedInEveryTemplate(t *testing.T) {
	reader := fake.NewClientBuilder().WithScheme(everything(t)).Build()
	var tried []string
	for _, s := range suites(t) {
		gvk := schema.FromAPIVersionAndKind(s.Base["apiVersion"].(string), s.Base["kind"].(string))
		object := merged(t, s.Base, nil)
		if !privilege(object) {
			continue
		}
		for _, refused := range []bool{false, true} {
			webhooks := kindWebhooks(reader, podtemplate.Settings{NoPrivileged: refused}, Options{})[strings.ReplaceAll(gvk.Group, ".", "-")+"-"+strings.ToLower(gvk.Kind)]
			if webhooks == nil {
				break
			}
			answer := webhooks.ValidatingHandler().Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Name: "web", Namespace: "ns", Operation: admissionv1.Create, Kind: metav1.GroupVersionKind(gvk), Object: runtime.RawExtension{Raw: []byte(text(t, object))},
			}})
			message := ""
			if answer.Result != nil {
				message = answer.Result.Message
			}
			if got := strings.Contains(message, "containers[0].securityContext.privileged: Forbidden: disallowed by cluster policy"); got != refused {
				t.Errorf("%s: refused is %t, want %t: %s", gvk.Kind, got, refused, message)
			}
			if refused {
				tried = append(tried, gvk.Kind)
			}
		}
	}
	slices.Sort(tried)
	if want := []string{"AdvancedCronJob", "BroadcastJob", "CloneSet", "DaemonSet", "SidecarSet", "StatefulSet", "UnitedDeployment"}; !slices.Equal(tried, want) {
		t.Errorf("tried were %v, want %v", tried, want)
	}
}

// privilege makes the containers of an object privileged, and reports whether it has any with an
// image.
func privilege(v any) (some bool) {
	switch v := v.(type) {
	case map[string]any:
		if list, ok := v["containers"].([]any); ok {
			for _, c := range list {
				if c, ok := c.(map[string]any); ok && c["image"] != nil {
					c["securityContext"], some = map[string]any{"privileged": true}, true
				}
			}
		}
		for _, below := range v {
			some = privilege(below) || some
		}
	case []any:
		for _, below := range v {
			some = privilege(below) || some
		}
	}
	return some
}
